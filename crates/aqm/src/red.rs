//! RED, random early detection (Floyd & Jacobson, IEEE/ACM Trans. Networking 1(4), 1993): marks or
//! drops on arrival with a probability that grows with a weighted average of the queue length.

use cwnd_packet::{Ability, Contract, HasContract};
use cwnd_quantity::{Bytes, LinkProperties, QueueLimit, QueueSize, Rate, Rng, Time};
use cwnd_schema::{Choice, Invalid, PresetOf, Presets, RegistryEntry, Schema, key};

use crate::qdisc::{Backlog, Context, Packet, Qdisc, QueueInfo, Reason, Store, congested};

/// Reason of random hits above RED's lower threshold, and of all hits if both thresholds are equal.
pub const EARLY: Reason = Reason::named("red_early");
/// Reason of hits above RED's upper threshold (twice that if gentle), of all packets or spaced.
pub const FORCED: Reason = Reason::named("red_forced");

/// Unit of the queue length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum Mode {
    /// Packets; every packet has the same probability.
    #[name("packets")]
    Packets,
    /// Bytes; a packet's probability is in proportion to its size.
    #[name("bytes")]
    Bytes,
}

/// Treatment of an ECN-capable packet while the average is above the range of random drops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum Forced {
    /// Drop (RFC 3168 § 7; ns-2).
    #[name("drop")]
    Drop,
    /// Mark (Floyd & Jacobson 1993 mark every packet there).
    #[name("mark")]
    Mark,
    /// Drop by the spacing of a probability of 1, as for packets without ECN (ns-2 with
    /// `use_mark_p_`).
    #[name("spaced")]
    Spaced,
}

/// Unit of the count between hits (marks or drops) in byte mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum Count {
    /// Packets; a packet's size scales its probability, which is then spaced (Floyd & Jacobson 1993
    /// § 4).
    #[name("packets")]
    Packets,
    /// Whole mean packets among the bytes; a packet's size scales what spacing gives, unless that
    /// is 1 (ns-2, `modify_p`). With `wait` a small packet just after a hit is not hit.
    #[name("bytes")]
    Bytes,
}

/// Rule for the idle time of the queue, and for the ageing of the average over that time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum Idle {
    /// From the departure of the last packet; as many packets as the link could have sent,
    /// fractions included (Floyd & Jacobson 1993 § 4).
    #[name("emptied")]
    Emptied,
    /// From the time at which the line asks for a packet and gets none; whole packets, and the
    /// arrival that ends it is one more.
    #[name("unanswered")]
    Unanswered,
}

/// Name and description in scenarios.
pub const ENTRY: RegistryEntry = RegistryEntry::new(
    "red",
    "Random early detection: marks or drops on arrival by an average of the queue length (Floyd \
     & Jacobson 1993).",
);

