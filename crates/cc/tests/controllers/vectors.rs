//! The vectors of `vectors/`, computed by the reference in `tests/reference`, event by event.

use cwnd_cc::{
    AckSample, Cause, Controller, ControllerParams, Departing, Grow, Path, Phase, RateSample,
    Request, Signal, Start, Window,
};
use cwnd_packet::{Echo, Header};
use cwnd_quantity::{Duration, Rate, Time};
use cwnd_schema::{ParamsChoice, Value};
use serde_json::Value as Json;

/// How far a window may be from a real number of the vector, bytes; the files say so too.
const NEAR: f64 = 1e-6;

/// Replays all cases of a file; `kind` is the controller, where a case does not name its own.
fn replay(text: &str, kind: &str) {
    let file: Json = serde_json::from_str(text).unwrap();
    let near = file["tolerance"]["cwnd"].as_f64().unwrap();
    assert!(near == 0.0 || near == NEAR);
    for case in file["cases"].as_array().unwrap() {
        let kind = case["controller"].as_str().unwrap_or(kind);
        run(case, kind, near, file["tolerance"]["spacing_ns"].as_u64().unwrap_or(0));
    }
}

fn run(case: &Json, kind: &str, near: f64, spacing: u64) {
    let mut controller = params(kind, case).build(&start(&case["start"]));
    let mut delivered = 0;
    for (number, event) in case["events"].as_array().unwrap().iter().enumerate() {
        delivered += event["acked"].as_u64().unwrap_or(0);
        let path = path(case, event, delivered);
        match signal(event) {
            Some(signal) => {
                controller.on_signal(&path, signal);
                // What follows an idle time ends it.
                if let Signal::Idle { idle, .. } = signal {
                    let since = Time(path.now.0.saturating_sub(idle.0));
                    controller.on_signal(&path, Signal::Resume { since });
                }
            }
            None if event["event"] == "sent" => {
                assert_eq!(controller.stamp(&departing(&path)), Header::None);
            }
            None => {
                if let Some(sample) = rate(&event["rate"]) {
                    controller.on_rate(&sample);
                }
                let asked = controller.on_ack(&path, &ack(&path, event));
                let asks = event["asks"].as_bool().unwrap_or(false);
                // What a kind asks for it names itself; the signal that may follow is of the same name.
                let cause = match kind {
                    "delay-aimd" if event["echo"].is_null() => Cause::Delay,
                    "dctcp" => Cause::Ecn,
                    _ => Cause::Load,
                };
                let expected = if asks { Request::Reduce(cause) } else { Request::Nothing };
                assert_eq!(asked, expected, "{}, event {number}: {event}", case["name"]);
            }
        }
        let at = || format!("{}, event {number}: {event}", case["name"]);
        if let Some(pace) = event["pace_bit_per_s"].as_u64() {
            let ours = controller.pacing().unwrap_or_default().0;
            assert!(ours.abs_diff(pace) <= 1, "{ours} bit/s, {}", at());
        }
        let Window { cwnd, ssthresh } = controller.window();
        let expected = event["cwnd"].as_f64().unwrap();
        let bounds = (expected - near).floor()..=(expected + near).floor();
        assert!(bounds.contains(&(cwnd as f64)), "cwnd {cwnd}, {}", at());
        // Below one segment the window shows one, and how far apart segments go tells it.
        let apart = controller.spacing().unwrap_or_default().0;
        let expected = event["spacing_ns"].as_u64().unwrap_or(0);
        assert!(apart.abs_diff(expected) <= spacing, "{apart} ns, {}", at());
        assert_eq!(ssthresh, event["ssthresh"].as_u64().unwrap_or(u64::MAX), "{}", at());
    }
}

