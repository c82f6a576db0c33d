//! Reductions without losses to repair: ECN-echoes (RFC 3168 § 6.1.2), requests of controllers, and
//! source quenches: their validation (RFC 5927 § 4, RFC 6633), and the response (BECN § IV-B, or
//! RFC 1016).

use cwnd_cc::{Cause, Controller as _, Path, Phase, Signal};
use cwnd_quantity::{Duration, Time};

use super::Sender;
use crate::params::quench::{Params, SquidParams};
use crate::params::{EchoAtOne, FlightSize, QuenchAnswer, QuenchCheck};
use crate::prr::{Prr, PrrRule};

/// ECN state of the sender (RFC 3168 § 6.1.2).
#[derive(Clone, Copy, Debug)]
pub(super) struct EcnSender {
    /// `true` after a reduction if CWR is in use: the next ECN-capable segment carries it.
    cwr_pending: bool,
    /// `true` if the last ECN-echo reduced a window that was below two segments: the sender waits
    /// ([`EcnSender::wait_at_one`]); `false` with [`EchoAtOne::Sends`].
    waits_at_one: bool,
    /// `true` until the first reduction, and from a timeout to the next reduction if
    /// `ecn_after_timeout` is set: the next ECN-echo counts, whatever it acknowledges.
    next_ece_counts: bool,
    /// Consecutive ECN-echoes that found a window of at most one segment, at most 255: the wait
    /// reaches its bound long before.
    echoes_at_one: u8,
}

impl EcnSender {
    pub const NEW: Self =
        Self { cwr_pending: false, waits_at_one: false, next_ece_counts: true, echoes_at_one: 0 };

    /// Sets CWR for the next ECN-capable segment if `says`; clears it otherwise.
    pub const fn set_cwr(&mut self, says: bool) {
        self.cwr_pending = says;
    }

    /// Takes the pending CWR: `true` if this segment carries it.
    #[inline]
    pub const fn take_cwr(&mut self) -> bool {
        core::mem::replace(&mut self.cwr_pending, false)
    }

    /// Sets if the next ECN-echo counts whatever it acknowledges.
    pub const fn set_next_ece_counts(&mut self, counts: bool) {
        self.next_ece_counts = counts;
    }

    pub const fn next_ece_counts(self) -> bool {
        self.next_ece_counts
    }

    /// Ends the wait at one segment, as an ECN-echo arrived.
    pub const fn stop_waiting(&mut self) {
        self.waits_at_one = false;
    }

    #[inline]
    pub const fn waits_at_one(self) -> bool {
        self.waits_at_one
    }

    /// Starts the wait after an ECN-echo at a window below two segments. `one`: the window is at
    /// most one segment. `in_a_row`: the echo is for the segment sent right after the last
    /// reduction.
    pub const fn wait_at_one(&mut self, one: bool, in_a_row: bool) {
        self.waits_at_one = true;
        self.echoes_at_one = match (one, in_a_row) {
            (false, _) => 0,
            (true, true) => self.echoes_at_one.saturating_add(1),
            (true, false) => 1,
        };
    }

    /// Doublings of the wait at one segment.
    pub const fn doublings(self) -> u32 {
        self.echoes_at_one.saturating_sub(1) as u32
    }
}

impl Sender {
    /// Reduces the window at the controller's request, at most once per window of data, and not
    /// during a recovery.
    #[cold]
    pub(super) fn on_request(&mut self, path: &Path, cause: Cause) {
        if self.recovery.is_open() && self.seq.una() > self.recovery.last_reduction() {
            self.reduce(path, cause);
        }
    }

    /// Reduces the window for a cause without losses, and starts the round trip without further
    /// reductions.
    #[cold]
    pub(super) fn reduce(&mut self, path: &Path, cause: Cause) {
        let before = self.cc.window().cwnd;
        self.cc.on_signal(path, Signal::Reduce(cause));
        self.space_from_last();
        let params = &self.config.params;
        let recovers = params.ecn.ecn_in_recovery && self.recovery.is_fast();
        let by_quench = matches!(cause, Cause::Quench { .. });
        // Linux has no such cause for quenches, delays and loads: its controllers set the window
        // themselves, at once.
        let spreads = !by_quench && !matches!(cause, Cause::Delay | Cause::Load);
        if params.prr.prr && params.prr.prr_on_ecn && spreads && !recovers {
            self.begin_spreading(before);
        }
        self.counters.reductions[cause.index()] += 1;
        self.recovery.on_reduction(self.seq.high());
        self.ecn.set_next_ece_counts(false);
        // Linux has no quenches: its controllers set the window themselves, at once, and the
        // receiver sees no CWR.
        if by_quench && self.config.params.prr.prr_on_ecn {
            self.quenches.on_reduction(self.seq.high());
        } else {
            self.ecn.set_cwr(self.config.params.says_cwr());
        }
    }

