//! Source quench introduced delay (SQuID, RFC 1016): quenches lengthen a pause between packets.

use cwnd_quantity::{Duration, Time};
use cwnd_schema::Schema;

/// Parameters of RFC 1016, "The SQuID Algorithm".
#[derive(Clone, Debug, PartialEq, Schema)]
pub struct Params {
    /// K: by how much an increase event makes the pause longer. Serves experiments on source
    /// quenches answered by pauses (RFC 1016).
    #[default(Duration::from_millis(20), "RFC 1016: 20 ms")]
    pub squid_step: Duration,
    /// I: the shortest pause after an increase event. Serves experiments on source quenches
    /// answered by pauses (RFC 1016).
    #[default(Duration::from_millis(75), "RFC 1016: 75 ms")]
    #[was("squid_least")]
    pub squid_min_pause: Duration,
    /// J: by how much a decrease event makes it shorter. Serves experiments on source quenches
    /// answered by pauses (RFC 1016).
    #[default(Duration::from_millis(1), "RFC 1016: 1 ms")]
    pub squid_decrease: Duration,
    /// E: the quenches that come within this time of the first are one increase event. Serves
    /// experiments on source quenches answered by pauses (RFC 1016).
    #[default(Duration::from_secs(2), "RFC 1016: 2 s")]
    pub squid_event: Duration,
    /// S: the pause becomes shorter at the first packet after so long a time. Serves experiments on
    /// source quenches answered by pauses (RFC 1016).
    #[default(Duration::from_secs(1), "RFC 1016: 1 s")]
    pub squid_period: Duration,
}

/// Pause between two packets of a connection.
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
    pub fn begin(now: Time, params: &Params) -> Self {
        let pause = params.squid_step.max(params.squid_min_pause);
        Self { pause, increased: now, decreased: now }
    }

    /// Processes a later quench; returns `true` if it begins an increase event, which lengthens the
    /// pause.
    pub fn on_quench(&mut self, now: Time, params: &Params) -> bool {
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
    pub fn on_send(&mut self, now: Time, params: &Params) -> Duration {
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
        let p = Params::default();
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
