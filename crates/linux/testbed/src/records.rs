//! Conversion of observations of both sides and the router to the simulator's tables, and to facts
//! for the run's manifest. Values that Linux lacks are null.

use std::iter::repeat_n;

use cwnd_quantity::{Duration, Time};
use cwnd_router::{DirectionReport, Report};
use cwnd_scenario::{FlowGroup, Scenario};
use cwnd_tables::{
    Activity, Column, ColumnData, Delays, FlowRow, FlowSampleRow, FlowSamples, Flows, Histogram,
    Name, Records, Requests, Sketches, Table, Unrecorded,
};
use serde_json::{Value, json};

use crate::calibrate::Calibration;
use crate::datagrams::{MAX_LATENESS, ReceivedDatagrams, SentDatagrams};
use crate::host::{Received, Sent, SideObservations};
use crate::kernel::{self, BoundsReport, Counts};
use crate::namespace::{TcpInfo, sysctl};
use crate::programs;
use crate::world::{Side, World};

/// Names of `TCP_CA_*` in their order; the simulator has no `Disorder`.
const STATES: [&str; 5] = ["Open", "Disorder", "Cwr", "Recovery", "Loss"];
/// Slow-start threshold that was never set (`TCP_INFINITE_SSTHRESH`).
const NO_SSTHRESH: u32 = 0x7fff_ffff;
/// Minimum RTT before the first sample (kernel's `minmax`).
const NO_MIN_RTT: u32 = u32::MAX;
/// Length of the headers of a data segment, bytes: IPv4, TCP, timestamps.
const HEADER_BYTES: f64 = 52.0;

/// Values of a flow after the warm-up; `None` for those that the kernel does not report.
#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    throughput_bit_s: Option<f64>,
    segments_sent: Option<u64>,
    retrans: Option<u64>,
    ce_received: Option<u64>,
    segments_received: Option<u64>,
    timeouts: Option<u64>,
    first_timeouts: Option<u64>,
    by_controller: Option<Counts>,
}

/// Returns the tables. `by_controllers` has the counters of each group's controller, if it has any;
/// they count all flows of the group, so they fill columns of flows only in groups of one flow.
pub fn records(
    world: &World,
    seen: &[SideObservations; 2],
    report: &Report,
    by_controllers: &[Option<kernel::Counted>],
) -> Records {
    let mut rows = Flows::default();
    let mut counted = Vec::new();
    for flow in 0..world.flows.len() {
        if let Some(sent) = seen.iter().find_map(|side| side.datagrams.sent.get(&flow)) {
            let received = seen.iter().find_map(|side| side.datagrams.received.get(&flow));
            counted.push(None);
            rows.push(datagrams_row(world, flow, sent, received.copied().unwrap_or_default()));
        }
        let Some(sent) = seen.iter().find_map(|side| side.sent.get(&flow)) else { continue };
        let received = seen.iter().find_map(|side| side.received.get(&flow)).copied();
        let received = received.unwrap_or_default();
        let alone = world.flows.iter().filter(|f| f.group == world.flows[flow].group).count() == 1;
        let by_controller = by_controllers[world.flows[flow].group].as_ref().filter(|_| alone);
        let by_controller = by_controller.map(|counted| counted.counts);
        let seconds = seconds(world, flow, sent);
        counted.push(Some(count(world, sent, &received, seconds, by_controller)));
        rows.push(row(world, flow, sent, &received, seconds));
    }
    let flows =
        fill_optional_columns(rows.into_table(|column| labels(&world.scenario, column)), &counted);
    let total = |of: fn(&SideObservations) -> u64| -> u64 { seen.iter().map(of).sum() };
    let directions = &report.directions;
    let mut activity = Activity::default();
    for (name, count) in [
        ("flows", counted.len() as u64),
        ("queue_drops", directions.iter().map(|d| d.total.link.drops.total()).sum()),
        ("queue_marks", directions.iter().map(|d| d.total.link.marks.total()).sum()),
        (
            "ce_received",
            total(|s| s.received.values().filter_map(|r| r.info.received_ce).map(u64::from).sum()),
        ),
        (
            "ece_acks",
            total(|s| s.sent.values().filter_map(|s| s.info.delivered_ce).map(u64::from).sum()),
        ),
        (
            "retransmissions",
            total(|s| s.sent.values().map(|s| u64::from(s.info.total_retrans)).sum()),
        ),
        (
            "timeouts",
            total(|s| s.sent.values().filter_map(|s| s.info.total_rto).map(u64::from).sum()),
        ),
    ] {
        activity.add(name, count);
    }
    for &(name, count) in by_controllers.iter().flatten().flat_map(|counted| &counted.named) {
        activity.add(name, count);
    }
    activity.extend_with(&report.counted());
    Records {
        flows,
        links: null_unknown_link_columns(report.links()),
        reasons: report.reasons(),
        flow_series: series(world, seen),
        link_series: report.samples.clone(),
        qdelay: report.qdelay(),
        delays: delays(world, seen, report),
        requests: Requests::default().into_table(|_| Vec::new()),
        sketches: Sketches::default().into_table(|_| Vec::new()),
        unrecorded: Unrecorded::default().into_table(|_| Vec::new()),
        end: Time(world.scenario.run.duration.0),
        request_count: 0,
        activity,
        events: 0,
        delivered_data_packets: directions.iter().map(|d| d.total.link.delivered_data).sum(),
    }
}

