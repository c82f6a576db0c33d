//! Captures that are kept in memory, and read back.

use cwnd_quantity::Time;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketOption;
use pcap_file::pcapng::{Block, PcapNgReader};

#[path = "../../../../sim/tests/capture/kept.rs"]
mod kept;

pub use kept::Kept;

/// A captured packet: its headers, or all of it, and what was said of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caught {
    pub at: Time,
    /// Which of the file's interfaces.
    pub interface: u32,
    pub headers: Vec<u8>,
    pub length: usize,
    pub comment: String,
}

impl Kept {
    /// All packets; none if nothing was captured.
    pub fn packets(&self) -> Vec<Caught> {
        let bytes = self.bytes();
        if bytes.is_empty() {
            return Vec::new();
        }
        let mut reader = PcapNgReader::new(&bytes[..]).expect("a pcapng file");
        let mut caught = Vec::new();
        while let Some(block) = reader.next_block() {
            if let Block::EnhancedPacket(packet) = block.expect("a block") {
                let comment = packet.options.iter().find_map(|option| match option {
                    EnhancedPacketOption::Comment(text) => Some(text.to_string()),
                    _ => None,
                });
                caught.push(Caught {
                    at: Time(packet.timestamp.as_nanos() as u64),
                    interface: packet.interface_id,
                    headers: packet.data.to_vec(),
                    length: packet.original_len as usize,
                    comment: comment.unwrap_or_default(),
                });
            }
        }
        caught
    }
}

/// Those of one of the file's interfaces.
pub fn of_interface(interface: u32, packets: &[Caught]) -> Vec<Caught> {
    packets.iter().filter(|caught| caught.interface == interface).cloned().collect()
}
