//! The vectors of `vectors/`, computed by the reference in `tests/reference`, event by event.

use cwnd_cc::{
    AckSample, Cause, Controller, ControllerParams, GrowthPermission, OutgoingData, Path, Phase,
    RateSample, Request, Signal, Start, Window,
};
use cwnd_packet::{CongestionHeader, Echo};
use cwnd_quantity::{Duration, Rate, Time};
use cwnd_schema::{ParamsChoice, Value};
use serde_json::Value as Json;

#[path = "../../../../tests/vector_files.rs"]
mod vector_files;

/// Tolerance of a window for a real number of the vector, bytes; the files state it, too.
const NEAR: f64 = 1e-6;

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
                assert_eq!(controller.stamp(&outgoing(&path)), CongestionHeader::None);
            }
            None => {
                if let Some(sample) = rate(&event["rate"]) {
                    controller.on_rate(&sample);
                }
                let asked = controller.on_ack(&path, &ack(&path, event));
                let expected = cause(event["asks"].as_str());
                let expected = expected.map_or(Request::Nothing, Request::Reduce);
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

/// A time as a scenario writes it, in milliseconds.
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

fn outgoing(path: &Path) -> OutgoingData<'_> {
    let &Path { now, mss, delivered, sent, .. } = path;
    OutgoingData { now, mss, delivered, sent, rtts: path }
}

/// Facts that the transport knows; those that an event leaves out are the defaults of
/// `vectors/README.md`.
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

/// Cause of a reduction that controllers ask for.
fn cause(event: Option<&str>) -> Option<Cause> {
    Some(match event? {
        "delay" => Cause::Delay,
        "load" => Cause::Load,
        "ecn" => Cause::Ecn,
        other => panic!("{other}"),
    })
}

fn signal(event: &Json) -> Option<Signal> {
    Some(match event["event"].as_str().unwrap() {
        "ack" | "sent" => return None,
        "loss" => Signal::Reduce(Cause::Loss),
        asked @ ("delay" | "load" | "ecn") => Signal::Reduce(cause(Some(asked))?),
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
        grow: GrowthPermission::for_ack(path, ece),
        ..AckSample::default()
    }
}

fn rate(sample: &Json) -> Option<RateSample> {
    let number = |key: &str| sample[key].as_u64();
    Some(RateSample {
        newly_delivered: number("newly")?,
        total_delivered: number("total").unwrap(),
        prior_delivered: number("prior"),
        interval: number("interval_ns").map(Duration),
        rtt: number("rtt_ns").map(Duration),
        in_flight: number("in_flight").unwrap(),
        app_limited: sample["app_limited"].as_bool().unwrap_or(false),
    })
}

#[test]
fn every_controller_does_what_its_vectors_say() {
    let mut without: Vec<_> = ControllerParams::KINDS.iter().map(|kind| kind.name).collect();
    for file in vector_files::of_kind("controller") {
        let near = file["tolerance"]["cwnd"].as_f64().unwrap();
        assert!(near == 0.0 || near == NEAR);
        let spacing = file["tolerance"]["spacing_ns"].as_u64().unwrap_or(0);
        let algorithm = file["algorithm"].as_str().unwrap().trim_end_matches("-sender");
        for case in file["cases"].as_array().unwrap() {
            let kind = case["controller"].as_str().unwrap_or(algorithm);
            run(case, kind, near, spacing);
            without.retain(|other| *other != kind);
        }
    }
    assert!(
        without.is_empty(),
        "{without:?}: a new controller needs vectors/KIND.json: write its reference in \
         tests/reference, name its cases in FILES of generate.py, run make vectors ARGS=KIND \
         (CONTRIBUTING.md, step 2)"
    );
}
