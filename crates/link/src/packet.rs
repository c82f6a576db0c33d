/// A small packet handle as lines store it; its owner keeps the contents elsewhere.
pub trait Packet: cwnd_aqm::Packet + Copy {
    /// `true` if the packet carries payload.
    fn has_payload(&self) -> bool;
}
