/// What a line must know of a packet besides what its queue must: few words, which name the rest where it waits.
pub trait Packet: cwnd_aqm::Packet + Copy {
    /// Whether it carries payload.
    fn has_payload(&self) -> bool;
}