    /// Starts proportional rate reduction of a reduction without losses, over one round trip.
    fn begin_spreading(&mut self, before: u64) {
        // With nothing outstanding no ACK would ever allow a transmission.
        if self.seq.high() == self.seq.una() || self.cc.is_rate_based() {
            return;
        }
        let rule = self.config.params.prr.prr_rule;
        let recover_fs = self.recover_fs(before);
        let room = before.saturating_sub(self.in_flight());
        self.recovery.begin_cwr(Prr::without_loss(rule, recover_fs, self.config.mss, room));
    }

    /// RecoverFS of a reduction that just happened, bytes, without losses or under Linux's rule.
    /// For FreeBSD it is all that is outstanding, otherwise the window `before` (`prior_cwnd`). If
    /// more than the window was outstanding, a controller that takes its share of FlightSize may
    /// leave a threshold above that window. RecoverFS then is all that is outstanding: in
    /// proportion to the window each delivered segment would send several.
    pub(super) fn recover_fs(&self, before: u64) -> u64 {
        let outstanding = self.seq.outstanding();
        match self.config.params.prr.prr_rule {
            PrrRule::RoundedUp => outstanding,
            _ if self.cc.window().ssthresh > before => before.max(outstanding),
            _ => before,
        }
    }

    /// Starts a round trip of CWR after an ECN-echo of congestion that a quench reported before. In
    /// Linux, whose state is still Open, `tcp_enter_cwr` does so: the window stays, and does not
    /// grow meanwhile.
    #[cold]
    fn on_ece_after_quench(&mut self, ack: u64) {
        let params = &self.config.params;
        let until = self.quenches.reduced_until();
        let last = self.recovery.last_reduction();
        let open = self.recovery.is_open() && self.recovery.cwr().is_none();
        if !open || until != Some(last) || ack > last || !params.prr.prr {
            return;
        }
        self.begin_spreading(self.cc.window().cwnd);
        self.recovery.on_reduction(self.seq.high());
        self.ecn.set_cwr(self.config.params.says_cwr());
    }

    /// Processes an ECN-echo: it reduces once per window of data, and not a window that a loss has
    /// already reduced (RFC 3168 § 6.1.2), unless `ecn_in_loss`, `ecn_after_timeout` or
    /// `ecn_in_recovery` asks for it.
    #[cold]
    pub(super) fn on_ece(&mut self, now: Time, ack: u64) {
        self.counters.ece_acks += 1;
        if self.config.params.ecn.ecn && self.config.params.ecn.obey_ece {
            // Linux `tcp_fastretrans_alert`, A.
            self.undo.keep_reduction();
        }
        self.ecn.stop_waiting();
        let answers = self.ece_reduces(ack);
        let params = &self.config.params;
        if !params.ecn.ecn || !params.ecn.obey_ece {
            return;
        }
        if !answers {
            self.on_ece_after_quench(ack);
            return;
        }
        let mss = self.config.mss;
        let before = self.cc.window().cwnd;
        let mut path = self.path(now);
        if params.recovery.flight_size == FlightSize::Pipe {
            path.flight_size = path.flight_size.saturating_sub(ack - self.seq.una());
        }
        if params.ecn.ecn_at_one != EchoAtOne::Sends && before < 2 * mss {
            // The echo is for the segment sent right after the last reduction.
            let in_a_row = ack <= self.recovery.reduced_until() + mss;
            self.ecn.wait_at_one(before <= mss, in_a_row);
        }
        self.reduce(&path, Cause::Ecn);
    }

    /// `true` if an ECN-echo reduces the window.
    fn ece_reduces(&self, ack: u64) -> bool {
        let (params, reduced_until) = (&self.config.params, self.recovery.reduced_until());
        match self.phase() {
            Phase::Loss => {
                self.obeys_ece_in_loss() && (ack > reduced_until || self.ecn.next_ece_counts())
            }
            Phase::Recovery => {
                // Linux examines it once the recovery is over (`tcp_fastretrans_alert`,
                // `tcp_try_to_open`).
                let held = self.held_above(ack);
                let ends = self.recovery.recover().is_some_and(|recover| ack >= recover + held);
                let is_over = params.prr.prr_on_ecn && params.validation.grow_on_exit && ends;
                is_over || params.ecn.ecn_in_recovery && ack > self.seq.una().max(reduced_until)
            }
            _ => ack > self.recovery.last_reduction() || self.ecn.next_ece_counts(),
        }
    }

