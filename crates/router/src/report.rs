//! What a router says of a run: what happened to packets, and whether it kept up.

use cwnd_aqm::Reason;
use cwnd_link::Slots;
use cwnd_scenario::LinkRate;
use cwnd_trace::{Histogram, LinkSamples, QueueDelayRow, QueueDelays, Table};
use cwnd_trace::{LinkRow, Links, Name};
use cwnd_units::{Duration, Time};

use crate::config::Limits;

/// What a direction counted; everything only grows, so differences count a part of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets that came.
    pub arrived: u64,
    /// What came and was no packet that may be forwarded.
    pub malformed: u64,
    /// Packets that left the line and were not lost there.
    pub sent: u64,
    /// Those of them with payload.
    pub sent_data: u64,
    /// Bytes that the line sent, those of lost packets included.
    pub sent_bytes: u64,
    /// Packets that arrived at the other side.
    pub delivered: u64,
    /// Their bytes.
    pub delivered_bytes: u64,
    /// Packets dropped, by [`Reason`].
    pub drops: [u64; Reason::ALL.len()],
    /// Packets marked, by [`Reason`].
    pub marks: [u64; Reason::ALL.len()],
    /// Packets waiting, integrated over time, packet·ns.
    pub packet_time: u128,
    /// Bytes waiting, integrated over time, B·ns.
    pub byte_time: u128,
    /// The largest packet that came, in bytes.
    pub largest: u32,
}

/// What the loop around an engine says of itself.
#[derive(Clone, Debug, Default)]
pub struct Work {
    /// Start of the run on the machine's monotonic clock.
    pub started: Time,
    /// By direction: from when packets were due to when they were sent.
    pub lateness: [Histogram; 2],
    /// By direction: packets that the other side's device would not take.
    pub undelivered: [u64; 2],
    /// By direction: packets that the sending device dropped because nobody took them in time; `None` if not known.
    pub lost_before: [Option<u64>; 2],
    /// How long the loop waited for something to do.
    pub idle: Duration,
    /// The longest time between two looks at the clock, sleep up to a deadline left out.
    pub longest_turn: Duration,
    /// Processor time that the loop took.
    pub cpu: Duration,
    /// How the thread was scheduled: `fifo` or `normal`.
    pub scheduling: &'static str,
}

/// A finished run.
#[derive(Clone, Debug)]
pub struct Report {
    /// From A to B, and from B to A.
    pub directions: [DirectionReport; 2],
    /// The time series of both, with the simulator's columns; empty if none was asked for.
    pub samples: Table,
    /// What was counted: from the end of the warm-up to the end.
    pub window: Duration,
    /// Length of the run, warm-up included.
    pub elapsed: Duration,
    /// Start of the run on the machine's monotonic clock.
    pub started: Time,
    /// Share of the time in which the loop waited for something to do.
    pub idle: f64,
    /// Share of the time for which the loop held a processor.
    pub cpu: f64,
    /// The longest time between two looks at the clock, sleep up to a deadline left out.
    pub longest_turn: Duration,
    /// How the thread was scheduled: `fifo` or `normal`.
    pub scheduling: &'static str,
    /// Why the run is not what was asked for; empty if it is.
    pub flaws: Vec<String>,
    warmup: Time,
}

/// What happened in one direction.
#[derive(Clone, Debug)]
pub struct DirectionReport {
    /// Its name.
    pub name: String,
    /// Its rate.
    pub rate: LinkRate,
    /// What was counted in the whole run.
    pub total: Counters,
    /// What of it was counted before the end of the warm-up.
    pub before: Counters,
    /// Queueing delay after the warm-up.
    pub qdelay: Histogram,
    /// Packets waiting or being sent at the end.
    pub queued: u64,
    /// Packets inside at the end, those under way included.
    pub held: u64,
    /// From when packets were due to when they were sent.
    pub lateness: Histogram,
    /// Packets that the other side's device would not take.
    pub undelivered: u64,
    /// Packets that the sending device dropped because nobody took them in time; `None` if not known.
    pub lost_before: Option<u64>,
}

