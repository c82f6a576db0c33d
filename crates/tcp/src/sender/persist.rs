//! What a sender does about a receive window that is closed, or too small for a segment (RFC 9293 § 3.8.6).

use cwnd_quantity::{Duration, Ecn, Header, Time};

use super::{Sender, State};
use crate::probing::WindowProbe;
use crate::ranges::Range;
use crate::segment::{Body, Flags, Segment};

/// Whether a closed window is being probed. Only while nothing but a probe is outstanding: what was sent before has the
/// retransmission timer, and its retransmissions probe as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Persist {
    Off,
    /// The timer runs until the next probe.
    Waiting,
    /// The next segment is a probe.
    Due,
}

impl Sender {
    /// Nothing is outstanding, and the window lets nothing go: the first probe follows after the timeout (RFC 9293
    /// § 3.8.6.1, SHLD-29).
    #[cold]
    pub(super) fn wait_for_the_window(&mut self, now: Time) {
        if self.high == self.una && self.persist == Persist::Off {
            self.end_held_state();
            self.persist = Persist::Waiting;
            self.rto_deadline = now + self.probe_interval();
        }
    }

    pub(super) const fn on_persist_timeout(&mut self) {
        self.rto_deadline = Time::NEVER;
        self.persist = if self.una < self.app_end { Persist::Due } else { Persist::Off };
    }

    /// One byte of new data, or as many as a window smaller than a segment takes (§ 3.8.6.2.1 (4): the override).
    #[cold]
    pub(super) fn send_probe(&mut self, now: Time) -> Segment {
        self.persist = Persist::Waiting;
        self.probes += 1;
        self.rto_deadline = now + self.probe_interval();
        let before = self.config.params.probing.window_probe == WindowProbe::Before;
        if before && self.rwnd == 0 && self.una > 0 {
            return self.empty_probe(now);
        }
        let len = self.rwnd.clamp(1, self.config.mss.min(self.app_end - self.una));
        let before = self.high;
        let again = before > self.una;
        self.nxt = self.nxt.max(self.una + len);
        self.high = self.high.max(self.nxt);
        // Karn: which of the probes was answered cannot be told.
        self.timed.forget();
        self.last_sent = now;
        let wire = len as u16 + self.config.header;
        self.counters.segments_sent += 1;
        self.counters.wire_bytes_sent += u64::from(wire);
        self.counters.window_probes += 1;
        if again {
            self.counters.retransmissions += 1;
            let range = Range { start: self.una, end: (self.una + len).min(before) };
            self.sent.count_again(range, self.una);
        }
        Segment {
            seq: self.una,
            ts: self.stamp(now),
            len: len as u32,
            wire,
            // RFC 3168 § 6.1.6: neither ECT nor CWR, for the loss of a probe is not noticed.
            flags: Flags::default(),
            ecn: Ecn::NotEct,
            body: Body::Data { header: Header::None, again },
        }
    }

    /// A segment without data, below what the receiver expects: it must be answered (§ 3.10.7.4).
    ///
    /// It is no data: how long the connection was idle counts from what went before it (Linux, `tcp_ack_update_window`).
    fn empty_probe(&mut self, now: Time) -> Segment {
        let wire = self.config.header;
        self.counters.segments_sent += 1;
        self.counters.wire_bytes_sent += u64::from(wire);
        self.counters.window_probes += 1;
        Segment {
            seq: self.una - 1,
            ts: self.stamp(now),
            len: 0,
            wire,
            flags: Flags::default(),
            ecn: Ecn::NotEct,
            body: Body::Data { header: Header::None, again: false },
        }
    }

    /// An ACK came while the window was closed; SND.WND is up to date. Returns whether there is nothing else in it.
    #[cold]
    pub(super) fn on_ack_of_probe(&mut self, now: Time, ack: u64) -> bool {
        let advances = ack > self.una;
        let open = self.rwnd >= self.config.mss.min(self.app_end.saturating_sub(ack)).max(1);
        if open || advances && self.rwnd > 0 {
            // What waits for the override timeout is no probe of a closed window.
            self.probes = 0;
        }
        if open || advances {
            self.persist = Persist::Off;
        }
        if open && !advances {
            // What the receiver has not taken of the probe is sent anew, in a whole segment.
            if self.high > self.una {
                let range = Range { start: self.una, end: self.high };
                self.sent.count_again(range, self.una);
            }
            self.nxt = self.una;
            self.high = self.una;
            self.rto_deadline = Time::NEVER;
        } else if !advances && self.config.params.probing.probe_answer_restarts {
            self.rto_deadline = now + self.probe_interval();
        }
        // RFC 5681 § 2: an ACK of a probe is no duplicate.
        !advances
    }

    /// The time between probes grows as the timeout does (SHLD-30).
    fn probe_interval(&self) -> Duration {
        let policy = self.config.rto;
        debug_assert!(matches!(self.recovery, State::Open));
        policy.timeout(policy.base(self.rtt.estimate()), self.probes)
    }
}
