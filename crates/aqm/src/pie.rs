//! PIE, proportional integral controller enhanced (RFC 8033): marks or drops on arrival with a
//! probability that a timer updates, to hold the queueing delay near a reference. Also as in
//! Linux 3.14 to 4.5, before the RFC.

use cwnd_packet::{Ability, Contract, HasContract};
use cwnd_quantity::{Bytes, Duration, LinkProperties, QueueSize, Rng, Time};
use cwnd_schema::{Choice, PresetOf, Presets, RegistryEntry, Schema};

use crate::departure::DepartureRate;
use crate::qdisc::{Backlog, Context, Packet, Qdisc, QueueInfo, Reason, Store, congested};

/// Reason of PIE's drops and marks, made at enqueue.
pub const REASON: Reason = Reason::named("pie");

/// Source of the queueing-delay estimate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum Estimator {
    /// The time that the last packet to leave had spent in the queue.
    #[name("timestamp")]
    Timestamp,
    /// The backlog divided by a measured departure rate (Little's law).
    #[name("departure-rate")]
    DepartureRate,
}

/// Scaling-down of the change of the probability while the probability is small.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum Tuning {
    /// Six steps down to one millionth.
    #[name("rfc8033")]
    Rfc8033,
    /// Two steps, at 1 % and 10 %.
    #[name("coarse")]
    Coarse,
}

/// Condition for a new burst allowance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum BurstRenewal {
    /// An arrival, or with the measured departure rate an update, in a time without congestion.
    #[name("calm")]
    Calm,
    /// Updates without congestion for 1.5 s in a row, once the last allowance is used up: then the
    /// next arrival begins another. While an allowance lasts the probability stays zero (ns-3).
    #[name("rest")]
    Rest,
}

/// Name and description in scenarios.
pub const ENTRY: RegistryEntry = RegistryEntry::new(
    "pie",
    "Proportional integral controller: marks or drops on arrival to hold a delay (RFC 8033).",
);