/// RED (Floyd & Jacobson 1993).
#[derive(Clone, Debug, PartialEq, Schema)]
#[schema(presets, check = Self::consistent)]
#[idle([max_p, gentle, forced], self.min_th == self.max_th, "with `min_th` equal to `max_th`")]
pub struct Params {
    /// Average queue below which no packet is marked.
    #[default(QueueSize::Packets(5), "Floyd & Jacobson 1993 § 8: 5 packets")]
    pub min_th: QueueSize,
    /// Average queue at which the probability reaches `max_p`. Equal to `min_th` it is a step: all
    /// packets that arrive at it or above are marked or dropped, and `max_p`, `gentle` and `forced`
    /// have no effect.
    #[default(
        QueueSize::Packets(15),
        "Floyd & Jacobson 1993 § 8: 15 packets; max_th = 3 min_th in Floyd 1997"
    )]
    pub max_th: QueueSize,
    /// Probability at the upper threshold.
    #[default(
        0.1,
        "Floyd 1997, Discussions of setting parameters: 0.1 (the paper of 1993 had 0.02)"
    )]
    #[bounds(above 0.0, up_to 1.0; "it is a probability")]
    pub max_p: f64,
    /// Weight of a new sample in the average.
    #[default(0.002, "Floyd & Jacobson 1993 § 8: 0.002")]
    #[bounds(above 0.0, up_to 1.0; "it is a weight")]
    pub w_q: f64,
    /// Maximum backlog.
    #[default(
        QueueSize::Packets(1000),
        "Linux default for other disciplines: 1000 packets; far above the thresholds"
    )]
    pub limit: QueueSize,
    /// Size of a typical packet: converts thresholds, ages the average over idle time, scales by
    /// size in byte mode.
    #[default(Bytes(1500), "a full packet on Ethernet; ns-2 has 500 B")]
    #[bounds(from Bytes(1))]
    pub mean_packet: Bytes,
    /// Unit on which the queue length and the probability are based: packets or bytes.
    #[default(Mode::Packets, "ns-2 bytes_ and queue_in_bytes_; packets as in Linux and ns-3")]
    pub mode: Mode,
    /// Unit of the count between hits (marks or drops) in byte mode.
    #[default(
        Count::Packets,
        "Floyd & Jacobson 1993 § 4: packets; ns-2 otherwise (`count_bytes`)"
    )]
    #[idle(self.mode == Mode::Packets, "without `mode = \"bytes\"`")]
    pub count: Count,
    /// `true` if the probability rises from `max_p` to 1 between `max_th` and twice that, instead
    /// of jumping.
    #[default(true, "Floyd 2000, Recommendation on using the gentle variant of RED")]
    pub gentle: bool,
    /// `true` if marks come at least 1/p packets apart: uniform in [1/p, 2/p] instead of [1, 1/p].
    #[default(false, "not in Floyd & Jacobson 1993; ns-2 wait_, which is on there")]
    pub wait: bool,
    /// `true` if an arrival that finds at most one packet waiting (byte mode: none) is left alone,
    /// whatever the average.
    #[default(false, "not in Floyd & Jacobson 1993; always so in ns-2 and ns-3")]
    #[was("spare_short")]
    pub exempt_short_queue: bool,
    /// `true` if the first packet that finds the average above `min_th` is left alone, and counts
    /// as the first unmarked.
    #[default(
        false,
        "Floyd & Jacobson 1993 § 4 draw for it, and count from 0; ns-2 and ns-3 otherwise (`old`, \
        `m_old`)"
    )]
    #[was("spare_first")]
    pub exempt_first: bool,
    /// Rule for the idle time of the queue, and for the ageing of the average over that time.
    #[default(
        Idle::Emptied,
        "Floyd & Jacobson 1993 § 4; ns-2 and ns-3 otherwise (red.cc, red-queue-disc.cc)"
    )]
    pub idle: Idle,
    /// `true` if ECN-capable packets are marked instead of dropped.
    #[default(true, "RFC 3168 § 5; on, as RFC 7567 § 4.2.1 asks of queue managers")]
    pub ecn: bool,
    /// Treatment of packets while the average is above `max_th` (gentle: above twice that).
    #[default(Forced::Drop, "RFC 3168 § 7: drop")]
    pub forced: Forced,
    /// Probability (before spacing) from which on ECN-capable packets are dropped too.
    #[default(None, "none in the papers; ns-2 mark_p_ 0.1 with use_mark_p_")]
    #[bounds(from 0.0, up_to 1.0; "it is a probability")]
    #[idle(!self.ecn, "without `ecn`")]
    pub mark_p: Option<f64>,
}

impl Presets for Params {
    const PRESETS: &'static [PresetOf<Self>] = &[
        PresetOf::new("ns-2", "The defaults of ns-2.35 where they differ, with marking.", || {
            Self {
                mode: Mode::Bytes,
                mean_packet: Bytes(500),
                wait: true,
                exempt_short_queue: true,
                exempt_first: true,
                idle: Idle::Unanswered,
                gentle: true,
                mark_p: Some(0.1),
                forced: Forced::Drop,
                ..Self::default()
            }
        }),
        PresetOf::new(
            "becn",
            "The setting of the BECN paper: byte mode, thresholds 15 and 45 KB, buffer 90 KB, \
             max_p 0.1, w_q 0.002, on ns-2.",
            || Self {
                min_th: QueueSize::Bytes(Bytes(15_000)),
                max_th: QueueSize::Bytes(Bytes(45_000)),
                limit: QueueSize::Bytes(Bytes(90_000)),
                max_p: 0.1,
                w_q: 0.002,
                mode: Mode::Bytes,
                mean_packet: Bytes(1000),
                gentle: false,
                wait: true,
                exempt_short_queue: true,
                exempt_first: true,
                idle: Idle::Unanswered,
                forced: Forced::Drop,
                mark_p: None,
                ..Self::default()
            },
        ),
    ];
}