/// Returns the queueing delays of the groups' data at the router, and the jitter of datagrams at
/// their receivers.
fn delays(world: &World, seen: &[SideObservations; 2], report: &Report) -> Table {
    let mut rows = Delays::default();
    for (g, group) in (0..).zip(&world.scenario.flows) {
        let from = Side::of_node(group.paths[0].from);
        let waits = report.directions[from as usize].waits.get(g as usize);
        let jitter = seen.iter().find_map(|side| side.datagrams.jitter.get(&(g as usize)));
        for (kind, delays) in (0..).zip([waits, jitter]) {
            delays.into_iter().for_each(|delays| rows.add(g, kind, delays));
        }
    }
    rows.into_table(|column| labels(&world.scenario, column))
}

/// Returns the time for which a flow was counted, s.
fn seconds(world: &World, flow: usize, sent: &Sent) -> f64 {
    let run = &world.scenario.run;
    let end = Time(run.duration.0);
    let ended = world.finished(flow).or(sent.stopped).unwrap_or(end).min(end);
    ended.since(world.flows[flow].start.max(Time(run.warmup.0))).as_secs_f64()
}

/// Returns the values of a flow after the warm-up.
fn count(
    world: &World,
    sent: &Sent,
    received: &Received,
    seconds: f64,
    by_controller: Option<Counts>,
) -> Counted {
    let (now, then) = (&sent.info, &sent.before);
    let since = |of: fn(&TcpInfo) -> Option<u64>| {
        Some(of(now)?.saturating_sub(of(then).unwrap_or(0))).filter(|_| sent.seen)
    };
    let arrived = |of: fn(&TcpInfo) -> Option<u64>| {
        let (now, then) = (&received.info, &received.before);
        Some(of(now)?.saturating_sub(of(then).unwrap_or(0))).filter(|_| received.seen)
    };
    let segments_sent = since(|i| i.data_segs_out.map(u64::from));
    let bytes_sent = since(|i| i.bytes_sent);
    let segments_received = arrived(|i| i.data_segs_in.map(u64::from));
    // The kernel counts all received segments, but only new bytes. Segments of a connection are
    // taken to be as large as those sent on average: only the last of a transfer differs.
    let payload = match (bytes_sent, segments_sent) {
        (Some(bytes), Some(segments)) if segments > 0 => Some(bytes as f64 / segments as f64),
        _ => None,
    };
    let throughput_bit_s = match (segments_received, payload) {
        (Some(segments), Some(payload)) if seconds > 0.0 => {
            Some(segments as f64 * (payload + HEADER_BYTES) * 8.0 / seconds)
        }
        _ => None,
    };
    Counted {
        throughput_bit_s,
        segments_sent,
        retrans: since(|i| Some(u64::from(i.total_retrans))),
        ce_received: arrived(|i| i.received_ce.map(u64::from)),
        segments_received,
        timeouts: since(|i| i.total_rto.map(u64::from)),
        first_timeouts: since(|i| i.total_rto_recoveries.map(u64::from)),
        // These counters run from the start, and would include the warm-up.
        by_controller: by_controller.filter(|_| world.scenario.run.warmup == Duration::ZERO),
    }
}