/// PIE (RFC 8033).
#[derive(Clone, Debug, PartialEq, Schema)]
#[schema(presets)]
#[idle(
    [dq_threshold, dq_weight],
    self.estimator == Estimator::Timestamp,
    "without `estimator = \"departure-rate\"`"
)]
pub struct Params {
    /// Delay to hold (QDELAY_REF).
    #[default(Duration::from_millis(15), "RFC 8033 § 4.2: 15 ms")]
    #[bounds(above Duration::ZERO; "a target of zero marks whenever anything waits, write 15 ms")]
    pub target: Duration,
    /// Interval between updates of the probability (T_UPDATE).
    #[default(Duration::from_millis(15), "RFC 8033 § 4.2: 15 ms")]
    #[bounds(above Duration::ZERO; "time would never pass, write 15 ms")]
    pub t_update: Duration,
    /// Weight of the distance from the target, per second.
    #[default(0.125, "RFC 8033 § 4.2: 0.125")]
    #[bounds(from 0.0; "a negative gain would drop less the more waits")]
    pub alpha: f64,
    /// Weight of the trend of the delay, per second.
    #[default(1.25, "RFC 8033 § 4.2: 1.25")]
    #[bounds(from 0.0; "a negative gain would drop less the more waits")]
    pub beta: f64,
    /// Longest burst that passes untouched after a time without congestion.
    #[default(Duration::from_millis(150), "RFC 8033 § 4.4: 150 ms")]
    pub max_burst: Duration,
    /// Condition for a new burst allowance.
    #[default(
        BurstRenewal::Calm,
        "RFC 8033 § 4.4: calm; ns-3: rest (pie-queue-disc.cc, CalculateP and DropEarly; \
        BURST_RESET_TIMEOUT)"
    )]
    pub burst_renewal: BurstRenewal,
    /// Maximum backlog.
    #[default(QueueSize::Packets(1000), "Linux sch_pie: 1000 packets")]
    pub limit: QueueSize,
    /// Size of a typical packet: a queue of no more than two is left alone (with the departure
    /// rate, of less than two); byte mode scales by it.
    #[default(
        Bytes(1500),
        "RFC 8033 § 4.1 leaves it open; Linux takes the MTU, here that of Ethernet"
    )]
    #[bounds(from Bytes(1))]
    pub mean_packet: Bytes,
    /// Source of the queueing-delay estimate.
    #[default(
        Estimator::Timestamp,
        "RFC 8033 § 4.3 allows both; timestamps as in Linux since 5.5"
    )]
    pub estimator: Estimator,
    /// Bytes to count in one measurement of the departure rate, and the backlog below which none
    /// begins.
    #[default(Bytes(1 << 14), "RFC 8033 § 5.2: 2^14 B")]
    #[bounds(from Bytes(1))]
    pub dq_threshold: Bytes,
    /// Weight of a new measurement in the average departure rate.
    #[default(0.125, "Linux sch_pie: 1/8")]
    #[bounds(above 0.0, up_to 1.0)]
    pub dq_weight: f64,
    /// Scaling-down of the steps of the probability while the probability is small.
    #[default(Tuning::Rfc8033, "RFC 8033 § 4.2")]
    pub tuning: Tuning,
    /// `true` if a step is at most 2 % once the probability is 10 % or more.
    #[default(true, "RFC 8033 § 5.5; on as in Linux and FreeBSD")]
    pub cap_adjustment: bool,
    /// Delay above which the probability grows by another 2 % at each update; none never does.
    #[default(None, "not in RFC 8033; Linux sch_pie and RFC 8034 have 250 ms")]
    pub surge_above: Option<Duration>,
    /// `true` if drops are derandomised: they come neither in clumps nor far apart.
    #[default(false, "RFC 8033 § 5.4; optional")]
    pub derandomise: bool,
    /// `true` if a packet's probability is in proportion to its size (up to `mean_packet`).
    #[default(false, "RFC 8033 § 5, optional; off in Linux")]
    pub byte_mode: bool,
    /// `true` if ECN-capable packets are marked instead of dropped.
    #[default(true, "RFC 8033 § 5.1; on, as RFC 7567 § 4.2.1 asks of queue managers")]
    pub ecn: bool,
    /// Probability above which ECN-capable packets are dropped too; none always marks.
    #[default(Some(0.1), "RFC 8033 § 5.1 mark_ecnth: 0.1")]
    #[bounds(from 0.0, up_to 1.0; "it is a probability")]
    #[idle(!self.ecn, "without `ecn`")]
    pub mark_ecnth: Option<f64>,
}

impl Presets for Params {
    const PRESETS: &'static [PresetOf<Self>] = &[
        PresetOf::new(
            "linux-3.17",
            "Linux 3.14 to 4.5 (sch_pie): target 20 ms every 30 ms, burst 100 ms, delay from the \
             departure rate, coarse tuning.",
            Self::linux_3_17,
        ),
        PresetOf::new(
            "abe",
            "The routers of the ABE paper (§ IV-A): Linux 3.17 that marks at any probability.",
            || Self { mark_ecnth: None, ..Self::linux_3_17() },
        ),
    ];
}

impl QueueInfo for Params {
    type Queue<P> = Pie<P>;

    fn build<P: Packet>(&self, link: &LinkProperties, rng: Rng) -> Pie<P> {
        Pie::new(self, link, rng)
    }
}

impl HasContract for Params {
    fn contract(&self) -> Contract {
        Contract::new().when(self.ecn, |c| c.provides(Ability::Marks))
    }
}

impl Params {
    /// Settings of sch_pie.c in Linux 3.14 to 4.5.
    fn linux_3_17() -> Self {
        Self {
            target: Duration::from_millis(20),
            t_update: Duration::from_millis(30),
            max_burst: Duration::from_millis(100),
            estimator: Estimator::DepartureRate,
            dq_threshold: Bytes(10_000),
            tuning: Tuning::Coarse,
            surge_above: Some(Duration::from_millis(250)),
            ..Self::default()
        }
    }
}