impl Params {
    /// Checks values together.
    fn consistent(&self) -> Result<(), Invalid> {
        let ordered = match (self.min_th, self.max_th) {
            (QueueSize::Packets(a), QueueSize::Packets(b))
            | (QueueSize::MilliBdp(a), QueueSize::MilliBdp(b)) => a <= b,
            (QueueSize::Bytes(a), QueueSize::Bytes(b)) => a <= b,
            (QueueSize::Time(a), QueueSize::Time(b)) => a <= b,
            // Different units can be compared only for a given link.
            _ => true,
        };
        if !ordered {
            let (least, most) = (self.min_th, self.max_th);
            let message = format!("the upper threshold ({most}) is below `min_th` ({least})");
            return Err(Invalid { key: key!(Self: max_th), message });
        }
        Ok(())
    }
}

impl QueueInfo for Params {
    type Queue<P> = Red<P>;

    fn build<P: Packet>(&self, link: &LinkProperties, rng: Rng) -> Red<P> {
        Red::new(self, link, rng)
    }
}

impl HasContract for Params {
    fn contract(&self) -> Contract {
        Contract::new().when(self.ecn, |c| c.provides(Ability::Marks))
    }
}

/// RED's state for one link.
#[derive(Debug)]
pub struct Red<P> {
    resolved: Resolved,
    /// Weighted average of the queue length, in the unit of the mode.
    average: f64,
    /// Packets or bytes since the last mark or drop; `None` while the average is below the lower
    /// threshold or the queue is exempt (−1 in the paper).
    count: Option<u32>,
    /// Start of the idle time, or the last rate change or drop in it; `None` if not idle.
    idle_since: Option<Time>,
    /// Typical packets that the link could have sent in the idle time before that.
    idle_before: f64,
    rng: Rng,
    store: Store<P>,
}

/// Parameters in the unit of the mode, and values derived from them.
#[derive(Debug)]
struct Resolved {
    min_th: f64,
    max_th: f64,
    max_p: f64,
    w_q: f64,
    mode: Mode,
    count: Count,
    gentle: bool,
    wait: bool,
    exempt_short_queue: bool,
    exempt_first: bool,
    idle: Idle,
    ecn: bool,
    forced: Forced,
    mark_p: f64,
    /// Typical packets that the link sends per nanosecond, to convert idle time.
    packets_per_ns: f64,
    /// Mean packet size, bytes.
    mean_packet: f64,
    /// 1 / mean packet size.
    per_mean_packet: f64,
}

/// Range of the average queue length.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Zone {
    /// Below the lower threshold.
    Quiet,
    /// Random hits with p_b.
    Early(f64),
    /// At or above equal thresholds: every packet is hit, and may be marked.
    Step,
    /// Above the range of random hits: every packet is hit, or with [`Forced::Spaced`] spaced ones.
    Forced,
}

impl Resolved {
    fn new(p: &Params, link: &LinkProperties) -> Self {
        let mean = p.mean_packet.0.max(1) as f64;
        let in_mode = |size: QueueSize| match (p.mode, size.resolve(link)) {
            (Mode::Packets, QueueLimit::Bytes(n)) => n as f64 / mean,
            (Mode::Bytes, QueueLimit::Packets(n)) => n as f64 * mean,
            (_, QueueLimit::Packets(n) | QueueLimit::Bytes(n)) => n as f64,
        };
        Self {
            min_th: in_mode(p.min_th),
            max_th: in_mode(p.max_th),
            max_p: p.max_p,
            w_q: p.w_q,
            mode: p.mode,
            count: p.count,
            gentle: p.gentle,
            wait: p.wait,
            exempt_short_queue: p.exempt_short_queue,
            exempt_first: p.exempt_first,
            idle: p.idle,
            ecn: p.ecn,
            forced: p.forced,
            // No probability reaches it.
            mark_p: p.mark_p.unwrap_or(f64::INFINITY),
            packets_per_ns: per_ns(link.rate, mean),
            mean_packet: mean,
            per_mean_packet: 1.0 / mean,
        }
    }

