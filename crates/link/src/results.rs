//! Result rows of a link.

use cwnd_packet::Guidance;
use cwnd_quantity::{Duration, Time};
use cwnd_scenario::LinkRate;
use cwnd_tables::{
    Histogram, LinkRow, LinkSampleRow, Name, QueueDelayRow, ReasonRow, Reasons, Table,
};

use crate::counters::{Counters, Packet};
use crate::line::Line;
use crate::timeline::Slots;

/// Counters of a link at the end of a run, from which its rows are computed.
#[derive(Clone, Copy, Debug)]
pub struct Summary<'a> {
    /// Index of the link in the scenario.
    pub id: u32,
    /// Rate of the link.
    pub rate: &'a LinkRate,
    /// End of the warm-up.
    pub from: Time,
    /// End of the run.
    pub to: Time,
    /// Counters at the end of the warm-up.
    pub before: &'a Counters,
    /// Counters over the whole run.
    pub total: &'a Counters,
    /// Distribution of the queueing delay since the end of the warm-up.
    pub qdelay: &'a Histogram,
    /// Packets in the queue, in the device and on the line at the end.
    pub queued: u64,
}

impl Summary<'_> {
    /// Computes the row of the link.
    #[must_use]
    pub fn row(&self) -> LinkRow {
        let Self { id, total, before, qdelay, .. } = self;
        let window = self.to.since(self.from);
        let seconds = window.as_secs_f64();
        let nanos = window.0.max(1) as f64;
        let rate_bit_s = mean_rate(self.rate, self.from, self.to);
        let dropped_pkts = total.drops.total() - before.drops.total();
        let marked_pkts = total.marks.total() - before.marks.total();
        let arrived_pkts = total.arrived - before.arrived;
        let sent_bits = (total.delivered_bytes - before.delivered_bytes) as f64 * 8.0;
        let quantile = |q| qdelay.quantile(q).map(micros);
        LinkRow {
            link_id: *id,
            link: Name(*id),
            rate_bit_s,
            utilisation: rate_bit_s.filter(|&r| r > 0.0).map(|rate| sent_bits / (rate * seconds)),
            qdelay_mean_us: qdelay.mean().map(micros),
            qdelay_p50_us: quantile(0.5),
            qdelay_p90_us: quantile(0.9),
            qdelay_p95_us: quantile(0.95),
            qdelay_p99_us: quantile(0.99),
            qdelay_max_us: qdelay.max().map(micros),
            qlen_mean_pkts: (total.packet_time - before.packet_time) as f64 / nanos,
            qlen_mean_bytes: (total.byte_time - before.byte_time) as f64 / nanos,
            arrived_pkts,
            delivered_pkts: total.delivered - before.delivered,
            delivered_data_pkts: total.delivered_data - before.delivered_data,
            dropped_pkts,
            marked_pkts,
            queued_pkts: self.queued,
            drop_ratio: ratio(dropped_pkts, arrived_pkts),
            mark_ratio: ratio(marked_pkts, arrived_pkts),
            arrived_total_pkts: total.arrived,
            delivered_total_pkts: total.delivered,
            dropped_total_pkts: total.drops.total(),
            marked_total_pkts: total.marks.total(),
            // Only the simulator knows the later fate of the packets, and source quenches.
            ..LinkRow::default()
        }
    }

    /// Rows of the distribution of the queueing delay, one for each bucket with packets.
    pub fn qdelay_rows(&self) -> impl Iterator<Item = QueueDelayRow> {
        let link_id = self.id;
        self.qdelay.buckets().map(move |(low, packets)| QueueDelayRow {
            link_id,
            link: Name(link_id),
            qdelay_us: micros(low),
            packets,
        })
    }
}

/// Collects the drops and marks of links by reason.
#[derive(Debug, Default)]
pub struct ReasonTable {
    rows: Reasons,
    /// Names of the reasons, in order of appearance.
    names: Vec<&'static str>,
}

