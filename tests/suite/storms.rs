//! Recovery on ordinary paths: no sender floods a queue with what it loses, and none stands still.
//!
//! The grids run in part in every test run, and whole with `LONG` in the environment.

use cwnd_aqm::QueueParams;
use cwnd_cc::{Controller as _, ControllerParams, Start};
use cwnd_packet::{Ability, HasContract as _, Place, Requirement};
use cwnd_schema::{Params as _, ParamsChoice as _};
use cwnd_tcp::Params as Endpoint;

use crate::common::{BOTTLENECK, activity, at, is_long, run};
use crate::feedback_schemes::controller_presets;

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