/// Returns a row with the values that are always known; `fill_optional_columns` adds the others.
fn row(world: &World, flow: usize, sent: &Sent, received: &Received, seconds: f64) -> FlowRow {
    let plan = &world.flows[flow];
    let group = &world.scenario.flows[plan.group];
    let whole = world.delivered(flow);
    let delivered = whole - received.delivered_before;
    // The kernel's minimum covers the last five minutes, including the warm-up.
    let no_warmup = world.scenario.run.warmup == Duration::ZERO;
    let least = min_rtt_us(&sent.info).filter(|_| sent.seen);
    let rtt_min_us = least.filter(|_| no_warmup);
    let min_rtt_us = least.filter(|_| uses_rtt_of_group(group));
    FlowRow {
        goodput_bit_s: if seconds > 0.0 { delivered as f64 * 8.0 / seconds } else { 0.0 },
        delivered_bytes: delivered,
        bytes_received: whole,
        rtt_min_us,
        min_rtt_us,
        size_bytes: plan.size,
        fct_s: world.finished(flow).map(|at| at.since(plan.start).as_secs_f64()),
        ..planned_row(world, flow, seconds)
    }
}

/// Returns the row of a flow with what is known before it runs, and its duration.
fn planned_row(world: &World, flow: usize, seconds: f64) -> FlowRow {
    let plan = &world.flows[flow];
    let path = &world.scenario.flows[plan.group].paths[0];
    FlowRow {
        flow_id: flow as u32,
        group: Name(plan.group as u32),
        controller: Name(plan.group as u32),
        start_s: plan.start.as_secs_f64(),
        duration_s: seconds,
        rtt_base_us: micros(world.scenario.propagation(path) + plan.edge_rtt),
        ..FlowRow::default()
    }
}

/// Returns the row of a flow of datagrams.
fn datagrams_row(
    world: &World,
    flow: usize,
    sent: &SentDatagrams,
    received: ReceivedDatagrams,
) -> FlowRow {
    let (plan, run) = (&world.flows[flow], &world.scenario.run);
    let group = &world.scenario.flows[plan.group];
    // Datagrams in flight when the source stops still count.
    let stop = group.stop.unwrap_or(Time::NEVER).max(received.last_arrival);
    let ended = stop.min(Time(run.duration.0));
    let seconds = ended.since(plan.start.max(Time(run.warmup.0))).as_secs_f64();
    let rate = |bytes: u64| if seconds > 0.0 { bytes as f64 * 8.0 / seconds } else { 0.0 };
    let planned = planned_row(world, flow, seconds);
    let start = plan.start.max(Time(run.warmup.0));
    let waited = micros(Time(run.duration.0).since(start)) > planned.rtt_base_us;
    FlowRow {
        goodput_bit_s: rate(received.bytes),
        throughput_bit_s: rate(received.wire_bytes),
        delivered_bytes: received.bytes,
        bytes_received: received.total_bytes,
        segments_sent: sent.datagrams,
        lost_ratio: received
            .arrivals
            .lost_ratio(&received.arrivals_in_warmup, sent.datagrams > 0 && waited),
        ..planned
    }
}

/// Returns the table of links with null for the fate of packets beyond the link, which only a
/// simulator knows. Source quenches are known to the router.
fn null_unknown_link_columns(mut links: Table) -> Table {
    let unknown = |column: &&mut Column| column.rare && column.name != "quenches_total_pkts";
    for column in links.columns.iter_mut().filter(unknown) {
        let nothing = repeat_n(None, column.data.len());
        column.data = ColumnData::OptionalU64(nothing.collect());
    }
    links
}