    /// Holds transmissions back for a retransmission timeout after an echo at one segment (RFC 3168
    /// § 6.1.2).
    #[cold]
    pub(super) fn wait_at_one(&mut self, now: Time) {
        let doublings = match self.config.params.ecn.ecn_at_one {
            EchoAtOne::BacksOff => self.ecn.doublings(),
            EchoAtOne::Sends | EchoAtOne::Waits => 0,
        };
        let policy = self.config.rto;
        self.pacer.hold_until(now + policy.timeout(self.rto(), doublings));
    }

    /// `true` while a timeout is repaired if ECN-echoes count then (`ecn_in_loss`, with ECN-capable
    /// retransmissions).
    pub(super) fn obeys_ece_in_loss(&self) -> bool {
        let params = &self.config.params;
        let asked = params.ecn.ecn_in_loss && self.config.ecn_retransmissions;
        asked && self.recovery.is_loss()
    }
}

/// State of source quenches, allocated only when one must be remembered (a refused guess, RFC
/// 1016's pause, a reduction under `prr_on_ecn`).
#[derive(Clone, Debug, Default)]
pub(super) struct Quenches(Option<Box<QuenchMemory>>);

#[derive(Clone, Debug, Default)]
struct QuenchMemory {
    /// Number of the round trip in which `refused` counts.
    round: u64,
    /// Quenches in that round trip that quoted nothing outstanding.
    refused: u32,
    /// SND.MAX at the last reduction for a quench under `prr_on_ecn`.
    reduced_until: Option<u64>,
    squid: Option<Squid>,
}

impl Quenches {
    /// `true` if no state is kept.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// `true` if a quench is accepted: the data that it quotes is outstanding (RFC 5927 § 4.1),
    /// which an off-path host can only guess. After too many wrong guesses within a round trip no
    /// quench is accepted for the rest of it. With [`QuenchCheck::None`] all are.
    pub fn accepts(&mut self, outstanding: bool, round: u64, params: &Params) -> bool {
        if params.quench_check == QuenchCheck::None || outstanding && self.0.is_none() {
            return true;
        }
        let memory = self.0.get_or_insert_default();
        if memory.round != round {
            (memory.round, memory.refused) = (round, 0);
        }
        let exhausted = params.quench_max_guesses.is_some_and(|most| memory.refused >= most);
        if !outstanding {
            memory.refused = memory.refused.saturating_add(1);
        }
        outstanding && !exhausted
    }

    /// `true` if quenches make the sender pause between packets.
    pub fn pauses(&self) -> bool {
        self.0.as_ref().is_some_and(|memory| memory.squid.is_some())
    }

    /// Notes a quench. Returns `true` if it begins an increase event, which lengthens the pause.
    pub fn pause(&mut self, now: Time, params: &Params) -> bool {
        let squid = &mut self.0.get_or_insert_default().squid;
        if let Some(squid) = squid {
            return squid.on_quench(now, &params.squid);
        }
        *squid = Some(Squid::begin(now, &params.squid));
        true
    }

    /// Pause before the next segment after one is sent; `None` if quenches cause none.
    pub fn pause_after(&mut self, now: Time, params: &Params) -> Option<Duration> {
        let squid = self.0.as_mut()?.squid.as_mut()?;
        Some(squid.on_send(now, &params.squid))
    }

    /// SND.MAX at the last reduction for a quench under `prr_on_ecn`.
    pub fn reduced_until(&self) -> Option<u64> {
        self.0.as_ref()?.reduced_until
    }

    /// Keeps SND.MAX (`high`) at a reduction for a quench under `prr_on_ecn`.
    pub fn on_reduction(&mut self, high: u64) {
        self.0.get_or_insert_default().reduced_until = Some(high);
    }
}