/// PIE's variables: the controller, apart from its queue.
#[derive(Clone, Debug)]
struct Controller {
    probability: f64,
    /// Latest sample of the queueing delay.
    delay: Duration,
    /// Sample at the last update.
    delay_old: Duration,
    /// Time for which arrivals still pass untouched.
    burst_allowance: Duration,
    /// State of the last burst, with `burst_renewal = "rest"`.
    burst: Burst,
    /// Probability accumulated since the last hit, drop for lack of space, or probability of zero
    /// (RFC 8033 § 5.4).
    accumulated: f64,
}

/// State of a burst that had an allowance (ns-3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Burst {
    /// No burst: the next arrival begins one.
    Over,
    /// A burst began; no update without congestion has followed its allowance yet.
    Began,
    /// Updates without congestion in a row; the first after the allowance is not counted.
    Calm(u32),
}

impl Controller {
    /// Updates the probability, every `t_update`, with the current delay (RFC 8033 § 4.2).
    fn update(&mut self, p: &Params, delay: Duration) {
        self.delay = delay;
        let seconds = delay.as_secs_f64();
        let distance = seconds - p.target.as_secs_f64();
        let trend = seconds - self.delay_old.as_secs_f64();
        let mut step = (p.alpha * distance + p.beta * trend) * p.tuning.scale(self.probability);
        if p.cap_adjustment && self.probability >= CAP_FROM && step > MAX_STEP {
            step = MAX_STEP;
        }
        if p.surge_above.is_some_and(|limit| delay > limit) {
            step += MAX_STEP;
        }
        self.probability += step;
        if delay == Duration::ZERO && self.delay_old == Duration::ZERO {
            self.probability *= DECAY;
        }
        self.probability = self.probability.clamp(0.0, 1.0);
        self.delay_old = delay;
    }

    /// `true` without recent congestion: the probability is zero, and the delay is below half the
    /// target, now and at the last update.
    #[inline]
    fn is_calm(&self, p: &Params) -> bool {
        let half = p.target / 2;
        self.probability == 0.0 && self.delay < half && self.delay_old < half
    }

    /// Updates the probability and the burst with `burst_renewal = "rest"`.
    fn update_with_rest(&mut self, p: &Params, delay: Duration) {
        let half = p.target / 2;
        let delay_before = self.delay_old;
        self.update(p, delay);
        if self.burst_allowance > Duration::ZERO {
            self.probability = 0.0;
            self.burst_allowance = self.burst_allowance - p.t_update;
        }
        let calm = self.probability == 0.0 && delay < half && delay_before < half;
        self.burst = match self.burst {
            Burst::Began if calm && self.burst_allowance == Duration::ZERO => Burst::Calm(0),
            Burst::Calm(updates)
                if calm && p.t_update * u64::from(updates + 1) > BURST_RESET_TIMEOUT =>
            {
                Burst::Over
            }
            Burst::Calm(updates) => Burst::Calm(if calm { updates + 1 } else { 0 }),
            other => other,
        };
    }

    /// `true` if the arriving packet is hit (RFC 8033 § 4.1, § 4.4 and § 5.4).
    #[inline]
    fn hits(&mut self, p: &Params, backlog: u64, wire_bytes: u32, rng: &mut Rng) -> bool {
        if self.burst_allowance > Duration::ZERO {
            return false;
        }
        if p.burst_renewal == BurstRenewal::Rest && self.burst == Burst::Over {
            self.burst = Burst::Began;
            self.burst_allowance = p.max_burst;
        }
        // RFC 8033 § 4.1: stay work-conserving.
        let low = self.delay_old < p.target / 2 && self.probability < LOW_PROBABILITY;
        let couple = 2 * p.mean_packet.0;
        let short = match p.estimator {
            Estimator::Timestamp => backlog <= couple,
            // Linux: "fewer than 2 packets".
            Estimator::DepartureRate => backlog < couple,
        };
        if low || short {
            return false;
        }
        let chance = if p.byte_mode {
            let part = f64::from(wire_bytes) / p.mean_packet.0 as f64;
            self.probability * part.min(1.0)
        } else {
            self.probability
        };
        if p.derandomise {
            // RFC 8033 § 5.4: not before 0.85 of a drop is due, and always after 8.5.
            if self.probability == 0.0 {
                self.accumulated = 0.0;
            }
            self.accumulated += chance;
            if self.accumulated < MIN_ACCUMULATED {
                return false;
            }
            if self.accumulated < MAX_ACCUMULATED && !rng.chance(chance) {
                return false;
            }
            self.accumulated = 0.0;
            return true;
        }
        chance > 0.0 && rng.chance(chance)
    }
}