/// Fills columns that Linux may not report with counted values or null; rows of datagrams, `None`,
/// have all their values.
fn fill_optional_columns(mut table: Table, counted: &[Option<Counted>]) -> Table {
    type Count = fn(&Counted) -> Option<u64>;
    type Measure = fn(&Counted) -> Option<f64>;
    let counts: [(&str, Count); 22] = [
        ("segments_sent", |c| c.segments_sent),
        ("retrans", |c| c.retrans),
        ("ce_received", |c| c.ce_received),
        ("rto_count", |c| c.timeouts),
        ("rto_nth_1", |c| c.first_timeouts),
        ("rto_nth_2", |_| None),
        ("rto_nth_3", |_| None),
        ("rto_nth_4", |_| None),
        ("rto_nth_5_plus", |_| None),
        ("cwnd_reductions_loss", |c| Some(c.by_controller?.loss)),
        ("cwnd_reductions_ecn", |c| Some(c.by_controller?.ecn)),
        ("cwnd_reductions_rto", |c| c.timeouts),
        // The testbed reads no counters of SYNs' and requests' timeouts or of duplicates, and no
        // endpoint knows if a segment whose timer expired was under way, or its ACK late or lost.
        ("rto_syn", |_| None),
        ("rto_request", |_| None),
        ("rto_under_way", |_| None),
        ("rto_ack_late", |_| None),
        ("rto_ack_lost", |_| None),
        ("duplicates", |_| None),
        ("quenches", |c| c.by_controller?.believed),
        ("quenches_refused", |c| c.by_controller?.refused),
        ("cwnd_reductions_quench", |c| c.by_controller?.quench),
        ("cwnd_reductions_delay", |c| c.by_controller?.delay),
    ];
    let measures: [(&str, Measure); 3] = [
        ("throughput_bit_s", |c| c.throughput_bit_s),
        ("loss_ratio", |c| share(c.retrans, c.segments_sent)),
        ("ce_ratio", |c| share(c.ce_received, c.segments_received)),
    ];
    for column in &mut table.columns {
        let count = counts.iter().find(|(name, _)| *name == column.name);
        let measure = measures.iter().find(|(name, _)| *name == column.name);
        match (&column.data, count, measure) {
            (ColumnData::U64(own), Some((_, of)), _) => {
                let filled =
                    counted.iter().zip(own).map(|(c, &own)| c.as_ref().map_or(Some(own), of));
                column.data = ColumnData::OptionalU64(filled.collect());
            }
            (ColumnData::F64(own), _, Some((_, of))) => {
                let filled =
                    counted.iter().zip(own).map(|(c, &own)| c.as_ref().map_or(Some(own), of));
                column.data = ColumnData::OptionalF64(filled.collect());
            }
            _ => {}
        }
    }
    table
}

/// Returns a part as a share of the whole.
fn share(part: Option<u64>, whole: Option<u64>) -> Option<f64> {
    match (part?, whole?) {
        (_, 0) => Some(0.0),
        (part, whole) => Some(part as f64 / whole as f64),
    }
}

/// Returns the time series of the flows.
fn series(world: &World, seen: &[SideObservations; 2]) -> Table {
    let mut samples: Vec<_> = seen.iter().flat_map(|side| &side.samples).collect();
    samples.sort_by_key(|sample| (sample.at, sample.flow));
    let uses_rtt: Vec<bool> = world.scenario.flows.iter().map(uses_rtt_of_group).collect();
    let mut rows = FlowSamples::default();
    for sample in samples {
        let info = &sample.info;
        let group = world.flows[sample.flow].group;
        rows.push(FlowSampleRow {
            time_s: sample.at.as_secs_f64(),
            flow_id: sample.flow as u32,
            group: Name(group as u32),
            snd_cwnd_pkts: f64::from(info.snd_cwnd),
            snd_ssthresh_pkts: (info.snd_ssthresh < NO_SSTHRESH)
                .then_some(f64::from(info.snd_ssthresh)),
            bytes_in_flight: u64::from(info.in_flight()) * u64::from(info.snd_mss),
            srtt_us: (info.rtt_us > 0).then_some(f64::from(info.rtt_us)),
            rttvar_us: (info.rtt_us > 0).then_some(f64::from(info.rttvar_us)),
            rto_us: f64::from(info.rto_us),
            delivered: sample.delivered,
            retrans: u64::from(info.total_retrans),
            ca_state: Name(u32::from(info.ca_state).min(STATES.len() as u32 - 1)),
            min_rtt_us: min_rtt_us(info).filter(|_| uses_rtt[group]),
            ..FlowSampleRow::default()
        });
    }
    let mut table = rows.into_table(|column| labels(&world.scenario, column));
    let samples = table.len();
    // The kernel does not report these columns.
    for column in table.columns.iter_mut().filter(|column| column.rare) {
        if matches!(column.data, ColumnData::U64(_)) {
            column.data = ColumnData::OptionalU64(repeat_n(None, samples).collect());
        }
    }
    table
}

/// `true` if its controller is one of `cwnd-kernel` that uses the kernel's minimum RTT.
fn uses_rtt_of_group(group: &FlowGroup) -> bool {
    programs::required(&group.controller).any(|program| program.uses_rtt)
}

/// Returns the kernel's minimum RTT, µs; `None` before the first sample.
fn min_rtt_us(info: &TcpInfo) -> Option<f64> {
    info.min_rtt_us.filter(|&us| us != NO_MIN_RTT).map(f64::from)
}

fn labels(scenario: &Scenario, column: &str) -> Vec<String> {
    match column {
        "group" => scenario.flows.iter().map(|g| g.name.clone()).collect(),
        "controller" => scenario.flows.iter().map(FlowGroup::controller_label).collect(),
        "what" => Delays::KINDS.map(str::to_owned).to_vec(),
        "gave_up" => vec!["no".to_owned()],
        "ca_state" => STATES.map(str::to_owned).to_vec(),
        _ => Vec::new(),
    }
}

