//! Sizes of packets.

use cwnd_quantity::Bytes;
use cwnd_schema::Schema;

/// Sizes of packets.
#[derive(Clone, Debug, PartialEq, Schema)]
pub struct Params {
    /// Payload of a full segment. Serves experiments on closed forms and setups of papers in
    /// packets of 1000 B.
    #[default(Bytes(1448), "1500 B Ethernet − 20 B IPv4 − 20 B TCP − 12 B timestamps")]
    #[bounds(from Bytes(1), up_to Bytes(65_535); "a segment carries some payload")]
    pub mss: Bytes,
    /// Headers added to each data segment on the wire. Serves experiments on setups of papers whose
    /// packet sizes include the headers, and explicit feedback, which adds to them.
    #[default(Bytes(52), "IPv4 20 B + TCP 20 B + timestamps 12 B")]
    #[bounds(up_to Bytes(1_000))]
    pub header: Bytes,
    /// Wire size of a SYN, and of an ACK without the option of an `echo`. Serves experiments on
    /// setups of papers, and congestion on the path of ACKs.
    #[default(Bytes(52), "IPv4 20 B + TCP 20 B + timestamps 12 B")]
    #[bounds(from Bytes(1), up_to Bytes(65_535))]
    pub ack_size: Bytes,
}