impl Tuning {
    /// Returns the factor on a step at this probability, which keeps the step small against it
    /// (RFC 8033 § 4.2).
    fn scale(self, probability: f64) -> f64 {
        let table: &[(f64, f64)] = match self {
            Self::Rfc8033 => &RFC_STEPS,
            Self::Coarse => &COARSE_STEPS,
        };
        table.iter().find(|(below, _)| probability < *below).map_or(1.0, |(_, scale)| *scale)
    }
}

/// PIE's state for one link.
#[derive(Debug)]
pub struct Pie<P> {
    params: Params,
    controller: Controller,
    departures: DepartureRate,
    next_update: Time,
    rng: Rng,
    store: Store<P>,
}

impl<P: Packet> Pie<P> {
    /// Creates an empty queue for a link.
    #[must_use]
    pub fn new(params: &Params, link: &LinkProperties, rng: Rng) -> Self {
        let mut params = params.clone();
        // The check refuses a period of zero; with one that bypassed it the timer would never move.
        params.t_update = params.t_update.max(Duration(1));
        Self {
            controller: Controller {
                probability: 0.0,
                delay: Duration::ZERO,
                delay_old: Duration::ZERO,
                burst_allowance: match params.burst_renewal {
                    BurstRenewal::Calm => params.max_burst,
                    BurstRenewal::Rest => Duration::ZERO,
                },
                burst: Burst::Over,
                accumulated: 0.0,
            },
            departures: DepartureRate::new(params.dq_threshold.0, params.dq_weight),
            next_update: Time::ZERO + params.t_update,
            store: Store::new(params.limit.resolve(link)),
            rng,
            params,
        }
    }

    /// Returns the delay estimate for an update.
    fn estimate(&self) -> Duration {
        match self.params.estimator {
            Estimator::Timestamp => self.controller.delay,
            Estimator::DepartureRate => self.departures.delay(self.store.bytes()),
        }
    }

    /// Runs one periodic update.
    fn update(&mut self) {
        let delay = self.estimate();
        if self.params.burst_renewal == BurstRenewal::Rest {
            self.controller.update_with_rest(&self.params, delay);
            return;
        }
        let calm_before = self.controller.delay_old < self.params.target / 2;
        self.controller.update(&self.params, delay);
        match self.params.estimator {
            Estimator::Timestamp => {
                // RFC 8033 § 4.4: updates use up the allowance.
                self.controller.burst_allowance =
                    self.controller.burst_allowance - self.params.t_update;
            }
            Estimator::DepartureRate => {
                // Linux 3.17 starts over after two low samples if the probability is zero and a
                // rate was known.
                if calm_before
                    && self.controller.is_calm(&self.params)
                    && self.departures.is_known()
                {
                    self.departures.reset();
                    self.controller.burst_allowance = self.params.max_burst;
                }
            }
        }
    }
}

