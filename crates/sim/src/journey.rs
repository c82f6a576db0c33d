//! Times of packets on their way from host to host.

use cwnd_quantity::{Duration, Time};

/// Times of a packet.
#[derive(Clone, Copy, Debug, Default)]
pub struct Journey {
    /// Time at which its host sent it.
    pub sent: Time,
    /// Sum of its sojourn times in queues.
    pub queued: Duration,
}
