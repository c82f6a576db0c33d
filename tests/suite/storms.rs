//! Recovery on ordinary paths: no sender floods a queue with what it loses, and none stands still.
//! Bound on windows: no controller, with two exceptions, has a window of more than three times the
//! capacity of path and buffer. Flows with explicit feedback recover from a window of one segment.
//!
//! The grids run in part in every test run, and whole with `LONG` in the environment.

use std::collections::BTreeMap;

use cwnd_aqm::QueueParams;
use cwnd_cc::{Controller as _, ControllerParams, Start};
use cwnd_packet::{Ability, HasContract as _, Place, Requirement};
use cwnd_schema::{Params as _, ParamsChoice as _};
use cwnd_tables::Records;
use cwnd_tcp::Params as Endpoint;

use crate::common::{BOTTLENECK, activity, at, column, is_long, run};
use crate::generators::{ControllerPreset, controller_presets};

/// `false` for a controller that requires feedback of links, which write none here, or that follows
/// delivery rates: it reduces no window.
fn reduces_its_window(kind: &str) -> bool {
    let params = ControllerParams::of_kind(kind).expect("it is registered");
    let start = Start {
        mss: 1448,
        initial_window: 14_480,
        initial_ssthresh: u64::MAX,
        max_window: u64::MAX,
        delayed_acks: true,
    };
    let links = [Place::SomeLink, Place::EveryLink];
    let needs_links = |requirement: &Requirement| {
        requirement.required && links.contains(&requirement.ability.place())
    };
    !params.contract().requirements.iter().any(needs_links) && !params.build(&start).is_rate_based()
}

/// Returns the queues that mark ECN-capable packets by default; those that hash flows only if
/// `fair`.
fn marking_queues(fair: bool) -> Vec<&'static str> {
    let marks = |kind: &&str| {
        let params = QueueParams::of_kind(kind).expect("it is registered");
        let marks = params.contract().provides.contains(&Ability::Marks);
        marks && (fair || !params.reads_flow_hash())
    };
    QueueParams::KINDS.iter().map(|kind| kind.name).filter(marks).collect()
}

/// Runs a scenario; returns the bottleneck's arrivals and drops per delivered packet.
fn per_delivery(text: &str) -> [f64; 2] {
    let records = run(text);
    let total = |name| at(&records.links, BOTTLENECK, name);
    let delivered = total("delivered_total_pkts").max(1.0);
    ["arrived_total_pkts", "dropped_total_pkts"].map(|name| total(name) / delivered)
}

/// Former causes of floods: a threshold from a FlightSize above the window made PRR send several
/// segments for each delivered one, and H-TCP's increase grew with the timer's backoff.
#[test]
fn no_controller_floods_a_marking_queue() {
    let stacks: Vec<&str> = if is_long() {
        Endpoint::default().presets().iter().map(|preset| preset.name).collect()
    } else {
        vec!["linux", "rfc", "rfc6675", "freebsd"]
    };
    let queues = marking_queues(is_long());
    let loads: &[(u32, u32)] = if is_long() {
        &[(1, 1), (1, 10), (1, 50), (10, 1), (10, 10), (10, 50)]
    } else {
        &[(1, 10)]
    };
    let mut floods = Vec::new();
    for pair in controller_presets().iter().filter(|pair| reduces_its_window(pair.kind())) {
        for stack in &stacks {
            let ecn = if pair.needs_feedback() { "" } else { ", ecn = true" };
            let sender = pair.sender(&format!("preset = \"{stack}\"{ecn}"));
            for queue in &queues {
                for (mbit, flows) in loads {
                    let ran = |sender: &str, seed: u32| {
                        per_delivery(&format!(
                            "schema = 2\n[run]\nduration = \"30 s\"\nseed = {seed}\n\
                             sample = \"none\"\nnoise = \"none\"\n\
                             [dumbbell]\nrate = \"{mbit} Mbit/s\"\nqueue = \"{queue}\"\n\
                             [flow.main]\nrtt = \"10 ms\"\ncount = {flows}\n\
                             start = \"uniform(0 s, 100 ms)\"\n{sender}"
                        ))
                    };
                    let [arrived, _] = ran(&sender, 1);
                    if arrived < 1.5 {
                        continue;
                    }
                    // No flood if nearly as much is lost without ECN: path and queue hold less than
                    // the least windows of all flows, PIE drops ECT packets above a probability of
                    // 0.1, or FAST aims at more packets than RED admits. Ten flows of Linux's CUBIC
                    // over PIE at 1 Mbit/s have 1.57 arrivals a delivery.
                    let without_ecn = match pair.kind() {
                        // DCTCP needs ECN; without it, the default controller runs instead.
                        "dctcp" => format!("endpoint = \"{stack}\""),
                        _ => sender.replace(", ecn = true", ""),
                    };
                    let dropped =
                        |sender: &str| (1..=4).map(|seed| ran(sender, seed)[1]).sum::<f64>() / 4.0;
                    let (found, most) =
                        (dropped(&sender), (1.2 * dropped(&without_ecn)).clamp(0.5, 2.0));
                    if found >= most {
                        let name = pair.name();
                        floods.push(format!(
                            "{name} over {stack}, {queue}, {mbit} Mbit/s, {flows}: {arrived:.2} \
                             arrivals a delivery, {found:.2} drops, at most {most:.2}"
                        ));
                    }
                }
            }
        }
    }
    assert!(floods.is_empty(), "{floods:#?}");
}