    /// Returns the number of typical packets that the link could have sent in this time.
    #[inline]
    fn fitting(&self, since: Time, now: Time) -> f64 {
        now.since(since).as_nanos() as f64 * self.packets_per_ns
    }

    /// Returns the zone of an average, with p_b, the probability before spacing (Floyd & Jacobson
    /// 1993 § 4; Floyd 2000 for the gentle part).
    #[inline]
    fn zone(&self, average: f64) -> Zone {
        if average < self.min_th {
            Zone::Quiet
        } else if average < self.max_th {
            Zone::Early(self.max_p * (average - self.min_th) / (self.max_th - self.min_th))
        } else if self.max_th <= self.min_th {
            Zone::Step
        } else if self.gentle && average < 2.0 * self.max_th {
            Zone::Early(self.max_p + (1.0 - self.max_p) * (average - self.max_th) / self.max_th)
        } else {
            Zone::Forced
        }
    }

    /// Returns what a packet adds to the count.
    #[inline]
    const fn counted(&self, wire_bytes: u32) -> u32 {
        match (self.mode, self.count) {
            (Mode::Bytes, Count::Bytes) => wire_bytes,
            _ => 1,
        }
    }

    /// Returns p_a, which spaces hits evenly: `count` packets passed since the last hit (§ 4).
    #[inline]
    fn spaced(&self, p_b: f64, count: f64) -> f64 {
        let expected = count * p_b;
        if self.wait {
            // ns-2 `wait_`: no hit for 1/p_b packets, then uniform over the next 1/p_b.
            if expected < 1.0 {
                0.0
            } else if expected < 2.0 {
                p_b / (2.0 - expected)
            } else {
                1.0
            }
        } else if expected < 1.0 {
            p_b / (1.0 - expected)
        } else {
            1.0
        }
    }
}

impl<P: Packet> Red<P> {
    /// Creates an empty queue for a link.
    #[must_use]
    pub fn new(params: &Params, link: &LinkProperties, rng: Rng) -> Self {
        Self {
            resolved: Resolved::new(params, link),
            average: 0.0,
            count: None,
            idle_since: Some(Time::ZERO),
            idle_before: 0.0,
            rng,
            store: Store::new(params.limit.resolve(link)),
        }
    }

    /// Updates the average at an arrival (Floyd & Jacobson 1993 § 4, Fig. 2).
    #[inline]
    fn update_average(&mut self, now: Time) {
        if let Some(since) = self.idle_since.take() {
            // The average ages as if m typical packets had arrived at an empty queue in the idle
            // time.
            let fitting = self.idle_before + self.resolved.fitting(since, now);
            self.idle_before = 0.0;
            let m = match self.resolved.idle {
                Idle::Emptied => fitting,
                Idle::Unanswered => libm::floor(fitting) + 1.0,
            };
            self.average *= libm::pow(1.0 - self.resolved.w_q, m);
        } else {
            self.average += self.resolved.w_q * (self.length() as f64 - self.average);
        }
    }

    /// Returns the current queue length, in packets or bytes depending on the mode.
    #[inline]
    fn length(&self) -> u64 {
        let backlog = self.store.backlog();
        match self.resolved.mode {
            Mode::Packets => backlog.packets,
            Mode::Bytes => backlog.bytes,
        }
    }

    /// Counts the arriving packet and draws at random; `true` if the packet is hit.
    #[inline]
    fn hit_early(&mut self, p_b: f64, wire_bytes: u32) -> bool {
        let resolved = &self.resolved;
        let count = self.count.map_or(0, |c| c.saturating_add(resolved.counted(wire_bytes)));
        self.count = Some(count);
        // Departs from Floyd & Jacobson 1993 § 4 in the reference size: they divide by the largest
        // packet, ns-2 and this code by the mean one.
        let relative_size = f64::from(wire_bytes) * resolved.per_mean_packet;
        let count = f64::from(count);
        let p_a = match (resolved.mode, resolved.count) {
            (Mode::Packets, _) => resolved.spaced(p_b, count),
            (Mode::Bytes, Count::Packets) => resolved.spaced((p_b * relative_size).min(1.0), count),
            (Mode::Bytes, Count::Bytes) => {
                let p_a = resolved.spaced(p_b, libm::floor(count / resolved.mean_packet));
                if p_a < 1.0 { p_a * relative_size } else { 1.0 }
            }
        };
        p_a > 0.0 && self.rng.chance(p_a)
    }

