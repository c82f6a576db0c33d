//! The tail loss probe (RFC 8985 § 7).

use cwnd_quantity::Time;

use crate::ranges::Range;

/// A tail loss probe.
#[derive(Clone, Copy, Debug, Default)]
pub struct TailLossProbe {
    /// `true` if it goes now.
    pub due: bool,
    /// Until this is acknowledged there is no other (TLP.end_seq).
    pub until: Option<u64>,
    /// `true` if it was no new data (TLP.is_retrans).
    pub again: bool,
    /// `true` if a D-SACK reported that what it sent again had arrived.
    pub told: bool,
    /// Data that it sent again and when, while that is in flight.
    pub under_way: Option<(Range, Time)>,
}