/// The case's parameters; those of a preset must be what the case says they are.
fn params(kind: &str, case: &Json) -> ControllerParams {
    let mut params = ControllerParams::of_kind(kind).expect("a kind");
    if let Some(preset) = case["preset"].as_str() {
        assert!(params.params_mut().apply_preset(preset), "{preset}");
    }
    for (name, value) in case["parameters"].as_object().unwrap() {
        let value = match value {
            Json::Null => Value::Text("none".to_owned()),
            Json::Bool(b) => Value::Bool(*b),
            Json::String(s) => Value::Text(s.clone()),
            Json::Number(n) if n.is_i64() => Value::Integer(n.as_i64().unwrap()),
            other => Value::Float(other.as_f64().unwrap()),
        };
        let (name, value) = timed(name, value);
        if case["preset"].is_null() {
            params.params_mut().set(name, &value).unwrap();
        } else {
            let ours = params.params().get(name).expect("a parameter");
            assert!(
                same(&ours, &value),
                "{kind} {}: {name} = {ours:?}, not {value:?}",
                case["preset"]
            );
        }
    }
    params.params().check().unwrap();
    params
}

/// A time as a scenario writes it: whole milliseconds.
fn timed(name: &str, value: Value) -> (&str, Value) {
    match (name.strip_suffix("_ns"), value) {
        (Some(name), Value::Integer(ns)) => (name, Value::Text(format!("{} ms", ns as f64 / 1e6))),
        (stripped, value) => (stripped.unwrap_or(name), value),
    }
}

fn same(ours: &Value, theirs: &Value) -> bool {
    match (ours, theirs) {
        (Value::Float(a), Value::Float(b)) => (a - b).abs() < 1e-15,
        (a, b) => a == b,
    }
}

fn start(start: &Json) -> Start {
    Start {
        mss: u32::try_from(start["mss"].as_u64().unwrap()).unwrap(),
        initial_window: start["initial_window"].as_u64().unwrap(),
        initial_ssthresh: start["initial_ssthresh"].as_u64().unwrap_or(u64::MAX),
        max_window: u64::MAX,
        delayed_acks: false,
    }
}

/// What the transport knows; facts that an event leaves out are those of `vectors/README.md`.
fn departing(path: &Path) -> Departing<'_> {
    let &Path { now, mss, delivered, sent, .. } = path;
    Departing { now, mss, delivered, sent, rtts: path }
}

fn path(case: &Json, event: &Json, delivered: u64) -> Path {
    let srtt = Duration(event["srtt_ns"].as_u64().unwrap_or(100_000_000));
    Path {
        now: Time(event["now_ns"].as_u64().unwrap()),
        mss: u32::try_from(case["start"]["mss"].as_u64().unwrap()).unwrap(),
        srtt: Some(srtt),
        rtt: event["rtt_ns"].as_u64().map(Duration),
        min_rtt: Some(event["min_rtt_ns"].as_u64().map_or(srtt, Duration)),
        flight_size: event["flight"].as_u64().unwrap(),
        delivered,
        // Before this event all that is in flight had been sent, and nothing was since.
        sent: delivered - event["acked"].as_u64().unwrap_or(0) + event["flight"].as_u64().unwrap(),
        phase: match event["phase"].as_str() {
            None => Phase::Open,
            Some("cwr") => Phase::Cwr,
            Some("recovery") => Phase::Recovery,
            Some("loss") => Phase::Loss,
            Some(other) => panic!("{other}"),
        },
        cwnd_limited: event["limited"].as_bool().unwrap_or(true),
        round: event["round"].as_u64().unwrap_or(0),
    }
}

fn signal(event: &Json) -> Option<Signal> {
    Some(match event["event"].as_str().unwrap() {
        "ack" | "sent" => return None,
        "loss" => Signal::Reduce(Cause::Loss),
        "delay" => Signal::Reduce(Cause::Delay),
        "load" => Signal::Reduce(Cause::Load),
        "ecn" => Signal::Reduce(Cause::Ecn),
        "quench" => Signal::Reduce(Cause::Quench {
            marked: event["marked"].as_bool().unwrap_or(true),
            level: u8::try_from(event["level"].as_u64().unwrap_or(0)).unwrap(),
        }),
        "timeout" => {
            let nth = u32::try_from(event["nth"].as_u64().unwrap_or(1)).unwrap();
            Signal::Timeout { nth, reduces: nth == 1 }
        }
        "idle" => Signal::Idle { idle: Duration::from_secs(3), keep: None },
        other => panic!("{other}"),
    })
}