    /// Applies RED to an arriving packet; `true` if it survives.
    #[inline]
    fn admit(&mut self, now: Time, packet: &mut P, context: &mut impl Context<P>) -> bool {
        // ns-2 requires a length above 1, in packets or bytes.
        let spared = self.resolved.exempt_short_queue && self.length() <= 1;
        match if spared { Zone::Quiet } else { self.resolved.zone(self.average) } {
            Zone::Quiet => {
                self.count = None;
                true
            }
            Zone::Early(_) if self.count.is_none() && self.resolved.exempt_first => {
                self.count = Some(self.resolved.counted(packet.wire_bytes()));
                true
            }
            Zone::Early(p_b) => {
                if !self.hit_early(p_b, packet.wire_bytes()) {
                    return true;
                }
                self.count = Some(0);
                let ecn = self.resolved.ecn && p_b < self.resolved.mark_p;
                congested(now, packet, ecn, EARLY, context)
            }
            Zone::Step => {
                self.count = Some(0);
                let ecn = self.resolved.ecn && self.resolved.mark_p > 1.0;
                congested(now, packet, ecn, EARLY, context)
            }
            Zone::Forced => {
                if self.resolved.forced == Forced::Spaced
                    && !self.hit_early(1.0, packet.wire_bytes())
                {
                    return true;
                }
                self.count = Some(0);
                let ecn = self.resolved.ecn
                    && self.resolved.forced == Forced::Mark
                    && self.resolved.mark_p > 1.0;
                congested(now, packet, ecn, FORCED, context)
            }
        }
    }
}

impl<P: Packet> Qdisc<P> for Red<P> {
    #[inline]
    fn enqueue(&mut self, now: Time, mut packet: P, context: &mut impl Context<P>) {
        let was_idle = self.idle_since.is_some();
        self.update_average(now);
        if !self.store.fits(packet.wire_bytes()) {
            // A full queue drops, whatever the packet's ECN field; RED counts this as any other
            // hit.
            self.count = self.count.map(|_| 0);
            context.dropped(now, &packet, Reason::OVERLIMIT);
        } else if self.admit(now, &mut packet, context) {
            self.store.push(now, packet);
            return;
        }
        if was_idle {
            // The packet was dropped and the queue is still idle; the average has aged up to now.
            self.idle_since = Some(now);
        }
    }

    #[inline]
    fn dequeue(&mut self, now: Time, _context: &mut impl Context<P>) -> Option<(P, Time)> {
        let sent = self.store.pop();
        let idle = match self.resolved.idle {
            Idle::Emptied => sent.is_some() && self.store.is_empty(),
            Idle::Unanswered => sent.is_none(),
        };
        if idle {
            self.idle_since = Some(now);
        }
        sent
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.store.backlog()
    }

    fn on_rate(&mut self, now: Time, rate: Rate) {
        if let Some(since) = &mut self.idle_since {
            self.idle_before += self.resolved.fitting(*since, now);
            *since = now;
        }
        self.resolved.packets_per_ns = per_ns(rate, self.resolved.mean_packet);
    }

    fn probability(&self) -> Option<f64> {
        Some(match self.resolved.zone(self.average) {
            Zone::Quiet => 0.0,
            Zone::Early(p_b) => p_b,
            Zone::Step | Zone::Forced => 1.0,
        })
    }

    fn state(&self) -> Option<f64> {
        Some(self.average)
    }
}

/// Returns the packets of this size that a link of this rate sends per nanosecond.
fn per_ns(rate: Rate, packet: f64) -> f64 {
    rate.bits_per_sec() as f64 / BITS_PER_BYTE / NS_PER_S / packet
}

const BITS_PER_BYTE: f64 = 8.0;
const NS_PER_S: f64 = 1e9;