fn micros(d: Duration) -> f64 {
    d.0 as f64 / 1000.0
}

/// Facts about a side's network namespace.
#[derive(Clone, Debug, Default)]
pub struct SideFacts {
    /// Relevant sysctls, as read back.
    pub sysctls: Vec<(String, String)>,
    /// TCP counters of the kernel.
    pub counters: Vec<(String, i64)>,
}

/// Results of a finished run.
pub struct Done {
    /// Report of the router.
    pub report: Report,
    /// Observations of both sides' hosts.
    pub seen: [SideObservations; 2],
    /// Facts about both sides' namespaces.
    pub sides: [SideFacts; 2],
    /// Calibration of the router before the run, if there was one.
    pub calibration: Option<Calibration>,
}

/// Returns all facts as one document.
pub fn facts(
    world: &World,
    Done { report, seen, sides, calibration }: &Done,
    bounded: &BoundsReport,
) -> Value {
    let calibration = calibration.as_ref();
    let mut flaws = flaws(seen, report, calibration);
    flaws.extend_from_slice(&bounded.flaws);
    json!({
        "kernel": kernel(),
        "valid": flaws.is_empty(),
        "flaws": flaws,
        "notes": bounded.notes,
        "controllers": world.controllers,
        "timeouts": bounded.facts,
        "sysctls": {
            "left": object(&sides[0].sysctls),
            "right": object(&sides[1].sysctls),
        },
        "tcp_counters": {
            "left": object(&sides[0].counters),
            "right": object(&sides[1].counters),
        },
        "calibration": calibration.map(Calibration::json),
        "router": {
            "scheduling": report.scheduling,
            "idle": report.idle,
            "longest_turn_us": micros(report.longest_turn),
            "directions": report.directions.iter().map(direction).collect::<Vec<_>>(),
        },
        "samples": {
            "lateness_p99_us": quantiles(&seen[0].lateness)["p99"],
            "missed": seen[0].missed + seen[1].missed,
        },
        "datagrams": {
            "lateness_us": seen.each_ref().map(|side| quantiles(&side.datagrams.lateness)),
        },
    })
}

/// Returns the reasons why the run is invalid.
fn flaws(
    seen: &[SideObservations; 2],
    report: &Report,
    calibration: Option<&Calibration>,
) -> Vec<String> {
    let mut flaws = report.flaws.clone();
    for (flow, why) in seen.iter().flat_map(|side| &side.failures) {
        flaws.push(format!("flow {flow}: {why}"));
    }
    for (side, of) in Side::BOTH.iter().zip(seen.iter().map(|side| &side.datagrams)) {
        if let Some(p99) = of.lateness.quantile(0.99).filter(|&p99| p99 > MAX_LATENESS) {
            let ms = micros(p99) / 1000.0;
            flaws.push(format!("{side:?} side: 1 % of the datagrams left {ms:.2} ms late or more"));
        }
        for (flow, sent) in of.sent.iter().filter(|(_, sent)| sent.refused > 0) {
            flaws.push(format!("flow {flow}: {} datagrams were not sent", sent.refused));
        }
        if of.receive_buffer_drops > 0 {
            let lost = of.receive_buffer_drops;
            flaws.push(format!("{side:?} side: receivers' full buffers lost {lost} datagrams"));
        }
    }
    flaws.extend(calibration.into_iter().flat_map(Calibration::flaws));
    flaws
}

fn direction(of: &DirectionReport) -> Value {
    json!({
        "name": of.name,
        "largest_packet_bytes": of.total.largest,
        "malformed": of.total.malformed,
        "undelivered": of.undelivered,
        "lost_before": of.lost_before,
        "lateness_us": quantiles(&of.lateness),
    })
}

fn quantiles(of: &Histogram) -> Value {
    json!({
        "p50": of.quantile(0.5).map(micros),
        "p99": of.quantile(0.99).map(micros),
        "max": of.max().map(micros),
    })
}

fn object<T: Clone + Into<Value>>(pairs: &[(String, T)]) -> Value {
    Value::Object(pairs.iter().map(|(name, value)| (name.clone(), value.clone().into())).collect())
}

/// Returns the release of the running kernel.
fn kernel() -> String {
    sysctl("kernel.osrelease").unwrap_or_default()
}
