//! Captures in memory, and their packets.

use cwnd_quantity::Time;
use pcap_parser::pcapng::OptionCode;
use pcap_parser::traits::PcapNGPacketBlock as _;
use pcap_parser::{Block, PcapBlockOwned, PcapNGSlice};

#[path = "../../../../sim/tests/capture/kept.rs"]
mod kept;

pub use kept::Kept;

/// A captured packet: its headers or all of it, and its comment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caught {
    pub at: Time,
    /// Number of the interface in the file.
    pub interface: u32,
    pub headers: Vec<u8>,
    pub length: usize,
    pub comment: String,
}

impl Kept {
    /// Returns all packets; none if nothing was captured.
    pub fn packets(&self) -> Vec<Caught> {
        let bytes = self.bytes();
        if bytes.is_empty() {
            return Vec::new();
        }
        let mut caught = Vec::new();
        for block in PcapNGSlice::from_slice(&bytes).expect("a pcapng file") {
            if let PcapBlockOwned::NG(Block::EnhancedPacket(packet)) = block.expect("a block") {
                let comment = packet.options.iter().find(|o| o.code == OptionCode::Comment);
                let comment = comment.and_then(|option| option.as_bytes().ok());
                let comment = comment.map(|text| String::from_utf8_lossy(text).into_owned());
                caught.push(Caught {
                    at: Time(u64::from(packet.ts_high) << 32 | u64::from(packet.ts_low)),
                    interface: packet.if_id,
                    headers: packet.packet_data().to_vec(),
                    length: packet.origlen as usize,
                    comment: comment.unwrap_or_default(),
                });
            }
        }
        caught
    }
}

/// Returns the packets of one interface of the file.
pub fn of_interface(interface: u32, packets: &[Caught]) -> Vec<Caught> {
    packets.iter().filter(|caught| caught.interface == interface).cloned().collect()
}
