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

/// Transit time of the last data packet of a flow that arrived.
#[derive(Clone, Copy, Debug)]
pub struct LastTransit(Duration);

/// Value of [`LastTransit`] before the first packet.
const NONE: Duration = Duration::MAX;

impl Default for LastTransit {
    fn default() -> Self {
        Self(NONE)
    }
}

impl LastTransit {
    /// Takes the next packet that arrives; returns the absolute difference of its transit time and
    /// the last, |D(i−1, i)| of RFC 3550 § 6.4.1, or `None` for the first packet.
    #[inline]
    pub fn next(&mut self, now: Time, packet: Journey) -> Option<Duration> {
        let transit = now.since(packet.sent);
        let last = core::mem::replace(&mut self.0, transit);
        (last != NONE).then(|| Duration(transit.0.abs_diff(last.0)))
    }
}
