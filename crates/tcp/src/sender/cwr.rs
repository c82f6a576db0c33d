//! Reductions that leave nothing to repair: ECN-echoes (RFC 3168 § 6.1.2), and
//! what controllers ask for.

use cwnd_cc::{Cause, Controller as _, Path, Phase, Signal};
use cwnd_quantity::Time;

use super::Sender;
use crate::params::{EchoAtOne, FlightSize};
use crate::prr::{Prr, PrrRule};

impl Sender {
    /// The controller asks for a reduction: it gets one in a window of data, as every other cause
    /// does.
    #[cold]
    pub(super) fn on_request(&mut self, path: &Path, cause: Cause) {
        if self.recovery.is_open() && self.seq.una() > self.recovery.last_reduction() {
            self.reduce(path, cause);
        }
    }

    /// Makes the window smaller for a cause that leaves nothing to repair, and begins the round
    /// trip that answers it.
    #[cold]
    pub(super) fn reduce(&mut self, path: &Path, cause: Cause) {
        let before = self.cc.window().cwnd;
        self.cc.on_signal(path, Signal::Reduce(cause));
        self.space_from_last();
        let params = &self.config.params;
        let recovers = params.ecn.ecn_in_recovery && self.recovery.is_fast();
        let by_quench = matches!(cause, Cause::Quench { .. });
        // What Linux knows no cause for its controllers do by themselves, at once: quenches,
        // packets that waited, and loads.
        let spreads = !by_quench && !matches!(cause, Cause::Delay | Cause::Load);
        if params.prr.prr && params.prr.prr_on_ecn && spreads && !recovers {
            self.begin_spreading(before);
        }
        self.counters.reductions[cause.index()] += 1;
        self.recovery.on_reduction(self.seq.high());
        self.ecn.set_first_counts(false);
        // Linux knows of no quenches: its controllers set the window by themselves, at once, and
        // the receiver hears of nothing.
        if by_quench && self.config.params.prr.prr_on_ecn {
            self.quenches.on_reduction(self.seq.high());
        } else {
            self.ecn.set_cwr(self.config.params.says_cwr());
        }
    }

    /// From now on what goes is spread over a round trip, as proportional rate reduction does it.
    fn begin_spreading(&mut self, before: u64) {
        // Where nothing is outstanding no ACK would ever let anything go.
        if self.seq.high() == self.seq.una() || self.cc.by_rate() {
            return;
        }
        let rule = self.config.params.prr.prr_rule;
        let recover_fs = self.recover_fs(before);
        let room = before.saturating_sub(self.in_flight());
        self.recovery.begin_cwr(Prr::without_loss(rule, recover_fs, self.config.mss, room));
    }

    /// RecoverFS of a reduction that just happened, bytes, where no loss began it or Linux's rule
    /// holds: all that is outstanding for FreeBSD, else the window `before` (`prior_cwnd`). More
    /// may be outstanding, and a controller that takes its share of FlightSize then leaves a
    /// threshold above the window; in proportion to the window each delivered segment would send
    /// several.
    pub(super) fn recover_fs(&self, before: u64) -> u64 {
        let outstanding = self.seq.outstanding();
        match self.config.params.prr.prr_rule {
            PrrRule::RoundedUp => outstanding,
            _ if self.cc.window().ssthresh > before => before.max(outstanding),
            _ => before,
        }
    }

    /// An echo of what a quench told of already. Linux, whose state is still "open", begins its
    /// round trip of a reduction all the same (`tcp_enter_cwr`): the window stays, and does not
    /// grow meanwhile.
    #[cold]
    fn on_echo_of_a_quench(&mut self, ack: u64) {
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

    /// An ECN-echo: once a window, and not for one that a loss already made smaller (RFC 3168 §
    /// 6.1.2).
    #[cold]
    pub(super) fn on_echo(&mut self, now: Time, ack: u64) {
        self.counters.ece_acks += 1;
        if self.config.params.ecn.ecn && self.config.params.ecn.obey_ece {
            // Linux `tcp_fastretrans_alert`, A.
            self.undo.keep_reduction();
        }
        self.ecn.stop_waiting();
        let answers = self.answers_echo(ack);
        let params = &self.config.params;
        if !params.ecn.ecn || !params.ecn.obey_ece {
            return;
        }
        if !answers {
            self.on_echo_of_a_quench(ack);
            return;
        }
        let mss = self.config.mss;
        let before = self.cc.window().cwnd;
        let mut path = self.path(now);
        if params.recovery.flight_size == FlightSize::Pipe {
            path.flight_size = path.flight_size.saturating_sub(ack - self.seq.una());
        }
        if params.ecn.ecn_at_one != EchoAtOne::Sends && before < 2 * mss {
            // Whether it is for the segment that the last one let go.
            let in_a_row = ack <= self.recovery.reduced_until() + mss;
            self.ecn.wait_at_one(before <= mss, in_a_row);
        }
        self.reduce(&path, Cause::Ecn);
    }

    /// `true` if an ECN-echo reduces the window.
    fn answers_echo(&self, ack: u64) -> bool {
        let (params, reduced_until) = (&self.config.params, self.recovery.reduced_until());
        match self.phase() {
            Phase::Loss => {
                self.obeys_echo_in_loss() && (ack > reduced_until || self.ecn.first_counts())
            }
            Phase::Recovery => {
                // Linux looks at it once the recovery is over (`tcp_fastretrans_alert`,
                // `tcp_try_to_open`).
                let held = self.held_above(ack);
                let ends = self.recovery.recover().is_some_and(|recover| ack >= recover + held);
                let is_over = params.prr.prr_on_ecn && params.validation.grow_on_exit && ends;
                is_over || params.ecn.ecn_in_recovery && ack > self.seq.una().max(reduced_until)
            }
            _ => ack > self.recovery.last_reduction() || self.ecn.first_counts(),
        }
    }

    /// RFC 3168 § 6.1.2: nothing goes until the retransmission timer has run from the echo.
    #[cold]
    pub(super) fn wait_at_one(&mut self, now: Time) {
        let doublings = match self.config.params.ecn.ecn_at_one {
            EchoAtOne::BacksOff => self.ecn.doublings(),
            EchoAtOne::Sends | EchoAtOne::Waits => 0,
        };
        let policy = self.config.rto;
        self.pacer.hold_until(now + policy.timeout(self.rto(), doublings));
    }

    /// `true` if the losses of a timeout are being repaired, and an ECN-echo counts all the same.
    pub(super) fn obeys_echo_in_loss(&self) -> bool {
        let params = &self.config.params;
        let asked = params.ecn.ecn_in_loss && self.config.ecn_retransmissions;
        asked && self.recovery.is_loss()
    }
}
