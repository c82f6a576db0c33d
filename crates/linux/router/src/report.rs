//! Report of a router's run: packets forwarded, dropped and marked, and the lag of the router.

use cwnd_aqm::Reason;
use cwnd_link::{ReasonTable, Summary};
use cwnd_quantity::{Duration, Time};
use cwnd_scenario::LinkRate;
use cwnd_tables::{Activity, Buckets, Histogram, LinkRow, LinkSamples, Links, QueueDelays, Table};

use crate::config::Limits;

/// Counters of a direction. They never decrease; except for `largest`, their differences count a
/// part of the run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets that arrived at the link, and their fate there.
    pub link: cwnd_link::Counters,
    /// Arrivals that were not packets that may be forwarded.
    pub malformed: u64,
    /// Packets that left at the other side.
    pub delivered: u64,
    /// Bytes of these packets.
    pub delivered_bytes: u64,
    /// Largest packet that arrived, bytes.
    pub largest: u32,
}

/// Account of the loop around an engine.
#[derive(Clone, Debug, Default)]
pub struct Work {
    /// Start of the run on the machine's monotonic clock.
    pub started: Time,
    /// Start of the run as time of day, since 1970.
    pub began: Time,
    /// Lateness of each direction: from when packets were due to when they were sent.
    pub lateness: [Histogram; 2],
    /// Packets of each direction that the other side's device rejected.
    pub undelivered: [u64; 2],
    /// Packets of each direction that the sending device dropped because the router did not read
    /// them in time; `None` if not known.
    pub lost_before: [Option<u64>; 2],
    /// Time for which the loop waited for work.
    pub idle: Duration,
    /// Longest turn of the loop that moved packets, or longest delay of a wake-up.
    pub longest_turn: Duration,
    /// Processor time used by the loop.
    pub cpu: Duration,
    /// Scheduling policy of the thread: `fifo` or `normal`.
    pub scheduling: &'static str,
}

/// Report of a finished run.
#[derive(Clone, Debug)]
pub struct Report {
    /// Reports of both directions, from A to B and from B to A.
    pub directions: [DirectionReport; 2],
    /// Time series of both directions, with the simulator's columns; empty if none was requested.
    pub samples: Table,
    /// Length of the counted part: from the end of the warm-up to the end.
    pub window: Duration,
    /// Length of the run, warm-up included.
    pub elapsed: Duration,
    /// Start of the run on the machine's monotonic clock.
    pub started: Time,
    /// Start of the run as time of day, since 1970.
    pub began: Time,
    /// Fraction of the time for which the loop waited for work.
    pub idle: f64,
    /// Fraction of the time for which the loop used a processor.
    pub cpu: f64,
    /// Longest turn of the loop that moved packets, or longest delay of a wake-up.
    pub longest_turn: Duration,
    /// Scheduling policy of the thread: `fifo` or `normal`.
    pub scheduling: &'static str,
    /// Reasons why the run is invalid; empty if it is valid.
    pub flaws: Vec<String>,
    warmup: Time,
}

/// Report of one direction.
#[derive(Clone, Debug)]
pub struct DirectionReport {
    /// Name of the direction.
    pub name: String,
    /// Rate of its line.
    pub rate: LinkRate,
    /// Counters of the whole run.
    pub total: Counters,
    /// Counters at the end of the warm-up; zero if the run ended before it.
    pub before: Counters,
    /// Named counters of its queue, meter and messenger in the whole run.
    pub counted: Activity,
    /// Source quenches written about its packets in the whole run.
    pub quenches: u64,
    /// Queueing delay after the warm-up.
    pub qdelay: Histogram,
    /// Queueing delay of the data packets of watched sources after the warm-up, by number.
    pub waits: Vec<Buckets>,
    /// Packets in the queue, in the device or in transmission at the end.
    pub queued: u64,
    /// Packets in the queue, in the device, in transmission or behind the line at the end.
    pub held: u64,
    /// Packets at the end that had not reached the queue, as they came from far receivers. They are
    /// not counted as arrived.
    pub from_far_receivers: u64,
    /// Time from when packets were due to when they were sent, warm-up included.
    pub lateness: Histogram,
    /// Packets that the other side's device rejected.
    pub undelivered: u64,
    /// Packets that the sending device dropped because the router did not read them in time; `None`
    /// if not known.
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
            began: work.began,
            idle,
            cpu,
            longest_turn: work.longest_turn,
            scheduling: work.scheduling,
            flaws,
            warmup,
        }
    }

    /// `true` if the run has no flaws.
    #[must_use]
    pub fn valid(&self) -> bool {
        self.flaws.is_empty()
    }

    /// Returns the table of links at the end, with the simulator's columns.
    #[must_use]
    pub fn links(&self) -> Table {
        let mut links = Links::default();
        for (summary, of) in self.summaries().zip(&self.directions) {
            links.push(LinkRow { quenches_total_pkts: of.quenches, ..summary.row() });
        }
        links.into_table(|column| labels(&self.names(), column))
    }

    /// Returns the table of drops and marks by reason, with the simulator's columns.
    #[must_use]
    pub fn reasons(&self) -> Table {
        let mut reasons = ReasonTable::default();
        self.summaries().for_each(|summary| reasons.add(&summary));
        reasons.into_table(self.names().to_vec())
    }

    /// Returns the distribution of the queueing delay, with the simulator's columns.
    #[must_use]
    pub fn qdelay(&self) -> Table {
        let mut rows = QueueDelays::default();
        self.summaries().for_each(|summary| summary.qdelay_rows().for_each(|row| rows.push(row)));
        rows.into_table(|column| labels(&self.names(), column))
    }

    fn summaries(&self) -> impl Iterator<Item = Summary<'_>> {
        let end = Time(self.elapsed.0);
        (0..).zip(&self.directions).map(move |(id, of)| of.summary(id, self.warmup, end))
    }

    /// Returns the sums of the named counters of both directions.
    #[must_use]
    pub fn counted(&self) -> Activity {
        let mut counted = Activity::default();
        for direction in &self.directions {
            direction.counted.iter().for_each(|(name, n)| counted.add(name.to_owned(), n));
        }
        counted
    }

    fn names(&self) -> [String; 2] {
        [0, 1].map(|i| self.directions[i].name.clone())
    }
}

impl DirectionReport {
    /// Returns the number of packets dropped after the warm-up for this reason.
    #[must_use]
    pub fn drops(&self, reason: Reason) -> u64 {
        self.total.link.drops.of(reason) - self.before.link.drops.of(reason)
    }

    /// Returns the number of packets marked after the warm-up for this reason.
    #[must_use]
    pub fn marks(&self, reason: Reason) -> u64 {
        self.total.link.marks.of(reason) - self.before.link.marks.of(reason)
    }

    /// Returns the summary of this direction as a link that is counted until `end`.
    fn summary(&self, id: u32, warmup: Time, end: Time) -> Summary<'_> {
        Summary {
            id,
            rate: &self.rate,
            from: warmup,
            to: end,
            before: &self.before.link,
            total: &self.total.link,
            qdelay: &self.qdelay,
            queued: self.queued,
        }
    }
}

/// Returns the reasons why a run is invalid.
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

fn labels(names: &[String; 2], column: &str) -> Vec<String> {
    if column == "link" { names.to_vec() } else { Vec::new() }
}

fn micros(d: Duration) -> f64 {
    d.0 as f64 / 1000.0
}