/// Keys of the endpoint that concern recovery, each with its values.
const RECOVERY: [(&str, &[&str]); 24] = [
    ("recovery", &["\"sack\"", "\"newreno\""]),
    ("prr", &["true", "false"]),
    ("prr_rule", &["\"rfc6937\"", "\"rfc9937\"", "\"linux\"", "\"freebsd\"", "\"halving\""]),
    ("flight_size", &["\"outstanding\"", "\"pipe\""]),
    ("loss_rule", &["\"rfc6675\"", "\"fack\"", "\"rack\""]),
    ("pipe_rule", &["\"rfc6675\"", "\"sack1\"", "\"ns-3\""]),
    ("lost_retransmissions", &["true", "false"]),
    ("tail_loss_probe", &["true", "false"]),
    ("whole_segments", &["true", "false"]),
    ("rescue_holes", &["true", "false"]),
    ("sack_in_old_acks", &["true", "false"]),
    ("reneging_shortens_rto", &["true", "false"]),
    ("lost_retransmissions_reduce", &["true", "false"]),
    ("recovers_in_loss", &["true", "false"]),
    ("limited_transmit", &["true", "false"]),
    ("grow_by", &["\"acknowledged\"", "\"delivered\""]),
    ("grow_on_exit", &["true", "false"]),
    ("reduced_window_ends_recovery", &["true", "false"]),
    ("loss_reduces_again", &["true", "false"]),
    ("timeout_keeps_threshold", &["true", "false"]),
    ("timeout_frto", &["true", "false"]),
    ("timeout_eifel", &["true", "false"]),
    ("dup_thresh", &["2", "3", "6"]),
    ("dsack", &["true", "false"]),
];

/// Former cause: a recovery that began as the last one ended reduced nothing, as its FlightSize
/// counted all data SACKed meanwhile, and lost retransmissions were sent again without end.
#[test]
fn lost_retransmissions_do_not_go_again_without_end() {
    let values = || RECOVERY.iter().flat_map(|(key, values)| values.iter().map(move |v| (key, v)));
    let mut settings = Vec::new();
    for (key, value) in values() {
        if !is_long() {
            settings.push(format!(", {key} = {value}"));
            continue;
        }
        let later = values().filter(|(other, _)| *other > key);
        settings.extend(later.map(|(other, v)| format!(", {key} = {value}, {other} = {v}")));
    }
    let betas: &[&str] = if is_long() { &["0.5", "0.7", "0.8"] } else { &["0.7"] };
    for stack in ["rfc6675", "linux", "freebsd"] {
        for (keys, beta) in settings.iter().flat_map(|k| betas.iter().map(move |beta| (k, beta))) {
            let [ratio, _] = per_delivery(&format!(
                "[run]\nduration = \"60 s\"\nsample = \"none\"\n\
                 [dumbbell]\nrate = \"10 Mbit/s\"\nqueue = {{ kind = \"fifo\", limit = \"1 BDP\" \
                 }}\n\
                 [flow.main]\nrtt = \"50 ms\"\ncontroller = {{ kind = \"cubic\", beta = {beta} }}\n\
                 endpoint = {{ preset = \"{stack}\"{keys} }}\n"
            ));
            let cell = format!("{stack}{keys}, beta {beta}");
            assert!(ratio < 1.1, "{cell}: {ratio:.2} arrivals a delivery");
        }
    }
}

