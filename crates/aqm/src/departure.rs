use cwnd_units::{Duration, Time};

/// PIE's estimator of the departure rate, as Linux had it from 3.14 on (RFC 8033 § 5.2 averages times instead): the
/// bytes that leave are counted while enough wait to keep the line busy; each full count gives one measurement.
///
/// Departs from Linux in arithmetic: floating point instead of 8 fractional bits of a byte per 64 ns, which at
/// 10 Mbit/s resolve the rate to 5 % only.
#[derive(Clone, Debug)]
pub(crate) struct DepartureRate {
    threshold: u64,
    weight: f64,
    /// Bytes per nanosecond; zero while none was measured.
    average: f64,
    /// The measurement under way.
    cycle: Option<Cycle>,
}

#[derive(Clone, Copy, Debug)]
struct Cycle {
    began: Time,
    bytes: u64,
}

impl DepartureRate {
    /// Nothing measured yet.
    pub(crate) const fn new(threshold: u64, weight: f64) -> Self {
        Self { threshold, weight, average: 0.0, cycle: None }
    }

    /// Whether a rate is known.
    pub(crate) fn is_known(&self) -> bool {
        self.average > 0.0
    }

    /// Forgets rate and measurement.
    pub(crate) const fn reset(&mut self) {
        self.average = 0.0;
        self.cycle = None;
    }

    /// How long `backlog` bytes will take to leave; zero while no rate is known.
    pub(crate) fn delay(&self, backlog: u64) -> Duration {
        if self.is_known() {
            Duration((backlog as f64 / self.average) as u64)
        } else {
            Duration::ZERO
        }
    }

    /// A packet left and `backlog` bytes stay. Returns the length of the measurement that this completes, if it does.
    #[inline]
    pub(crate) fn left(&mut self, now: Time, wire_bytes: u32, backlog: u64) -> Option<Duration> {
        if self.cycle.is_none() && backlog >= self.threshold {
            self.cycle = Some(Cycle { began: now, bytes: 0 });
        }
        let cycle = self.cycle.as_mut()?;
        // The packet that begins a count from idle is counted at its start, as in Linux: that rate is a packet too high.
        cycle.bytes += u64::from(wire_bytes);
        if cycle.bytes < self.threshold {
            return None;
        }
        let took = now.since(cycle.began);
        if took == Duration::ZERO {
            return None;
        }
        let rate = cycle.bytes as f64 / took.as_nanos() as f64;
        if self.average > 0.0 {
            self.average += self.weight * (rate - self.average);
        } else {
            self.average = rate;
        }
        self.cycle =
            if backlog < self.threshold { None } else { Some(Cycle { began: now, bytes: 0 }) };
        Some(took)
    }
}