impl<P: Packet> Qdisc<P> for Pie<P> {
    #[inline]
    fn enqueue(&mut self, now: Time, mut packet: P, context: &mut impl Context<P>) {
        let p = &self.params;
        let size = packet.wire_bytes();
        if !self.store.fits(size) {
            self.controller.accumulated = 0.0;
            context.dropped(now, &packet, Reason::OVERLIMIT);
            return;
        }
        if self.controller.hits(p, self.store.bytes(), size, &mut self.rng) {
            // RFC 8033 § 5.1: a high probability means that senders do not answer marks.
            let ecn = p.ecn && p.mark_ecnth.is_none_or(|max| self.controller.probability <= max);
            if !congested(now, &mut packet, ecn, REASON, context) {
                return;
            }
        } else if p.estimator == Estimator::Timestamp
            && p.burst_renewal == BurstRenewal::Calm
            && self.controller.is_calm(p)
        {
            // RFC 8033 § 4.4: a time without congestion earns a new allowance.
            self.controller.burst_allowance = p.max_burst;
        }
        self.store.push(now, packet);
    }

    #[inline]
    fn dequeue(&mut self, now: Time, _context: &mut impl Context<P>) -> Option<(P, Time)> {
        let (packet, entered) = self.store.pop()?;
        match self.params.estimator {
            Estimator::Timestamp => {
                // The delay of the last packet of a queue is not that of the next one, which will
                // find the queue empty.
                self.controller.delay =
                    if self.store.is_empty() { Duration::ZERO } else { now.since(entered) };
            }
            Estimator::DepartureRate => {
                // In Linux 3.17 the measured departures use up the allowance.
                if let Some(took) =
                    self.departures.on_departure(now, packet.wire_bytes(), self.store.bytes())
                    && self.params.burst_renewal == BurstRenewal::Calm
                {
                    self.controller.burst_allowance = self.controller.burst_allowance - took;
                }
            }
        }
        Some((packet, entered))
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.store.backlog()
    }

    #[inline]
    fn next_timer(&self) -> Option<Time> {
        Some(self.next_update)
    }

    fn on_timer(&mut self, now: Time) {
        // A late call makes up for missed updates, but not for all: in a router whose period is
        // shorter than its event loop that would never end.
        for _ in 0..MAX_CATCH_UP {
            if self.next_update > now || self.next_update == Time::NEVER {
                return;
            }
            self.update();
            self.next_update += self.params.t_update;
        }
        self.next_update = self.next_update.max(now + self.params.t_update);
    }

    fn probability(&self) -> Option<f64> {
        Some(self.controller.probability)
    }
}

/// Upper bounds of the probability, each with the factor on a step (RFC 8033 § 4.2).
const RFC_STEPS: [(f64, f64); 6] = [
    (0.000_001, 1.0 / 2048.0),
    (0.000_01, 1.0 / 512.0),
    (0.000_1, 1.0 / 128.0),
    (0.001, 1.0 / 32.0),
    (0.01, 1.0 / 8.0),
    (0.1, 1.0 / 2.0),
];
/// The same in Linux 3.14 to 4.5.
const COARSE_STEPS: [(f64, f64); 2] = [(0.01, 1.0 / 8.0), (0.1, 1.0 / 2.0)];
/// Largest number of updates that a late call makes up for. In that many the decay alone takes any
/// probability below one millionth (0.98^1000 = 2 · 10⁻⁹).
const MAX_CATCH_UP: u32 = 1000;
/// Decay of the probability in each update while the delay stays zero (RFC 8033 § 4.2).
const DECAY: f64 = 0.98;
/// Probability from which on a step is capped (RFC 8033 § 5.5).
const CAP_FROM: f64 = 0.1;
/// Cap on a step (RFC 8033 § 5.5), and the step that a surge adds.
const MAX_STEP: f64 = 0.02;
/// Probability below which a delay of less than half the target prevents drops (RFC 8033 § 4.1).
const LOW_PROBABILITY: f64 = 0.2;
/// Time without congestion before another burst has an allowance (ns-3, `BURST_RESET_TIMEOUT`).
const BURST_RESET_TIMEOUT: Duration = Duration::from_millis(1500);
/// Lower bound of the accumulated probability at a hit (RFC 8033 § 5.4).
const MIN_ACCUMULATED: f64 = 0.85;
/// Upper bound of the accumulated probability: from here on the packet is hit.
const MAX_ACCUMULATED: f64 = 8.5;