/// Returns the timeouts of one flow over a queue that overflows as slow start ends: 10 Mbit/s, by
/// six round trips and seven buffers.
fn timeouts(controller: &str, stack: &str) -> Vec<(String, u64)> {
    let mut found = Vec::new();
    for rtt in [1, 5, 10, 20, 50, 100] {
        for limit in [
            "5 packets",
            "10 packets",
            "15 packets",
            "20 packets",
            "30 packets",
            "50 packets",
            "1 BDP",
        ] {
            let records = run(&format!(
                "schema = 2\n[run]\nduration = \"20 s\"\nsample = \"none\"\nnoise = \"none\"\n\
                 [dumbbell]\nrate = \"10 Mbit/s\"\nqueue = {{ kind = \"fifo\", limit = \"{limit}\" \
                 }}\n\
                 [flow.main]\nrtt = \"{rtt} ms\"\n\
                 controller = {{ kind = \"{controller}\", preset = \"rfc\" }}\n\
                 stack = {stack}\n"
            ));
            found.push((format!("{rtt} ms, {limit}"), activity(&records, "timeouts")));
        }
    }
    found
}

/// Slow start overshoots by the whole pipe, and 0.7 of the window is then more than the pipe: some
/// retransmissions are lost again. A sender of RFC 6675 cannot see that, as NextSeg never returns
/// data below HighRxt (section 4, rule 1a), and waits for the timer (RFC 6298). If SACK reveals
/// lost retransmissions, and nothing else changes, no cell but the smallest has a timeout.
#[test]
fn only_lost_retransmissions_stop_a_sender_of_rfc_6675() {
    for controller in ["cubic", "newreno"] {
        let stack = r#"{ base = "rfc6675", with = ["lost-retransmissions"] }"#;
        for (cell, timeouts) in timeouts(controller, stack) {
            // Path and queue hold two packets there: too few for three duplicate ACKs.
            assert!(timeouts == 0 || cell == "1 ms, 1 BDP", "{controller}, {cell}: {timeouts}");
        }
    }
    let stalled = timeouts("cubic", "\"rfc6675\"");
    assert!(stalled.iter().filter(|(_, timeouts)| *timeouts > 0).count() > 20, "{stalled:?}");
}

/// RACK and the tail loss probe find lost retransmissions (RFC 8985 § 3.4).
#[test]
fn no_sender_with_rack_stands_still_as_slow_start_overshoots() {
    for (stack, controller) in [("linux", "cubic"), ("rfc", "cubic"), ("rfc", "newreno")] {
        for (cell, timeouts) in timeouts(controller, &format!("\"{stack}\"")) {
            assert_eq!(timeouts, 0, "{controller} over {stack}, {cell}");
        }
    }
}

/// Every packet is marked. RFC 3168 § 6.1.2 halves down to one segment and waits for the timer
/// then (`ecn_at_one`); RFC 8511 § 3 and RFC 9438 § 4.6 agree. Linux keeps two segments, and
/// never waits.
#[test]
fn windows_come_down_to_one_segment_where_the_rfcs_let_them() {
    let sent = |controller: &str, at_one: &str| {
        let records = run(&format!(
            "[run]\nduration = \"60 s\"\nwarmup = \"20 s\"\nsample = \"none\"\n\
             [dumbbell]\nrate = \"1 Mbit/s\"\nqueue = {{ kind = \"red\", min_th = \"1 packets\",\
             max_th = \"2 packets\", w_q = 1.0, max_p = 1.0, gentle = false, forced = \"mark\",\
             limit = \"1000 packets\" }}\n\
             [flow.main]\nrtt = \"10 ms\"\ncount = 10\ncontroller = {controller}\n\
             endpoint = {{ ecn = true, ack_every = 1, handshake = false, ecn_at_one = \"{at_one}\" \
             }}\n"
        ));
        at(&records.links, BOTTLENECK, "delivered_pkts")
    };
    for kind in ["newreno", "cubic"] {
        for preset in ["rfc", "abe"] {
            let controller = format!("{{ kind = \"{kind}\", preset = \"{preset}\" }}");
            let [sends, waits, backs_off] =
                ["sends", "waits", "backs-off"].map(|at_one| sent(&controller, at_one));
            // Flows that back off leave the link to the others.
            let acts = waits < 0.95 * sends && backs_off > waits;
            assert!(acts, "{controller}: {sends} {waits} {backs_off}");
        }
        let controller = format!("{{ kind = \"{kind}\", preset = \"linux\" }}");
        let [sends, waits] = ["sends", "waits"].map(|at_one| sent(&controller, at_one));
        assert!((waits - sends).abs() < 1.0, "{controller}: {sends} {waits}");
    }
}

/// Bound on the window, as a multiple of the segments that path and buffer hold.
const MOST: f64 = 3.0;

