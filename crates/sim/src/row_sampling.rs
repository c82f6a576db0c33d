//! Row sampling: random selection of the flows and requests that have rows, distributions over all
//! of them, and sums over the flows without rows.

use cwnd_quantity::{Duration, Rng, Streams, Time};
use cwnd_scenario::{Record, Scenario};
use cwnd_tables::{FlowRow, Name, Sketch, SketchRow, Sketches, Unrecorded, UnrecordedRow};

/// Labels of [`SketchRow::what`], in the order of a group's sketches: response times of answered
/// requests, waiting times of requests without response by outcome, completion times of flows.
pub const SKETCHED: [&str; 5] = ["answered", "open", "rejected", "given-up", "completed"];
/// Index of completion times in [`SKETCHED`], after the outcomes of requests.
const COMPLETED: usize = SKETCHED.len() - 1;

/// Independent random selection: each flow or request has a row with probability `share`.
#[derive(Debug)]
struct RowDraw {
    share: f64,
    rng: Rng,
}

impl RowDraw {
    /// Creates the selection from its named stream; `None` if the share is 1.
    fn of(share: f64, streams: &Streams, name: &str) -> Option<Self> {
        (share < 1.0).then(|| Self { share, rng: streams.named(name) })
    }

    fn has_row(&mut self) -> bool {
        self.rng.chance(self.share)
    }
}

/// Row sampling of a run, with sketches and sums per group.
#[derive(Debug)]
pub struct RowSampling {
    flows: Option<RowDraw>,
    requests: Option<RowDraw>,
    groups: Vec<Group>,
    warmup: Time,
}

#[derive(Debug, Default)]
struct Group {
    /// `true` if flows arrive: only then may a flow lack a row.
    arriving: bool,
    /// Payload of a full segment, bytes.
    mss: u64,
    /// Sketches in the order of [`SKETCHED`].
    sketches: [Sketch; SKETCHED.len()],
    sums: UnrecordedRow,
}

impl RowSampling {
    /// Creates the row sampling of a scenario; `None` if everything has a row.
    pub fn of(scenario: &Scenario, streams: &Streams) -> Option<Box<Self>> {
        let Record { requests, flows } = scenario.record;
        let groups = scenario.flows.iter().map(|group| Group {
            arriving: group.arriving().is_some(),
            mss: group.full_payload().max(1),
            ..Group::default()
        });
        let sampling = Self {
            flows: RowDraw::of(flows.0, streams, "record.flows"),
            requests: RowDraw::of(requests.0, streams, "record.requests"),
            groups: groups.collect(),
            warmup: Time(scenario.run.warmup.0),
        };
        (sampling.flows.is_some() || sampling.requests.is_some()).then(|| Box::new(sampling))
    }

    /// Counts a request with its response or waiting time; returns `true` if it has a row. Without
    /// sampling of requests, it counts nothing and returns `true`.
    pub fn request(&mut self, group: u32, outcome: u32, took: Duration) -> bool {
        let Some(draw) = &mut self.requests else { return true };
        self.groups[group as usize].sketches[outcome as usize].add(took);
        draw.has_row()
    }

    /// Counts a flow, with its completion time if it completed; returns `true` if it has a row.
    /// Without sampling of flows, and for a flow of a group without arrivals, it counts nothing and
    /// returns `true`.
    pub fn flow(&mut self, row: &FlowRow, completed: Option<Duration>) -> bool {
        let group = &mut self.groups[row.group.0 as usize];
        let Some(draw) = self.flows.as_mut().filter(|_| group.arriving) else { return true };
        if let Some(took) = completed {
            group.sketches[COMPLETED].add(took);
        }
        let has_row = draw.has_row();
        if !has_row {
            group.add(row, self.warmup);
        }
        has_row
    }

    /// Returns the sketches and the sums over flows without rows.
    pub fn finish(self) -> (Sketches, Unrecorded) {
        let (mut sketches, mut unrecorded) = (Sketches::default(), Unrecorded::default());
        for (number, group) in (0..).zip(self.groups) {
            for (what, sketch) in (0..).zip(&group.sketches) {
                for (from, to, bucket) in sketch.buckets() {
                    sketches.push(SketchRow {
                        group: Name(number),
                        what: Name(what),
                        from_s: from.as_secs_f64(),
                        to_s: to.as_secs_f64(),
                        count: bucket.count,
                        sum_s: bucket.sum_ns as f64 / 1e9,
                        longest_s: bucket.longest.as_secs_f64(),
                    });
                }
            }
            if group.sums.flows > 0 {
                unrecorded.push(UnrecordedRow { group: Name(number), ..group.sums });
            }
        }
        (sketches, unrecorded)
    }
}

impl Group {
    fn add(&mut self, row: &FlowRow, warmup: Time) {
        let sums = &mut self.sums;
        sums.flows += 1;
        sums.goodput_bit_s += row.goodput_bit_s;
        sums.throughput_bit_s += row.throughput_bit_s;
        sums.delivered_bytes += row.delivered_bytes;
        sums.bytes_received += row.bytes_received;
        sums.wire_bits += row.throughput_bit_s * row.duration_s;
        if let (Some(p50), Some(p95)) = (row.rtt_p50_us, row.rtt_p95_us) {
            sums.flows_with_rtt += 1;
            sums.rtt_p50_us += p50;
            sums.rtt_p95_us += p95;
        }
        sums.segments_sent += row.segments_sent;
        sums.retrans += row.retrans;
        sums.ce_received += row.ce_received;
        sums.rto_count += row.rto_count;
        sums.cwnd_reductions_loss += row.cwnd_reductions_loss;
        sums.cwnd_reductions_ecn += row.cwnd_reductions_ecn;
        sums.cwnd_reductions_rto += row.cwnd_reductions_rto;
        sums.cwnd_reductions_quench += row.cwnd_reductions_quench;
        sums.cwnd_reductions_delay += row.cwnd_reductions_delay;
        sums.rto_under_way += row.rto_under_way;
        sums.duplicates += row.duplicates;
        sums.gave_up_at_syn += u64::from(row.gave_up.0 == 1);
        sums.gave_up_at_data += u64::from(row.gave_up.0 == 2);
        if let Some(size) = row.size_bytes {
            sums.sized += 1;
            if row.start_s >= warmup.as_secs_f64() {
                sums.offered_bytes += size;
                sums.offered_segments += size.div_ceil(self.mss);
            }
        }
        if let Some(fct) = row.fct_s {
            sums.completed += 1;
            sums.fct_s += fct;
        }
        sums.began += u64::from(row.start_s >= warmup.as_secs_f64());
    }
}