/// Labels of [`ReasonRow::verdict`], by value.
const VERDICTS: [&str; 2] = ["dropped", "marked"];

impl ReasonTable {
    /// Adds the reasons of a link: drops before marks, each in order of first appearance.
    pub fn add(&mut self, of: &Summary<'_>) {
        let tallies = [(&of.total.drops, &of.before.drops), (&of.total.marks, &of.before.marks)];
        for (verdict, (total, before)) in (0..).zip(tallies) {
            for (reason, total_packets) in total.iter() {
                let known = self.names.iter().position(|&name| name == reason.name());
                let number = known.unwrap_or_else(|| {
                    self.names.push(reason.name());
                    self.names.len() - 1
                });
                self.rows.push(ReasonRow {
                    link_id: of.id,
                    link: Name(of.id),
                    verdict: Name(verdict),
                    reason: Name(number as u32),
                    packets: total_packets - before.of(reason),
                    total_packets,
                });
            }
        }
    }

    /// Returns the finished table; `links` are the names of the links.
    #[must_use]
    pub fn into_table(self, links: Vec<String>) -> Table {
        let Self { rows, names } = self;
        let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        rows.into_table(|column| match column {
            "verdict" => owned(&VERDICTS),
            "reason" => owned(&names),
            _ => links.clone(),
        })
    }
}

/// Row of a time series for link number `id` at one instant; `line` is `None` if the rate is
/// unlimited.
pub fn sample<P: Packet>(
    id: u32,
    now: Time,
    counters: &Counters,
    line: Option<&Line<P>>,
) -> LinkSampleRow {
    let backlog = line.map(Line::backlog).unwrap_or_default();
    let guidance = line.and_then(Line::guidance);
    LinkSampleRow {
        time_s: now.as_secs_f64(),
        link_id: id,
        link: Name(id),
        qlen_pkts: backlog.packets,
        qlen_bytes: backlog.bytes,
        sojourn_us: line.and_then(Line::last_sojourn).map(micros),
        enq: counters.arrived,
        deq: counters.delivered,
        drop: counters.drops.total(),
        mark: counters.marks.total(),
        aqm_prob: line.and_then(Line::probability),
        load_factor: match guidance {
            Some(Guidance::Load(factor)) => Some(factor),
            _ => None,
        },
        offered_bit_s: match guidance {
            Some(Guidance::Rate(rate)) => Some(rate.0 as f64),
            _ => None,
        },
        feedback_bit_s: match guidance {
            Some(Guidance::Aggregate(bit_s)) => Some(bit_s),
            _ => None,
        },
        // Only the simulator knows the messages of the link's router.
        ..LinkSampleRow::default()
    }
}

/// Bytes that a line can send, for many instants in order.
#[derive(Debug)]
pub struct Capacity {
    rate: LinkRate,
    slots: Option<Slots>,
    /// Instant up to which `bits` counts.
    at: Time,
    bits: f64,
}

impl Capacity {
    /// Creates the capacity of a line, nothing at time zero; `None` if its rate is unlimited.
    #[must_use]
    pub fn of(rate: &LinkRate) -> Option<Self> {
        let slots = match rate {
            LinkRate::Unlimited => return None,
            LinkRate::Trace(at_ms) => Some(Slots::new(at_ms.clone())),
            LinkRate::Steps { .. } => None,
        };
        Some(Self { rate: rate.clone(), slots, at: Time::ZERO, bits: 0.0 })
    }

    /// Returns the bytes up to `t`, which is no earlier than that of the call before.
    pub fn bytes_by(&mut self, t: Time) -> u64 {
        if let Some(slots) = &self.slots {
            return slots.bytes_before(t);
        }
        let mean = self.rate.mean_bit_s_between(self.at, t).unwrap_or(0.0);
        self.bits += mean * t.since(self.at).as_secs_f64();
        self.at = t;
        (self.bits / 8.0) as u64
    }
}