impl Report {
    pub(crate) fn new(
        directions: [DirectionReport; 2],
        samples: Vec<LinkSamples>,
        work: &Work,
        window: Duration,
        end: Time,
        warmup: Time,
        limits: Limits,
    ) -> Self {
        let names = [directions[0].name.clone(), directions[1].name.clone()];
        let mut tables =
            samples.into_iter().map(|rows| rows.into_table(|column| labels(&names, column)));
        let mut samples = tables.next().unwrap_or(Table { columns: Vec::new() });
        tables.for_each(|table| samples.append(&table));
        let elapsed = end.since(Time::ZERO);
        let share =
            |part: Duration| part.as_secs_f64() / elapsed.as_secs_f64().max(f64::MIN_POSITIVE);
        let (idle, cpu) = (share(work.idle), share(work.cpu));
        let flaws = flaws(&directions, idle, limits);
        Self {
            directions,
            samples,
            window,
            elapsed,
            started: work.started,
            idle,
            cpu,
            longest_turn: work.longest_turn,
            scheduling: work.scheduling,
            flaws,
            warmup,
        }
    }

    /// Whether the run is what was asked for: the router itself was not the bottleneck.
    #[must_use]
    pub fn valid(&self) -> bool {
        self.flaws.is_empty()
    }

    /// The links at the end, with the simulator's columns.
    #[must_use]
    pub fn links(&self) -> Table {
        let mut links = Links::default();
        for (i, direction) in self.directions.iter().enumerate() {
            let end = Time(self.elapsed.0);
            links.push(direction.row(i as u32, self.window, self.warmup, end));
        }
        links.into_table(|column| labels(&self.names(), column))
    }

    /// The distribution of the queueing delay, with the simulator's columns.
    #[must_use]
    pub fn qdelay(&self) -> Table {
        let mut rows = QueueDelays::default();
        for (i, direction) in self.directions.iter().enumerate() {
            for (low, packets) in direction.qdelay.buckets() {
                let (link_id, link) = (i as u32, Name(i as u32));
                rows.push(QueueDelayRow { link_id, link, qdelay_us: micros(low), packets });
            }
        }
        rows.into_table(|column| labels(&self.names(), column))
    }

    fn names(&self) -> [String; 2] {
        [0, 1].map(|i| self.directions[i].name.clone())
    }
}

impl DirectionReport {
    /// Packets dropped after the warm-up for this reason.
    #[must_use]
    pub const fn drops(&self, reason: Reason) -> u64 {
        self.total.drops[reason as usize] - self.before.drops[reason as usize]
    }

    /// Packets marked after the warm-up for this reason.
    #[must_use]
    pub const fn marks(&self, reason: Reason) -> u64 {
        self.total.marks[reason as usize] - self.before.marks[reason as usize]
    }