/// Controllers with larger windows, each with the reason.
const EXCEPTIONS: [(&str, &str); 2] = [
    (
        "copa mvfst",
        "δ = 0.05 aims at 20 packets in the queue: a shorter buffer never shows that delay, and \
        losses take nothing off",
    ),
    ("rcp ns2", "it has no window: the rate that routers offer is all that holds it back"),
];

/// A path that holds `holds` segments, including its buffer.
struct Path {
    rate: &'static str,
    rtt: &'static str,
    buffer: &'static str,
    holds: f64,
}

const LARGE: Path = Path { rate: "50 Mbit/s", rtt: "40 ms", buffer: "1 BDP", holds: 333.0 };
const MEDIUM: Path = Path { rate: "10 Mbit/s", rtt: "100 ms", buffer: "1 BDP", holds: 166.0 };
const SHALLOW: Path = Path { rate: "2 Mbit/s", rtt: "160 ms", buffer: "0.25 BDP", holds: 33.0 };
const DEEP: Path = Path { rate: "2 Mbit/s", rtt: "40 ms", buffer: "4 BDP", holds: 33.0 };

/// Returns the largest window of a flow, alone or beside one of CUBIC, relative to the capacity of
/// the path.
fn largest(
    path: &Path,
    pair: &ControllerPreset,
    stack: &str,
    beside: bool,
    [seed, seconds]: [u32; 2],
) -> f64 {
    let Path { rate, rtt, buffer, holds } = path;
    let flow = format!("rtt = \"{rtt}\"\nstart = \"uniform(0 s, 1 s)\"\nstack = \"rfc6675\"\n");
    let cubic = if beside {
        format!("[flow.cubic]\n{flow}controller = \"cubic\"\n")
    } else {
        String::new()
    };
    let records = run(&format!(
        "schema = 2\n[run]\nduration = \"{seconds} s\"\nsample = \"10 ms\"\nseed = {seed}\n\
         noise = \"none\"\n\
         [dumbbell]\nrate = \"{rate}\"\nqueue = {{ kind = \"fifo\", limit = \"{buffer}\" }}\n{}\
         [flow.rival]\n{flow}{}{cubic}",
        pair.beside(),
        pair.sender(&format!("preset = \"{stack}\"")),
    ));
    largest_of_the_first(&records) / holds
}

fn largest_of_the_first(records: &Records) -> f64 {
    let flows = column(&records.flow_series, "flow_id");
    let windows = column(&records.flow_series, "snd_cwnd_pkts");
    let of_first = flows.iter().zip(windows).filter(|(flow, _)| **flow == 0.0);
    of_first.map(|(_, window)| window).fold(0.0, f64::max)
}

/// With seeds 1, 3 and 6 on [`LARGE`], a former Copa had a window of 10 to 34 times the capacity.
#[test]
fn no_controller_outgrows_path_and_buffer() {
    let long = is_long();
    let (paths, seconds) =
        if long { (vec![LARGE, MEDIUM, SHALLOW, DEEP], 60) } else { (vec![MEDIUM, SHALLOW], 15) };
    let mut worst = BTreeMap::new();
    let mut record = |pair: &ControllerPreset, window: f64| {
        let max = worst.entry(pair.name()).or_insert(0.0_f64);
        *max = max.max(window);
    };
    for pair in controller_presets() {
        let is_copa = pair.name().starts_with("copa");
        let seeds = match (long, is_copa) {
            (false, _) => 1,
            (true, false) => 3,
            (true, true) => 30,
        };
        for stack in ["rfc6675", "rfc", "linux"] {
            for beside in [false, true] {
                for path in &paths {
                    for seed in 1..=seeds {
                        record(&pair, largest(path, &pair, stack, beside, [seed, seconds]));
                    }
                }
            }
        }
        if is_copa && !long {
            for seed in [1, 3, 6] {
                record(&pair, largest(&LARGE, &pair, "rfc6675", true, [seed, 25]));
            }
        }
    }
    for (name, window) in worst {
        let excused = EXCEPTIONS.iter().any(|(exception, _)| *exception == name);
        assert_eq!(window > MOST, excused, "{name}: {window:.1} times what the path holds");
    }
}

/// Limit on the round trips that a flow stays at one segment while its link is loaded less than
/// half.
const ROUND_TRIPS: f64 = 20.0;

/// A link of the BMCC paper (Qazi, Andrew, Znati 2009, Fig. 10 to 12).
#[derive(Clone, Copy)]
struct Link {
    kbit: u32,
    rtt_ms: u32,
    flows: u32,
    buffer: &'static str,
}

