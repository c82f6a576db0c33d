//! Persist timer: zero-window probes, and probes of a receive window smaller than a segment (RFC
//! 9293 § 3.8.6).

use cwnd_packet::{CongestionHeader, Ecn, Range};
use cwnd_quantity::{Duration, Time};

use super::Sender;
use crate::params::WindowProbe;
use crate::segment::{Body, Flags, Segment};

/// State of zero-window probing. It is used only while nothing but a probe is outstanding: earlier
/// data has the retransmission timer, and its retransmissions probe the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Off,
    /// The timer runs until the next probe.
    Waiting,
    /// The next segment is a probe.
    Due,
}

/// The persist timer (RFC 9293 § 3.8.6.1): probes of a closed receive window.
#[derive(Clone, Copy, Debug)]
pub(super) struct PersistTimer {
    state: State,
    /// Probes since the window closed, at most 255: the interval reaches its bound long before.
    probes: u8,
}

impl PersistTimer {
    pub const OFF: Self = Self { state: State::Off, probes: 0 };

    #[inline]
    pub fn is_off(self) -> bool {
        self.state == State::Off
    }

    /// `true` if the next segment is a probe.
    #[inline]
    pub fn is_due(self) -> bool {
        self.state == State::Due
    }

    /// Starts the wait for the first probe.
    pub const fn start(&mut self) {
        self.state = State::Waiting;
    }

    /// Processes an expiry. The next segment is a probe if the receive window holds data back
    /// (`waits`).
    pub const fn on_expiry(&mut self, waits: bool) {
        self.state = if waits { State::Due } else { State::Off };
    }

    /// Counts a probe that is sent, and starts the wait for the next.
    pub const fn on_probe(&mut self) {
        self.state = State::Waiting;
        self.probes = self.probes.saturating_add(1);
    }

    /// Processes an ACK: the window has room for a segment (`open`), or data is acknowledged
    /// (`advances`). With `partly_open` the window is smaller than a segment: the next wait is the
    /// override timeout, without backoff.
    pub const fn on_ack(&mut self, open: bool, advances: bool, partly_open: bool) {
        if open || partly_open {
            self.probes = 0;
        }
        if open || advances {
            self.state = State::Off;
        }
    }

    /// Doublings of the interval between probes.
    pub const fn doublings(self) -> u32 {
        self.probes as u32
    }
}

impl Sender {
    /// Starts the persist timer if nothing is outstanding; the receive window holds all data back.
    /// The first probe follows after one RTO (RFC 9293 § 3.8.6.1, SHLD-29).
    #[cold]
    pub(super) fn start_persist_timer(&mut self, now: Time) {
        if self.seq.high() == self.seq.una() && self.persist.is_off() {
            // Ends a recovery that is held after all data is acknowledged: probes are sent before
            // new data could end it.
            self.recovery.end();
            self.persist.start();
            self.rto.set(now + self.probe_interval());
        }
    }

    pub(super) const fn on_persist_timeout(&mut self) {
        self.rto.stop();
        self.persist.on_expiry(self.seq.una() < self.seq.app_end());
    }

    /// Sends a window probe: the byte at SND.UNA, or as many bytes as a window smaller than a
    /// segment accepts (§ 3.8.6.2.1 (4), the override timeout). With `window_probe = "before"` a
    /// probe of a closed window has no data, except at the first byte.
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
        // Karn's algorithm: it is ambiguous which probe an ACK answers.
        self.rtt.on_retransmission();
        self.pacer.on_sent(now);
        let wire = len as u16 + self.config.header;
        self.counters.segments_sent += 1;
        self.counters.wire_bytes_sent += u64::from(wire);
        self.counters.window_probes += 1;
        if again {
            self.counters.retransmissions += 1;
            let range = Range { start: self.seq.una(), end: (self.seq.una() + len).min(before) };
            self.sent.count_retransmission(range, self.seq.una());
        }
        Segment {
            seq: self.seq.una(),
            ts: self.rtt.stamp(now),
            len: len as u32,
            wire,
            // RFC 3168 § 6.1.6: neither ECT nor CWR, as the loss of a probe is not detected.
            flags: Flags::default(),
            ecn: Ecn::NotEct,
            body: Body::Data { header: CongestionHeader::None, again },
        }
    }

    /// Sends a probe without data, numbered below SND.UNA, which the receiver must answer
    /// (§ 3.10.7.4).
    ///
    /// It does not count as a transmission for the idle time (Linux `tcp_ack_update_window`).
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
            body: Body::Data { header: CongestionHeader::None, again: false },
        }
    }

    /// Processes an ACK while the persist timer is in use, with SND.WND up to date. Returns `true`
    /// if the ACK needs no further processing.
    #[cold]
    pub(super) fn on_ack_of_probe(&mut self, now: Time, ack: u64) -> bool {
        let advances = ack > self.seq.una();
        let open =
            self.seq.rwnd() >= self.config.mss.min(self.seq.app_end().saturating_sub(ack)).max(1);
        self.persist.on_ack(open, advances, advances && self.seq.rwnd() > 0);
        if open && !advances {
            // Data of the probe that the receiver did not accept is sent again, in a whole segment.
            if self.seq.high() > self.seq.una() {
                let range = Range { start: self.seq.una(), end: self.seq.high() };
                self.sent.count_retransmission(range, self.seq.una());
            }
            self.seq.take_probe_back();
            self.rto.stop();
        } else if !advances && self.config.params.probing.probe_answer_restarts {
            self.rto.set(now + self.probe_interval());
        }
        // RFC 5681 § 2: an ACK of a probe is no duplicate.
        !advances
    }

    /// Interval to the next probe, which backs off like the RTO (SHLD-30).
    fn probe_interval(&self) -> Duration {
        let policy = self.config.rto;
        debug_assert!(self.recovery.is_open());
        policy.timeout(policy.base(self.rtt.estimate()), self.persist.doublings())
    }
}