/// Mean rate between two instants in bits per second; `None` if the rate is unlimited, or if no
/// time lies between them.
fn mean_rate(rate: &LinkRate, from: Time, to: Time) -> Option<f64> {
    match rate {
        LinkRate::Unlimited => None,
        LinkRate::Trace(at_ms) => Slots::new(at_ms.clone()).mean_bit_s_between(from, to),
        LinkRate::Steps { .. } => rate.mean_bit_s_between(from, to),
    }
}

fn micros(d: Duration) -> f64 {
    d.0 as f64 / 1000.0
}

fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

#[cfg(test)]
mod tests {
    use cwnd_aqm::{Reason, codel};
    use cwnd_quantity::Rate;
    use cwnd_tables::ColumnData;

    use super::*;

    const S: u64 = 1_000_000_000;

    #[test]
    fn a_row_counts_what_came_after_the_warm_up() {
        // 8 kbit/s in the first of the three seconds counted, 4 kbit/s in the other two: 16 kbit
        // could have passed.
        let rate = LinkRate::steps(Rate(8000), vec![(Time(2 * S), Rate(4000))]);
        let mut before =
            Counters { arrived: 10, delivered: 9, delivered_bytes: 9000, ..Counters::default() };
        before.drops.add(Reason::OVERLIMIT, 2);
        let mut total = Counters {
            arrived: 14,
            delivered: 10,
            delivered_bytes: 10_000,
            packet_time: u128::from(6 * S),
            ..before.clone()
        };
        total.drops.add(Reason::OVERLIMIT, 1);
        total.marks.add(codel::REASON, 3);
        let mut qdelay = Histogram::default();
        qdelay.add(Duration(5000));
        let summary = Summary {
            id: 3,
            rate: &rate,
            from: Time(S),
            to: Time(4 * S),
            before: &before,
            total: &total,
            qdelay: &qdelay,
            queued: 2,
        };
        let row = summary.row();
        assert_eq!((row.link_id, row.arrived_pkts, row.arrived_total_pkts), (3, 4, 14));
        assert_eq!((row.delivered_pkts, row.delivered_total_pkts, row.queued_pkts), (1, 10, 2));
        assert_eq!((row.dropped_pkts, row.drop_ratio), (1, 0.25));
        let mut reasons = ReasonTable::default();
        reasons.add(&summary);
        let table = reasons.into_table(["a", "b", "c", "d"].map(str::to_owned).to_vec());
        assert_eq!(table.column("packets"), Some(&ColumnData::U64(vec![1, 3])));
        assert_eq!(table.column("total_packets"), Some(&ColumnData::U64(vec![3, 3])));
        let named = |column: &str, row: usize| match table.column(column) {
            Some(ColumnData::Name { codes, labels }) => labels[codes[row].0 as usize].clone(),
            other => panic!("{other:?}"),
        };
        let told = [0, 1].map(|row| ["link", "verdict", "reason"].map(|of| named(of, row)));
        assert_eq!(told, [["d", "dropped", "overlimit"], ["d", "marked", "codel"]]);
        assert_eq!((row.rate_bit_s, row.utilisation), (Some(16_000.0 / 3.0), Some(0.5)));
        assert_eq!((row.qlen_mean_pkts, row.qdelay_max_us), (2.0, Some(5.0)));
        let buckets: Vec<_> = summary.qdelay_rows().map(|r| (r.link_id, r.packets)).collect();
        assert_eq!(buckets, [(3, 1)]);
    }

    #[test]
    fn a_link_without_a_rate_is_used_to_no_share() {
        let summary = Summary {
            id: 0,
            rate: &LinkRate::Unlimited,
            from: Time::ZERO,
            to: Time::ZERO,
            before: &Counters::default(),
            total: &Counters::default(),
            qdelay: &Histogram::default(),
            queued: 0,
        };
        let row = summary.row();
        assert_eq!((row.rate_bit_s, row.utilisation, row.qdelay_p50_us), (None, None, None));
        assert_eq!((row.drop_ratio, row.qlen_mean_bytes), (0.0, 0.0));
    }
}