/// Paths on which flows once stalled for 200 to 450 round trips.
const SOME: [Link; 2] = [
    Link { kbit: 20_000, rtt_ms: 500, flows: 5, buffer: "20 packets" },
    Link { kbit: 2_000, rtt_ms: 1_000, flows: 5, buffer: "1 BDP" },
];

fn all() -> Vec<Link> {
    let rates = [100, 1_000, 10_000, 45_000, 155_000].map(|kbit| (kbit, 80, 5));
    let rtts = [1, 5, 20, 80, 200, 500, 1_000, 2_000].map(|rtt_ms| (20_000, rtt_ms, 5));
    let flows = [1, 5, 20, 100].map(|flows| (45_000, 80, flows));
    let links = rates.into_iter().chain(rtts).chain(flows);
    let buffers = ["20 packets", "0.25 BDP", "1 BDP"];
    let with = |(kbit, rtt_ms, flows)| buffers.map(|buffer| Link { kbit, rtt_ms, flows, buffer });
    links.flat_map(with).collect()
}

/// Returns the longest time, in round trips, that a flow has a window below two segments while the
/// link is loaded less than half, and the flow.
fn longest(pair: &ControllerPreset, link: Link, seconds: u32) -> (f64, f64) {
    let Link { kbit, rtt_ms, flows, buffer } = link;
    let sample_ms = (rtt_ms / 2).clamp(5, 200);
    let endpoint = "mss = \"960 B\", header = \"40 B\", ack_size = \"40 B\", ack_every = 1, \
                    initial_window = 2, clock = \"1 us\", rto_min = \"200 ms\"";
    let records = run(&format!(
        "[run]\nduration = \"{seconds} s\"\nsample = \"{sample_ms} ms\"\n\
         [dumbbell]\nrate = \"{kbit} kbit/s\"\nbdp_rtt = \"{rtt_ms} ms\"\n\
         queue = {{ kind = \"fifo\", limit = \"{buffer}\" }}\n\
         reverse_queue = {{ kind = \"fifo\", limit = \"{buffer}\" }}\n{}\
         [flow.main]\nrtt = \"{rtt_ms} ms\"\ncount = {flows}\nstart = \"uniform(0 s, 1 s)\"\n{}",
        pair.beside(),
        pair.sender(endpoint),
    ));
    let idle = idle_samples(&records, f64::from(kbit) * 1e3);
    let (mut longest, mut of) = (0.0_f64, 0.0);
    let ids = column(&records.flow_series, "flow_id");
    let windows = column(&records.flow_series, "snd_cwnd_pkts");
    let times = column(&records.flow_series, "time_s");
    let mut since = vec![None; flows as usize];
    for ((id, window), time) in ids.into_iter().zip(windows).zip(times) {
        let sample = (time * 1e3 / f64::from(sample_ms)).round() as usize;
        let since = &mut since[id as usize];
        if window >= 2.0 || !idle[sample.min(idle.len() - 1)] {
            *since = None;
            continue;
        }
        let rounds = (time - *since.get_or_insert(time)) * 1e3 / f64::from(rtt_ms);
        if rounds > longest {
            (longest, of) = (rounds, id);
        }
    }
    (longest, of)
}

/// Returns `true` for each sample interval in which packets of 1000 B arrived at less than half of
/// the rate in bit/s, `false` for the others and for the first sample.
fn idle_samples(records: &Records, rate: f64) -> Vec<bool> {
    let links = column(&records.link_series, "link_id");
    let here: Vec<_> = (0..links.len()).filter(|&i| links[i] == BOTTLENECK as f64).collect();
    let came = column(&records.link_series, "enq");
    let times = column(&records.link_series, "time_s");
    let load = |pair: &[usize]| {
        let bits = (came[pair[1]] - came[pair[0]]) * 8e3;
        bits / rate / (times[pair[1]] - times[pair[0]])
    };
    let first = [false];
    first.into_iter().chain(here.windows(2).map(|pair| load(pair) < 0.5)).collect()
}

#[test]
fn no_guided_flow_stays_at_one_segment_on_an_idle_link() {
    let links = if is_long() { all() } else { SOME.to_vec() };
    for pair in controller_presets().iter().filter(|pair| pair.needs_feedback()) {
        for &link in &links {
            let seconds = (link.rtt_ms / 10).clamp(30, 120);
            let (rounds, flow) = longest(pair, link, seconds);
            let Link { kbit, rtt_ms, flows, buffer } = link;
            assert!(
                rounds <= ROUND_TRIPS,
                "{}: flow {flow} for {rounds:.0} round trips; {kbit} kbit/s, {rtt_ms} ms, {flows} \
                flows, {buffer}",
                pair.name()
            );
        }
    }
}