impl Sender {
    /// Processes a source quench about the segment at `seq`.
    #[cold]
    pub(super) fn on_quench(&mut self, now: Time, seq: u64, marked: bool, level: u8) {
        if !self.is_established() {
            return;
        }
        let outstanding = (self.seq.una()..self.seq.high()).contains(&seq);
        if !self.quenches.accepts(outstanding, self.rtt.round(), &self.config.params.quench) {
            self.counters.quenches_refused += 1;
            return;
        }
        self.counters.quenches += 1;
        let params = &self.config.params;
        match params.quench.quench_answer {
            _ if !params.quench.obey_quench => {}
            QuenchAnswer::Reduce => self.reduce_for_quench(now, Cause::Quench { marked, level }),
            QuenchAnswer::Pause => {
                let begins = self.quenches.pause(now, &params.quench);
                self.counters.quench_pauses += u64::from(begins);
            }
        }
    }

    /// Reduces the window for a quench. "The sender does not react to ISQs more than once per RTT"
    /// (BECN § IV-B), be it to a quench, an echo or a loss: until all data outstanding at the last
    /// reaction is acknowledged, quenches report the same congestion.
    fn reduce_for_quench(&mut self, now: Time, cause: Cause) {
        let recovery = &self.recovery;
        let is_idle = recovery.is_open() && recovery.cwr().is_none();
        if is_idle && self.seq.una() >= recovery.last_reduction() {
            self.reduce(&self.path(now), cause);
        }
    }

    /// Delays the next segment by RFC 1016's pause after one is sent.
    #[cold]
    pub(super) fn pause_after_sending(&mut self, now: Time) {
        let Some(pause) = self.quenches.pause_after(now, &self.config.params.quench) else {
            return;
        };
        self.pacer.hold_longer(now + pause);
    }
}

/// Source quench introduced delay (SQuID, RFC 1016): quenches lengthen a pause between packets.
#[derive(Clone, Copy, Debug)]
pub struct Squid {
    /// D of RFC 1016.
    pause: Duration,
    /// Start of the last increase event.
    increased: Time,
    /// Time of the last decrease of the pause, or of the first quench before any.
    decreased: Time,
}

impl Squid {
    /// Creates the pause at the first quench.
    #[must_use]
    pub fn begin(now: Time, params: &SquidParams) -> Self {
        let pause = params.squid_step.max(params.squid_min_pause);
        Self { pause, increased: now, decreased: now }
    }

    /// Processes a later quench; returns `true` if it begins an increase event, which lengthens the
    /// pause.
    pub fn on_quench(&mut self, now: Time, params: &SquidParams) -> bool {
        // "Receipt of one or more source quenches in a event period E."
        let begins = now.since(self.increased) >= params.squid_event;
        if begins {
            self.increased = now;
            // "D <-- maximum (D + K, I)"
            let longer = Duration(self.pause.0.saturating_add(params.squid_step.0));
            self.pause = longer.max(params.squid_min_pause);
        }
        begins
    }

    /// Returns the pause after a packet that is sent now. Shortens it before, if a period has
    /// passed since the last time.
    pub fn on_send(&mut self, now: Time, params: &SquidParams) -> Duration {
        // "When S time has passed since D was decreased and there is a datagram to send."
        if now.since(self.decreased) >= params.squid_period {
            self.decreased = now;
            // "D <-- maximum (D - J, 0)"
            self.pause = Duration(self.pause.0.saturating_sub(params.squid_decrease.0));
        }
        self.pause
    }
}

#[cfg(test)]
impl Squid {
    /// Returns the pause D.
    pub const fn pause(&self) -> Duration {
        self.pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn the_pause_grows_once_an_event_and_shrinks_once_a_period() {
        let p = SquidParams::default();
        let mut squid = Squid::begin(at(0), &p);
        let pause = |squid: &mut Squid, ms| squid.on_send(at(ms), &p).0 / 1_000_000;
        assert_eq!(pause(&mut squid, 1), 75, "I, as D + K is less");
        assert!(!squid.on_quench(at(1999), &p));
        assert_eq!(pause(&mut squid, 1999), 74, "the first second is over");
        assert_eq!(
            pause(&mut squid, 2500),
            74,
            "a second from when it was sent, not from when it was due"
        );
        assert!(squid.on_quench(at(2500), &p));
        assert_eq!(pause(&mut squid, 2600), 94);
        assert_eq!(pause(&mut squid, 2999), 93);
        for s in 0..200 {
            pause(&mut squid, 4000 + s * 1000);
        }
        assert_eq!(pause(&mut squid, 300_000), 0);
        assert!(squid.on_quench(at(300_000), &p));
        assert_eq!(pause(&mut squid, 300_001), 75);
    }
}
