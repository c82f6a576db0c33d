//! Counters of senders and receivers with their names in results, and sums of delays.

use core::ops::AddAssign;

use cwnd_cc::Cause;
use cwnd_quantity::Duration;

/// Counters of a sender, over the whole run.
// Counters that each segment increments come first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct SenderCounters {
    /// Data segments sent, retransmissions and window probes included.
    pub segments_sent: u64,
    /// Bytes on the wire of these segments; not counted by QUIC.
    pub wire_bytes_sent: u64,
    /// Retransmitted segments.
    pub retransmissions: u64,
    /// Timeouts of data (PTOs of QUIC) by their rank in a row: first, second, …; the last entry
    /// counts all higher ranks, too.
    pub timeouts: [u64; TIMEOUT_RANKS],
    /// SYNs that timed out.
    pub syn_timeouts: u64,
    /// Window reductions except those of timeouts, by [`Cause::index`].
    pub reductions: [u64; Cause::COUNT],
    /// Fast recoveries in a window that was already reduced for another cause, so that no further
    /// reduction followed.
    pub losses_in_cwr: u64,
    /// Undos because an echo or D-SACKs showed that the original data arrived, except those during
    /// the repair of a timeout. After an ECN-echo the reduction itself stays.
    pub undone: u64,
    /// Tail loss probes (RFC 8985 § 7).
    pub tail_probes: u64,
    /// Spurious timeouts that were undone.
    pub timeouts_undone: u64,
    /// ACKs with ECE, except old ones and answers to window probes that acknowledge nothing new.
    /// QUIC: ACKs of new packets that reported more CE marks.
    pub ece_acks: u64,
    /// Source quenches accepted: those about outstanding data, if that is checked. They count even
    /// if the sender does not obey them.
    pub quenches: u64,
    /// Source quenches refused: about no outstanding data, or after too many such quenches in a
    /// round trip.
    pub quenches_refused: u64,
    /// Source quenches that lengthened the pause between packets (RFC 1016).
    pub quench_pauses: u64,
    /// Probes of a closed receive window sent.
    pub window_probes: u64,
}

impl SenderCounters {
    /// Returns the expiries of the retransmission timer, of SYNs and data.
    #[must_use]
    pub fn expiries(&self) -> u64 {
        self.syn_timeouts + self.data_timeouts()
    }

    /// Returns the expiries of the retransmission timer of data.
    #[must_use]
    pub fn data_timeouts(&self) -> u64 {
        self.timeouts.iter().sum()
    }

    /// Returns the window reductions for a cause; reductions by timeouts are not included.
    #[must_use]
    pub const fn reductions_for(&self, cause: Cause) -> u64 {
        self.reductions[cause.index()]
    }

    /// Returns the window reductions for source quenches, of marked and of dropped packets.
    #[must_use]
    pub const fn reductions_for_quenches(&self) -> u64 {
        let [marked, dropped] =
            [Cause::Quench { marked: true, level: 0 }, Cause::Quench { marked: false, level: 0 }];
        self.reductions_for(marked) + self.reductions_for(dropped)
    }

