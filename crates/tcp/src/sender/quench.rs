//! Response to source quenches (BECN § IV-B, or RFC 1016).

use cwnd_cc::Cause;
use cwnd_quantity::Time;

use super::Sender;
use crate::params::QuenchAnswer;

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