fn ack(path: &Path, event: &Json) -> AckSample {
    let ece = event["ece"].as_bool().unwrap_or(false);
    let echo = if let Some(value) = event["echo"].as_u64() {
        Echo::Load { value: u16::try_from(value).unwrap(), bits: 16, changes: 0 }
    } else if let Some(bytes) = event["feedback"].as_i64() {
        Echo::Delta(i32::try_from(bytes).unwrap())
    } else if let Some(bits) = event["offered_bit_s"].as_u64() {
        Echo::Rate(Rate(bits).into())
    } else {
        Echo::None
    };
    AckSample {
        echo,
        acked_bytes: event["acked"].as_u64().unwrap_or(0),
        newly_lost: event["lost"].as_u64().unwrap_or(0),
        rtt: event["rtt_ns"].as_u64().map(Duration),
        ece,
        grow: Grow::of(path, ece),
        ..AckSample::default()
    }
}

fn rate(sample: &Json) -> Option<RateSample> {
    let number = |key: &str| sample[key].as_u64();
    Some(RateSample {
        newly: number("newly")?,
        total: number("total").unwrap(),
        prior: number("prior"),
        interval: number("interval_ns").map(Duration),
        rtt: number("rtt_ns").map(Duration),
        in_flight: number("in_flight").unwrap(),
        app_limited: sample["app_limited"].as_bool().unwrap_or(false),
    })
}

#[test]
fn newreno_is_that_of_rfc_5681_and_each_reading_of_abe_what_it_says() {
    replay(include_str!("../../../../vectors/newreno.json"), "newreno");
}

#[test]
fn cubic_is_that_of_rfc_9438_and_each_reading_of_abe_what_it_says() {
    replay(include_str!("../../../../vectors/cubic.json"), "cubic");
}

#[test]
fn a_source_quench_does_what_becn_says_and_each_level_its_own() {
    replay(include_str!("../../../../vectors/becn.json"), "");
}

#[test]
fn delay_backs_off_as_mccullagh_says_and_adaptive_backoff_by_the_round_trip() {
    replay(include_str!("../../../../vectors/delay.json"), "");
}

#[test]
fn vegas_keeps_what_each_reading_says_in_queues() {
    replay(include_str!("../../../../vectors/vegas.json"), "vegas");
}

#[test]
fn ledbat_answers_the_delay_and_slows_down_as_its_draft_says() {
    replay(include_str!("../../../../vectors/ledbat.json"), "ledbat");
}

#[test]
fn copa_moves_towards_its_target_rate_and_competes_as_its_paper_says() {
    replay(include_str!("../../../../vectors/copa.json"), "copa");
}

#[test]
fn bbr_finds_out_the_path_as_its_draft_says() {
    replay(include_str!("../../../../vectors/bbr.json"), "bbr");
}

#[test]
fn fast_goes_half_of_the_way_every_other_round_trip() {
    replay(include_str!("../../../../vectors/fast.json"), "fast");
}

#[test]
fn vcp_multiplies_adds_and_backs_off_as_routers_tell() {
    replay(include_str!("../../../../vectors/vcp.json"), "vcp");
}

#[test]
fn dctcp_backs_off_by_the_part_of_data_that_was_marked() {
    replay(include_str!("../../../../vectors/dctcp.json"), "dctcp");
}

#[test]
fn xcp_changes_its_window_by_what_routers_wrote() {
    replay(include_str!("../../../../vectors/xcp-sender.json"), "xcp");
}

#[test]
fn rcp_paces_at_the_rate_that_routers_offered_last() {
    replay(include_str!("../../../../vectors/rcp-sender.json"), "rcp");
}

#[test]
fn mlcp_does_what_each_level_says() {
    replay(include_str!("../../../../vectors/mlcp.json"), "mlcp");
}

#[test]
fn bmcc_does_what_equations_2_to_6_say_of_its_estimate() {
    replay(include_str!("../../../../vectors/bmcc.json"), "bmcc");
}

#[test]
fn htcp_grows_by_the_time_since_a_backoff_and_backs_off_by_the_queue() {
    replay(include_str!("../../../../vectors/htcp.json"), "htcp");
}

#[test]
fn hystart_is_that_of_rfc_9406_and_classic_hystart_linuxs() {
    replay(include_str!("../../../../vectors/hystart.json"), "");
}
