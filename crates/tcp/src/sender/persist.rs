//! Probes of a receive window that is closed, or too small for a segment (RFC 9293 §
//! 3.8.6).

use cwnd_packet::{Ecn, Header, Range};
use cwnd_quantity::{Duration, Time};

use super::Sender;
use crate::probing::WindowProbe;
use crate::segment::{Body, Flags, Segment};

impl Sender {
    /// Nothing is outstanding, and the window lets nothing go: the first probe follows after the
    /// timeout (RFC 9293 § 3.8.6.1, SHLD-29).
    #[cold]
    pub(super) fn wait_for_the_window(&mut self, now: Time) {
        if self.seq.high() == self.seq.una() && self.persist.is_off() {
            // Probes go before anything could end a state that is held.
            self.recovery.end();
            self.persist.start();
            self.rto.set(now + self.probe_interval());
        }
    }

    pub(super) const fn on_persist_timeout(&mut self) {
        self.rto.stop();
        self.persist.on_expiry(self.seq.una() < self.seq.app_end());
    }

    /// One byte of new data, or as many as a window smaller than a segment takes (§ 3.8.6.2.1 (4):
    /// the override).
    #[cold]
    pub(super) fn send_probe(&mut self, now: Time) -> Segment {
        self.persist.on_probe();
        self.rto.set(now + self.probe_interval());
        let before = self.config.params.probing.window_probe == WindowProbe::Before;
        if before && self.seq.rwnd() == 0 && self.seq.una() > 0 {
            return self.empty_probe(now);
        }
        let len =
            self.seq.rwnd().clamp(1, self.config.mss.min(self.seq.app_end() - self.seq.una()));
        let before = self.seq.high();
        let again = before > self.seq.una();
        self.seq.on_probe(len);
        // Karn: which of the probes was answered cannot be told.
        self.rtt.on_retransmission();
        self.pacer.on_sent(now);
        let wire = len as u16 + self.config.header;
        self.counters.segments_sent += 1;
        self.counters.wire_bytes_sent += u64::from(wire);
        self.counters.window_probes += 1;
        if again {
            self.counters.retransmissions += 1;
            let range = Range { start: self.seq.una(), end: (self.seq.una() + len).min(before) };
            self.sent.count_again(range, self.seq.una());
        }
        Segment {
            seq: self.seq.una(),
            ts: self.rtt.stamp(now),
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
    /// It is no data: how long the connection was idle counts from what went before it (Linux,
    /// `tcp_ack_update_window`).
    fn empty_probe(&mut self, now: Time) -> Segment {
        let wire = self.config.header;
        self.counters.segments_sent += 1;
        self.counters.wire_bytes_sent += u64::from(wire);
        self.counters.window_probes += 1;
        Segment {
            seq: self.seq.una() - 1,
            ts: self.rtt.stamp(now),
            len: 0,
            wire,
            flags: Flags::default(),
            ecn: Ecn::NotEct,
            body: Body::Data { header: Header::None, again: false },
        }
    }

    /// An ACK came while the window was closed; SND.WND is up to date. Returns whether there is
    /// nothing else in it.
    #[cold]
    pub(super) fn on_ack_of_probe(&mut self, now: Time, ack: u64) -> bool {
        let advances = ack > self.seq.una();
        let open =
            self.seq.rwnd() >= self.config.mss.min(self.seq.app_end().saturating_sub(ack)).max(1);
        self.persist.on_ack(open, advances, advances && self.seq.rwnd() > 0);
        if open && !advances {
            // What the receiver has not taken of the probe is sent anew, in a whole segment.
            if self.seq.high() > self.seq.una() {
                let range = Range { start: self.seq.una(), end: self.seq.high() };
                self.sent.count_again(range, self.seq.una());
            }
            self.seq.take_probe_back();
            self.rto.stop();
        } else if !advances && self.config.params.probing.probe_answer_restarts {
            self.rto.set(now + self.probe_interval());
        }
        // RFC 5681 § 2: an ACK of a probe is no duplicate.
        !advances
    }

    /// The time between probes grows as the timeout does (SHLD-30).
    fn probe_interval(&self) -> Duration {
        let policy = self.config.rto;
        debug_assert!(self.recovery.is_open());
        policy.timeout(policy.base(self.rtt.estimate()), self.persist.doublings())
    }
}
