//! Datagrams at a given rate, all the time or on and off.

use std::sync::Arc;

use cwnd_quantity::{Bytes, Duration, DurationDist, Rate, Rng, Serialiser, Time};
use cwnd_schema::{Choice, Invalid, RegistryEntry, Schema};

use crate::application::{Actions, Application, Facts, Transport, Workload};

/// Name and description in scenarios.
pub const ENTRY: RegistryEntry = RegistryEntry::new(
    "udp",
    "Datagrams at a rate of their own, without a connection: no controller, no endpoint, no way \
     back, no ECN.",
);

/// A stream of datagrams.
#[derive(Clone, Debug, PartialEq, Schema)]
#[schema(check = Self::consistent)]
pub struct Params {
    /// Bits on the wire per second, headers included; with `on` and `off`, while it sends.
    #[required("none")]
    pub rate: Rate,
    /// Each datagram on the wire, headers included.
    #[required("none")]
    #[bounds(from Bytes(1), up_to LARGEST_DATAGRAM)]
    pub size: Bytes,
    /// Bytes of headers in `size`; the rest counts as goodput.
    #[default(Bytes(28), "RFC 791 § 3.1: IPv4 20 B; RFC 768: UDP 8 B")]
    pub header: Bytes,
    /// Gaps between datagrams: equal, or exponential with the same mean.
    #[default(
        Arrivals::Constant,
        "cwnd: traffic of a constant bit rate is the usual meaning of a rate"
    )]
    pub arrivals: Arrivals,
    /// Duration of each sending period, drawn anew each time; requires `off`.
    #[default(None, "cwnd: it sends all the time")]
    pub on: Option<DurationDist>,
    /// Duration of each pause, drawn anew each time; requires `on`.
    #[default(None, "cwnd: it never pauses")]
    pub off: Option<DurationDist>,
}

impl Params {
    /// Checks parameters that depend on each other.
    fn consistent(&self) -> Result<(), Invalid> {
        let refuse = |key, message: String| Err(Invalid { key, message });
        match (&self.on, &self.off) {
            (Some(on), Some(_)) if *on == DurationDist::constant(Duration::ZERO) => {
                return refuse("on", "datagrams that are on for no time send nothing".to_owned());
            }
            (Some(_), None) => {
                return refuse("on", "`on` needs `off`, the pause after it".to_owned());
            }
            (None, Some(_)) => {
                return refuse("off", "`off` needs `on`, the time before it".to_owned());
            }
            (None, None) | (Some(_), Some(_)) => {}
        }
        if self.size <= self.header {
            return refuse(
                "size",
                format!("{} with headers of {} carries nothing", self.size, self.header),
            );
        }
        Ok(())
    }
}

/// Largest datagram: the Total Length of IPv4 has 16 bits (RFC 791 § 3.1).
pub const LARGEST_DATAGRAM: Bytes = Bytes(65_535);

/// Arrival process of the datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum Arrivals {
    /// Independent of each other: exponential gaps.
    #[name("poisson")]
    Poisson,
    /// At equal distances.
    #[name("constant")]
    Constant,
}

/// A source that sends a datagram at each call, except at the start of each sending period of a
/// Poisson process.
#[derive(Debug)]
pub struct Source {
    params: Arc<Params>,
    /// Gaps of constant rate; rounding errors carry over to the next gap.
    gaps: Serialiser,
    /// End of the current sending period, or of the pause after it; `Time::NEVER` without pauses.
    on_until: Time,
}

impl Workload for Params {
    // Boxed: it is larger than the other applications and rare, so they need no room for it.
    type App = Box<Source>;

    fn facts(&self) -> Facts {
        Facts {
            transport: Transport::Datagrams {
                rate: self.rate,
                size: self.size,
                header: self.header,
            },
            arrivals: None,
            client_opens: false,
            can_be_stopped: true,
            shares: false,
        }
    }

    fn application(shared: &Arc<Self>) -> Box<Source> {
        Box::new(Source {
            gaps: Serialiser::new(shared.rate),
            on_until: Time::ZERO,
            params: Arc::clone(shared),
        })
    }
}

impl Application for Source {
    fn start(&mut self, now: Time, rng: &mut Rng) -> Actions {
        self.begin(now, rng)
    }

    fn on_timer(&mut self, now: Time, rng: &mut Rng) -> Actions {
        if now >= self.on_until { self.begin(now, rng) } else { self.send(now, rng) }
    }
}

impl Source {
    /// Begins a sending period, at the start or after a pause.
    fn begin(&mut self, now: Time, rng: &mut Rng) -> Actions {
        self.on_until = match &self.params.on {
            None => Time::NEVER,
            Some(on) => now + on.sample(rng).max(Duration(1)),
        };
        self.gaps.reset();
        match self.params.arrivals {
            // A Poisson process has no event at the instant at which observation begins.
            Arrivals::Poisson => Actions::wake(self.after_gap(now, rng)),
            Arrivals::Constant => self.send(now, rng),
        }
    }

    fn send(&mut self, now: Time, rng: &mut Rng) -> Actions {
        let payload = self.params.size.0 - self.params.header.0;
        Actions::write(payload).and_wake(self.after_gap(now, rng))
    }

    /// Time of the next datagram, or of the end of the pause before it.
    fn after_gap(&mut self, now: Time, rng: &mut Rng) -> Time {
        let wire = self.params.size.0 as u32;
        let gap = match self.params.arrivals {
            Arrivals::Constant => self.gaps.next(wire),
            Arrivals::Poisson => {
                let mean = f64::from(wire) * 8.0 / self.params.rate.0 as f64;
                Duration::from_secs_f64(rng.exponential(mean))
            }
        };
        match &self.params.off {
            Some(off) if now + gap >= self.on_until => {
                self.on_until += off.sample(rng);
                self.on_until
            }
            Some(_) | None => now + gap,
        }
    }
}