    /// Reports counters by their names in a run's activity: the common ones always, the rare ones
    /// if they are positive.
    pub fn count(&self, each: &mut dyn FnMut(&'static str, u64)) {
        each("ece_acks", self.ece_acks);
        each("ecn_reductions", self.reductions_for(Cause::Ecn));
        each("loss_reductions", self.reductions_for(Cause::Loss));
        each("losses_in_ecn_window", self.losses_in_cwr);
        each("retransmissions", self.retransmissions);
        each("timeouts", self.timeouts.iter().sum());
        each("timeouts_in_a_row", self.timeouts[1..].iter().sum());
        each("syn_timeouts", self.syn_timeouts);
        let rare = [
            ("loss_reductions_undone", self.undone),
            ("tail_loss_probes", self.tail_probes),
            ("timeouts_undone", self.timeouts_undone),
            ("delay_reductions", self.reductions_for(Cause::Delay)),
            (
                "quench_reductions_marked",
                self.reductions_for(Cause::Quench { marked: true, level: 0 }),
            ),
            (
                "quench_reductions_dropped",
                self.reductions_for(Cause::Quench { marked: false, level: 0 }),
            ),
            ("load_reductions", self.reductions_for(Cause::Load)),
            ("quenches", self.quenches),
            ("quenches_refused", self.quenches_refused),
            ("quench_pauses", self.quench_pauses),
        ];
        for (name, count) in rare.into_iter().filter(|&(_, count)| count > 0) {
            each(name, count);
        }
    }
}

/// Adds the counters of two connections.
impl AddAssign<&Self> for SenderCounters {
    fn add_assign(&mut self, other: &Self) {
        // A new counter must be added here: the pattern names all fields.
        let Self {
            segments_sent,
            wire_bytes_sent,
            retransmissions,
            timeouts,
            syn_timeouts,
            reductions,
            losses_in_cwr,
            undone,
            tail_probes,
            timeouts_undone,
            ece_acks,
            quenches,
            quenches_refused,
            quench_pauses,
            window_probes,
        } = other;
        self.segments_sent += segments_sent;
        self.wire_bytes_sent += wire_bytes_sent;
        self.retransmissions += retransmissions;
        self.timeouts.iter_mut().zip(timeouts).for_each(|(sum, n)| *sum += n);
        self.syn_timeouts += syn_timeouts;
        self.reductions.iter_mut().zip(reductions).for_each(|(sum, n)| *sum += n);
        self.losses_in_cwr += losses_in_cwr;
        self.undone += undone;
        self.tail_probes += tail_probes;
        self.timeouts_undone += timeouts_undone;
        self.ece_acks += ece_acks;
        self.quenches += quenches;
        self.quenches_refused += quenches_refused;
        self.quench_pauses += quench_pauses;
        self.window_probes += window_probes;
    }
}

/// Counters of a receiver, over the whole run.
// Counters that most segments or ACKs increment come last: `READ_FROM`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct ReceiverCounters {
    /// Data segments that arrived with CE; QUIC leaves out packets dropped as possible duplicates.
    pub ce_segments: u64,
    /// SYNs that arrived.
    pub syns: u64,
    /// Data segments that brought nothing new. QUIC: also packets dropped as possible duplicates.
    pub duplicates: u64,
    /// Payload bytes delivered to the application, in order, each once.
    pub delivered_bytes: u64,
    /// Data segments that arrived, duplicates included.
    pub segments: u64,
    /// Bytes on the wire of these segments.
    pub wire_bytes: u64,
    /// ACKs sent, without SYN-ACKs. A divided ACK counts once, and so does a delayed ACK that data
    /// carries.
    pub acks_sent: u64,
}

impl ReceiverCounters {
    /// Offset in bytes of the counters that most segments or ACKs increment.
    pub(crate) const READ_FROM: usize = core::mem::offset_of!(Self, delivered_bytes);

    /// Reports counters by their names in a run's activity; duplicates only if there are any.
    pub fn count(&self, each: &mut dyn FnMut(&'static str, u64)) {
        each("ce_received", self.ce_segments);
        if self.duplicates > 0 {
            each("duplicate_segments", self.duplicates);
        }
    }
}

/// Adds the counters of two connections.
impl AddAssign<&Self> for ReceiverCounters {
    fn add_assign(&mut self, other: &Self) {
        let Self {
            delivered_bytes,
            segments,
            wire_bytes,
            ce_segments,
            acks_sent,
            syns,
            duplicates,
        } = other;
        self.delivered_bytes += delivered_bytes;
        self.segments += segments;
        self.wire_bytes += wire_bytes;
        self.ce_segments += ce_segments;
        self.acks_sent += acks_sent;
        self.syns += syns;
        self.duplicates += duplicates;
    }
}

/// Number of ranks that [`SenderCounters::timeouts`] distinguishes.
pub const TIMEOUT_RANKS: usize = 5;

/// Sums for the mean and the minimum of packet delays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delays {
    /// Number of delays.
    pub count: u64,
    /// Sum of the delays.
    pub sum: Duration,
    /// Wire bytes of their packets; 0 for RTT samples.
    pub wire_bytes: u64,
    /// Minimum delay, also from before the counting period; `None` before the first.
    pub least: Option<Duration>,
}

impl Delays {
    /// Adds the delay of a packet of `wire` bytes.
    pub(crate) fn add(&mut self, delay: Duration, wire: u16) {
        self.count += 1;
        self.sum = Duration(self.sum.0.saturating_add(delay.0));
        self.wire_bytes += u64::from(wire);
        self.least = Some(self.least.map_or(delay, |least| least.min(delay)));
    }

    /// Starts the counting period; the minimum stays.
    pub(crate) const fn begin_counting(&mut self) {
        self.count = 0;
        self.sum = Duration::ZERO;
        self.wire_bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_never_happens_to_most_connections_is_told_only_where_it_did() {
        let mut counters = SenderCounters { ece_acks: 3, ..SenderCounters::default() };
        let told = |counters: &SenderCounters| {
            let mut told = Vec::new();
            counters.count(&mut |name, count| told.push((name, count)));
            told
        };
        assert_eq!(told(&counters).len(), 8);
        let mut other = SenderCounters { quenches: 2, ece_acks: 1, ..SenderCounters::default() };
        other.reductions[Cause::Delay.index()] = 5;
        counters += &other;
        let told = told(&counters);
        assert_eq!(told[0], ("ece_acks", 4));
        assert_eq!(told[8..], [("delay_reductions", 5), ("quenches", 2)]);
    }
}
