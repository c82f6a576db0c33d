//! Counters of both ends, and their names.

use core::ops::AddAssign;

use cwnd_cc::Cause;

/// What a sender counted, over the whole run.
// What each segment counts comes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct SenderCounters {
    /// Data segments sent, retransmissions included.
    pub segments_sent: u64,
    /// Their bytes on the wire.
    pub wire_bytes_sent: u64,
    /// Segments sent again.
    pub retransmissions: u64,
    /// Timeouts by how many in a row it was: first, second, …; the last counts that and all beyond.
    pub timeouts: [u64; TIMEOUT_RANKS],
    /// SYNs that timed out.
    pub syn_timeouts: u64,
    /// Window reductions but those of timeouts, by [`Cause::index`].
    pub reductions: [u64; Cause::COUNT],
    /// Losses found within a window that was already reduced for another cause, so that no other reduction followed.
    pub losses_in_cwr: u64,
    /// Reductions for a loss that were taken back, as what had been taken for lost came late.
    pub undone: u64,
    /// Probes of the tail (RFC 8985 § 7).
    pub tail_probes: u64,
    /// Timeouts that were taken back, as they were spurious.
    pub timeouts_undone: u64,
    /// ACKs that carried ECE.
    pub ece_acks: u64,
    /// Source quenches that were believed: about data that was outstanding, if that is looked at.
    pub quenches: u64,
    /// Those that were not.
    pub quenches_refused: u64,
    /// Those that made the pause between packets longer (RFC 1016).
    pub quench_pauses: u64,
    /// Probes of a closed receive window.
    pub window_probes: u64,
}

impl SenderCounters {
    /// Expiries of the retransmission timer, of SYNs and of data.
    #[must_use]
    pub fn expiries(&self) -> u64 {
        self.syn_timeouts + self.data_timeouts()
    }

    /// Those of data.
    #[must_use]
    pub fn data_timeouts(&self) -> u64 {
        self.timeouts.iter().sum()
    }

    /// Window reductions for a cause; those of timeouts are no part of any.
    #[must_use]
    pub const fn reductions_for(&self, cause: Cause) -> u64 {
        self.reductions[cause.index()]
    }

    /// Window reductions for source quenches.
    #[must_use]
    pub const fn reductions_for_quenches(&self) -> u64 {
        let [marked, dropped] =
            [Cause::Quench { marked: true, level: 0 }, Cause::Quench { marked: false, level: 0 }];
        self.reductions_for(marked) + self.reductions_for(dropped)
    }

    /// Tells all that the activity of a run has of it, by name: what may happen to any connection in any case, the rest if it
    /// happened.
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

/// Counts of two connections together.
impl AddAssign<&Self> for SenderCounters {
    fn add_assign(&mut self, other: &Self) {
        // Whoever adds a count is asked for it here.
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

/// What a receiver counted, over the whole run.
// What each segment and each ACK counts comes last: `READ_FROM`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct ReceiverCounters {
    /// Data segments that arrived with CE.
    pub ce_segments: u64,
    /// SYNs that arrived.
    pub syns: u64,
    /// Data segments that brought nothing new.
    pub duplicates: u64,
    /// Payload bytes handed to the application, in order, each once.
    pub delivered_bytes: u64,
    /// Data segments that arrived, duplicates included.
    pub segments: u64,
    /// Their bytes on the wire.
    pub wire_bytes: u64,
    /// ACKs sent.
    pub acks_sent: u64,
}

impl ReceiverCounters {
    /// Offset of what each segment counts, in bytes.
    pub(crate) const READ_FROM: usize = core::mem::offset_of!(Self, delivered_bytes);

    /// Tells all that the activity of a run has of it, by name.
    pub fn count(&self, each: &mut dyn FnMut(&'static str, u64)) {
        each("ce_received", self.ce_segments);
        if self.duplicates > 0 {
            each("duplicate_segments", self.duplicates);
        }
    }
}

/// Counts of two connections together.
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

/// How many of [`SenderCounters::timeouts`] are told apart.
pub const TIMEOUT_RANKS: usize = 5;

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
