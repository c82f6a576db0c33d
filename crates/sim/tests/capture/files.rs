//! Captures kept in memory and read back.

use std::sync::Arc;

use cwnd_scenario::{Document, Scenario};
use cwnd_sim::World;
use cwnd_tables::{ColumnData, Records, Table};
use etherparse::{SlicedPacket, TcpOptionElement, TcpSlice, TransportSlice};
use pcap_parser::pcapng::OptionCode;
use pcap_parser::traits::PcapNGPacketBlock as _;
use pcap_parser::{Block, PcapBlockOwned, PcapNGSlice};

use crate::kept::Kept;

/// Losses in a short queue and on a lossy line, with the reverse path captured separately.
pub const LOSSES: &str = r#"
schema = 1
run = { duration = "10 s", seed = 7 }

[link.access]
from = "sender"
to = "router"
rate = "1 Gbit/s"
duplex = true

[link.bottleneck]
from = "router"
to = "receiver"
rate = "10 Mbit/s"
delay = "10 ms"
queue = { kind = "fifo", limit = "20 packets" }
loss = 0.001
duplex = true

[flow.main]
from = "sender"
to = "receiver"
count = 2
"#;

pub fn scenario(text: &str) -> Arc<Scenario> {
    let plan = Document::parse("test.toml", text, &|_| Err("none".to_owned()))
        .and_then(|d| d.plan())
        .unwrap_or_else(|diagnostics| panic!("{diagnostics}"));
    Arc::new(plan.cells[0].scenario.clone())
}

/// Runs a scenario with a capture file for each group of links.
pub fn capture<const N: usize>(text: &str, files: [&[&str]; N]) -> (Records, [Vec<u8>; N]) {
    let scenario = scenario(text);
    let link =
        |name: &&str| scenario.links.iter().position(|l| l.name == *name).expect("it is there");
    let mut world = World::new(Arc::clone(&scenario));
    let kept = files.map(|names| {
        let kept = Kept::default();
        let links: Vec<usize> = names.iter().map(link).collect();
        world.capture(&links, Box::new(kept.clone())).expect("memory takes it");
        kept
    });
    let records = world.run(|_| true).expect("nothing stops it");
    (records, kept.map(|kept| kept.bytes()))
}

/// A captured packet.
pub struct Caught {
    pub at_ns: u128,
    pub interface: u32,
    pub comment: String,
    /// Headers, followed by zeros up to the packet's length.
    pub bytes: Vec<u8>,
}

impl Caught {
    pub fn tcp(&self) -> TcpSlice<'_> {
        match SlicedPacket::from_ip(&self.bytes).expect("it is whole").transport {
            Some(TransportSlice::Tcp(tcp)) => tcp,
            other => panic!("not TCP: {other:?}"),
        }
    }

    pub fn timestamps(&self) -> (u32, u32) {
        let found = self.tcp().options_iterator().find_map(|option| match option {
            Ok(TcpOptionElement::Timestamp(value, echo)) => Some((value, echo)),
            _ => None,
        });
        found.expect("it has timestamps")
    }

    pub fn was_dropped(&self) -> bool {
        self.comment.contains("dropped")
    }
}

pub fn read(file: &[u8]) -> Vec<Caught> {
    let mut caught = Vec::new();
    for block in PcapNGSlice::from_slice(file).expect("it begins well") {
        let block = block.expect("it goes on well");
        let PcapBlockOwned::NG(Block::EnhancedPacket(packet)) = block else { continue };
        let comment = packet.options.iter().find(|option| option.code == OptionCode::Comment);
        let comment = comment.and_then(|option| option.as_bytes().ok());
        let comment = comment.map(|text| String::from_utf8_lossy(text).into_owned());
        let mut bytes = packet.packet_data().to_vec();
        bytes.resize(packet.origlen as usize, 0);
        caught.push(Caught {
            at_ns: u128::from(packet.ts_high) << 32 | u128::from(packet.ts_low),
            interface: packet.if_id,
            comment: comment.unwrap_or_default(),
            bytes,
        });
    }
    caught
}

pub fn number(table: &Table, row: usize, column: &str) -> u64 {
    match table.column(column) {
        Some(ColumnData::U64(values)) => values[row],
        _ => panic!("no column `{column}`"),
    }
}

/// Row of the bottleneck in results: links are in the file's order, each followed by its reverse.
pub const BOTTLENECK: usize = 2;
