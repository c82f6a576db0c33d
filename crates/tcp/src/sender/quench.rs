//! Source quenches: validation (RFC 5927 § 4, RFC 6633), and the response (BECN § IV-B, or RFC
//! 1016).

use cwnd_cc::Cause;
use cwnd_quantity::{Duration, Time};

use super::Sender;
use crate::params::quench::{Params, SquidParams};
use crate::params::{QuenchAnswer, QuenchCheck};

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
