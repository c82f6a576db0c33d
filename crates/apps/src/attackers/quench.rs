//! Forged source quenches: "blind throughput-reduction attacks" (RFC 5927 § 6.1), off the path or
//! on it.

use cwnd_packet::{Ability, Contract, HasContract};
use cwnd_quantity::{Duration, Rng, Time};
use cwnd_schema::{Choice, Invalid, RegistryEntry, Schema, key};

use super::{Attacker, AttackerInfo, Forged, Message};

/// Knowledge that an attacker has of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum Knowledge {
    /// The addresses and the server's port: it guesses the client's, and a sequence number.
    #[name("addresses")]
    Addresses,
    /// The ports, too: it guesses a sequence number.
    #[name("ports")]
    Ports,
    /// It sees the packets, and quotes what is outstanding.
    #[name("packets")]
    Packets,
}

/// Name and description in scenarios.
pub const ENTRY: RegistryEntry =
    RegistryEntry::new("quench", "Source quenches that no router sent (RFC 5927 § 6.1).");

/// Source quenches (RFC 792) in a router's name, at equal distances. No link carries them: an
/// attacker may be anywhere.
#[derive(Clone, Debug, PartialEq, Schema)]
#[schema(check = Self::consistent)]
pub struct Params {
    /// Source quenches sent to each connection per second.
    #[default(1e6, "none; RFC 5927 § 3.2 has the packets that a blind attacker needs")]
    #[bounds(above 0.0, up_to 1e6; "write `attacker = \"none\"` for no attack")]
    pub rate: f64,
    /// Knowledge that the attacker has of a connection.
    #[default(
        Knowledge::Ports,
        "RFC 5927 § 3.2: the four-tuple is known or guessed, the sequence number is not"
    )]
    pub knows: Knowledge,
    /// `true` if the quenches say that a packet was marked; otherwise they say that it was dropped.
    #[default(true, "BECN § IV-B: the window rests after a mark, which costs more")]
    pub marked: bool,
    /// Number of possible client ports, for an attacker that must guess the port.
    #[default(64_512, "RFC 6056 § 3.2: 1024 to 65535")]
    #[bounds(from 1, up_to 65_536; "ports have 16 bits")]
    pub ports: u32,
    /// Time from the start of the run to the start of the attack.
    #[default(Duration::ZERO, "cwnd: a connection is attacked for as long as it lasts")]
    pub start: Duration,
    /// Time from the start of the run to the end of the attack.
    #[default(None, "cwnd: a connection is attacked for as long as it lasts")]
    pub stop: Option<Duration>,
}

impl Params {
    /// Checks values together.
    fn consistent(&self) -> Result<(), Invalid> {
        if let Some(stop) = self.stop.filter(|&stop| stop <= self.start) {
            let message = format!("the attack ends at {stop}, before it begins");
            return Err(Invalid { key: key!(Self: stop), message });
        }
        Ok(())
    }
}

impl AttackerInfo for Params {
    fn build(&self, now: Time) -> Option<Box<dyn Attacker>> {
        Some(Box::new(Quench::new(self, now)))
    }
}

impl HasContract for Params {
    fn contract(&self) -> Contract {
        Contract::new().wants(Ability::ObeysQuench, "forged source quenches change nothing")
    }
}

/// An attacker that sends source quenches to one connection.
#[derive(Debug)]
pub struct Quench {
    /// Time between two packets, ns.
    gap: f64,
    knows: Knowledge,
    marked: bool,
    ports: u64,
    begins: Time,
    ends: Time,
    /// Number of packets sent.
    sent: u64,
}

impl Quench {
    /// Creates the attacker of a connection that begins now.
    #[must_use]
    pub fn new(params: &Params, now: Time) -> Self {
        Self {
            gap: 1e9 / params.rate,
            knows: params.knows,
            marked: params.marked,
            ports: u64::from(params.ports),
            begins: now.max(Time(params.start.0)),
            ends: params.stop.map_or(Time::NEVER, |stop| Time(stop.0)),
            sent: 0,
        }
    }

    /// Time of the next packet: the first comes a gap after the start of the attack.
    fn due(&self) -> Time {
        // Each time is computed from the start, so that rounding to nanoseconds does not
        // accumulate. The conversion saturates.
        let after = self.gap * (self.sent + 1) as f64;
        Time(self.begins.0.saturating_add(after as u64))
    }
}

impl Attacker for Quench {
    fn next(&mut self, rng: &mut Rng) -> Option<(Time, Forged)> {
        loop {
            let at = self.due();
            if at >= self.ends {
                return None;
            }
            self.sent += 1;
            // A packet to another port reaches no connection, or another one.
            if self.knows == Knowledge::Addresses && rng.below(self.ports) != 0 {
                continue;
            }
            let quoted = (self.knows != Knowledge::Packets).then(|| rng.bits() as u32);
            return Some((at, Forged { quoted, what: Message::Quench { marked: self.marked } }));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(params: &Params, until: Time) -> Vec<(Time, Forged)> {
        let mut attacker = Quench::new(params, Time(500));
        let mut rng = Rng::named(7, "attacker");
        let next = core::iter::from_fn(|| attacker.next(&mut rng));
        next.take_while(|&(at, _)| at < until).collect()
    }

    const SECOND: Time = Time(1_000_000_000);

    #[test]
    fn they_come_at_equal_distances_from_the_beginning_to_the_end() {
        let params = Params { rate: 3.0, ..Params::default() };
        let times: Vec<u64> = all(&params, SECOND).iter().map(|(at, _)| at.0).collect();
        assert_eq!(times, [333_333_833, 666_667_166]);
        let (start, stop) = (Duration::from_millis(300), Some(Duration::from_millis(302)));
        let short = Params { start, stop, ..Params::default() };
        assert_eq!(all(&short, SECOND).len(), 1999, "2 ms, without the instant of its end");
    }

    #[test]
    fn one_that_guesses_ports_reaches_the_connection_with_one_in_so_many() {
        let blind = Params { knows: Knowledge::Addresses, ports: 100, ..Params::default() };
        let hits = all(&blind, SECOND).len() as f64;
        // 10,000 of a million, with four standard deviations.
        assert!((hits - 10_000.0).abs() < 400.0, "{hits}");
    }

    #[test]
    fn only_one_that_sees_packets_quotes_what_is_outstanding() {
        let quoted = |knows| {
            let params = Params { knows, ports: 1, rate: 1000.0, ..Params::default() };
            all(&params, SECOND).into_iter().map(|(_, forged)| forged.quoted).collect::<Vec<_>>()
        };
        assert!(quoted(Knowledge::Packets).iter().all(Option::is_none));
        for knows in [Knowledge::Addresses, Knowledge::Ports] {
            let mut numbers = quoted(knows);
            numbers.sort_unstable();
            numbers.dedup();
            assert!(numbers.len() > 990 && numbers[0].is_some(), "{knows:?}");
        }
    }
}
