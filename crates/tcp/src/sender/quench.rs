//! Answers to a router's source quench: BECN § IV-B, or RFC 1016; and which of them are believed
//! (RFC 5927 § 4, RFC 6633).

use cwnd_cc::Cause;
use cwnd_quantity::Time;

use super::{Sender, State};
use crate::params::{QuenchAnswer, QuenchCheck};
use crate::squid::Squid;

/// State of quenches, once there were some.
#[derive(Clone, Debug, Default)]
pub(super) struct Quenched {
    /// The round trip that `refused` is of.
    round: u64,
    /// Quenches of that round trip that quoted nothing outstanding.
    refused: u32,
    /// The highest byte sent at the last reduction for one.
    pub(super) reduced_until: Option<u64>,
    squid: Option<Squid>,
}

impl Sender {
    /// A router says that data met congestion there.
    #[cold]
    pub(super) fn on_quench(&mut self, now: Time, seq: u64, marked: bool, level: u8) {
        if !self.is_established() {
            return;
        }
        if !self.believes(seq) {
            self.counters.quenches_refused += 1;
            return;
        }
        self.counters.quenches += 1;
        let params = &self.config.params;
        match params.quench_answer {
            _ if !params.obey_quench => {}
            QuenchAnswer::Reduce => self.reduce_for_quench(now, Cause::Quench { marked, level }),
            QuenchAnswer::Pause => self.pause_for_quench(now),
        }
    }

    /// Quoted data must be outstanding (RFC 5927 § 4.1): who does not see the connection can
    /// only guess. And who guesses wrong too often within a round trip makes the connection deaf
    /// for the rest of it.
    fn believes(&mut self, seq: u64) -> bool {
        let params = &self.config.params;
        if params.quench_check == QuenchCheck::None {
            return true;
        }
        let outstanding = (self.seq.una()..self.seq.high()).contains(&seq);
        if outstanding && self.quenched.is_none() {
            return true;
        }
        let quenched = self.quenched.get_or_insert_default();
        if quenched.round != self.round {
            (quenched.round, quenched.refused) = (self.round, 0);
        }
        let deaf = params.quench_guesses.is_some_and(|most| quenched.refused >= most);
        if !outstanding {
            quenched.refused = quenched.refused.saturating_add(1);
        }
        outstanding && !deaf
    }

    /// "The sender does not react to ISQs more than once per RTT" (BECN § IV-B), be it to a quench,
    /// an echo or a loss. Until all is acknowledged that was outstanding at the last reaction, what
    /// is told is about the same congestion.
    fn reduce_for_quench(&mut self, now: Time, cause: Cause) {
        let reduced = self.reduced_until.max(self.last_recover.unwrap_or(0));
        if matches!(self.recovery, State::Open) && self.cwr.is_none() && self.seq.una() >= reduced {
            self.reduce(&self.path(now), cause);
        }
    }

    /// `true` if quenches make it pause between packets.
    pub(super) fn pauses(&self) -> bool {
        self.quenched.as_ref().is_some_and(|quenched| quenched.squid.is_some())
    }

    fn pause_for_quench(&mut self, now: Time) {
        let params = &self.config.params.squid;
        let squid = &mut self.quenched.get_or_insert_default().squid;
        let begins = match squid {
            Some(squid) => squid.on_quench(now, params),
            None => {
                *squid = Some(Squid::begin(now, params));
                true
            }
        };
        self.counters.quench_pauses += u64::from(begins);
    }

    /// Data goes out: RFC 1016 has the next wait.
    #[cold]
    pub(super) fn pause_after_sending(&mut self, now: Time) {
        let Some(squid) = self.quenched.as_mut().and_then(|quenched| quenched.squid.as_mut())
        else {
            return;
        };
        let pause = squid.on_send(now, &self.config.params.squid);
        self.pacer.hold_longer(now + pause);
    }
}