    fn row(&self, id: u32, window: Duration, warmup: Time, end: Time) -> LinkRow {
        let (total, before) = (&self.total, &self.before);
        let seconds = window.as_secs_f64();
        let nanos = window.0.max(1) as f64;
        let rate_bit_s = mean_rate(&self.rate, warmup, end);
        let sent_bits = (total.sent_bytes - before.sent_bytes) as f64 * 8.0;
        let dropped_pkts = Reason::ALL.into_iter().map(|r| self.drops(r)).sum();
        let marked_pkts = Reason::ALL.into_iter().map(|r| self.marks(r)).sum();
        let arrived_pkts = total.arrived - before.arrived;
        let quantile = |q| self.qdelay.quantile(q).map(micros);
        LinkRow {
            link_id: id,
            link: Name(id),
            rate_bit_s,
            utilisation: rate_bit_s.filter(|&r| r > 0.0).map(|rate| sent_bits / (rate * seconds)),
            qdelay_mean_us: self.qdelay.mean().map(micros),
            qdelay_p50_us: quantile(0.5),
            qdelay_p90_us: quantile(0.9),
            qdelay_p99_us: quantile(0.99),
            qdelay_max_us: self.qdelay.max().map(micros),
            qlen_mean_pkts: (total.packet_time - before.packet_time) as f64 / nanos,
            qlen_mean_bytes: (total.byte_time - before.byte_time) as f64 / nanos,
            arrived_pkts,
            delivered_pkts: total.sent - before.sent,
            delivered_data_pkts: total.sent_data - before.sent_data,
            dropped_pkts,
            marked_pkts,
            queued_pkts: self.queued,
            drop_ratio: ratio(dropped_pkts, arrived_pkts),
            mark_ratio: ratio(marked_pkts, arrived_pkts),
            drops_overlimit: self.drops(Reason::Overlimit),
            drops_red_early: self.drops(Reason::RedEarly),
            drops_red_forced: self.drops(Reason::RedForced),
            drops_codel: self.drops(Reason::CoDel),
            drops_pie: self.drops(Reason::Pie),
            drops_link_loss: self.drops(Reason::LinkLoss),
            marks_red_early: self.marks(Reason::RedEarly),
            marks_red_forced: self.marks(Reason::RedForced),
            marks_codel: self.marks(Reason::CoDel),
            marks_pie: self.marks(Reason::Pie),
            arrived_total_pkts: total.arrived,
            delivered_total_pkts: total.sent,
            dropped_total_pkts: total.drops.iter().sum(),
            marked_total_pkts: total.marks.iter().sum(),
        }
    }
}

/// What keeps a run from being what was asked for.
fn flaws(directions: &[DirectionReport; 2], idle: f64, limits: Limits) -> Vec<String> {
    let mut flaws = Vec::new();
    for of in directions {
        let name = &of.name;
        if let Some(p99) = of.lateness.quantile(0.99).filter(|&p99| p99 > limits.lateness_p99) {
            flaws.push(format!(
                "{name}: packets left late, 1 % of them by more than {:.2} ms ({} allowed)",
                micros(p99) / 1000.0,
                limits.lateness_p99
            ));
        }
        if let Some(lost) = of.lost_before.filter(|&lost| lost > 0) {
            flaws.push(format!("{name}: {lost} packets were lost before the router read them"));
        }
        if of.undelivered > 0 {
            flaws.push(format!("{name}: {} packets could not be handed over", of.undelivered));
        }
    }
    if idle < limits.idle {
        flaws.push(format!(
            "the router had no time left: it waited {:.1} % of the time ({:.0} % needed)",
            idle * 100.0,
            limits.idle * 100.0
        ));
    }
    flaws
}

/// Mean rate from one instant to another, in bits per second; `None` when unlimited.
fn mean_rate(rate: &LinkRate, from: Time, to: Time) -> Option<f64> {
    match rate {
        LinkRate::Unlimited => None,
        LinkRate::Trace(at_ms) => Slots::new(at_ms.clone()).mean_bit_s_between(from, to),
        LinkRate::Steps { initial, changes } => {
            let seconds = to.since(from).as_secs_f64();
            let mut bits = 0.0;
            let (mut since, mut current) = (from, *initial);
            for &(at, next) in changes {
                bits += current.0 as f64 * at.min(to).since(since).as_secs_f64();
                since = since.max(at.min(to));
                current = next;
            }
            bits += current.0 as f64 * to.since(since).as_secs_f64();
            (seconds > 0.0).then(|| bits / seconds)
        }
    }
}

fn labels(names: &[String; 2], column: &str) -> Vec<String> {
    if column == "link" { names.to_vec() } else { Vec::new() }
}

fn micros(d: Duration) -> f64 {
    d.0 as f64 / 1000.0
}

fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}
