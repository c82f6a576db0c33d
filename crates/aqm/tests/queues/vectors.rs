//! The vectors of `vectors/`, computed by the reference in `tests/reference`, event by event.

use cwnd_aqm::red::Red;
use cwnd_aqm::{AnyQdisc, Qdisc, QueueParams, Reason};
use cwnd_packet::Ecn;
use cwnd_quantity::{Duration, LinkFacts, Rate, Rng, Time};
use cwnd_schema::{ParamsChoice, Value};
use serde_json::Value as Json;

use crate::common::{Log, Pkt};

/// How far a number may be from the vector's, relatively; the files say so too.
const STATE: f64 = 1e-9;
/// Seed of the streams whose numbers the vectors list; each stream is named after its case.
const SEED: u64 = 1;

/// A packet's number, what happened to it, and why.
type Hit = (u64, &'static str, &'static str);

/// Replays all cases of a file.
fn replay(text: &str, kind: &str) {
    let file: Json = serde_json::from_str(text).unwrap();
    assert_eq!(file["tolerance"]["state"], STATE);
    for case in file["cases"].as_array().unwrap() {
        Replay::new(case, kind).run(case);
    }
}

/// A parameter as a scenario would write it.
fn setting(name: &str, value: &Json, parameters: &Json) -> (String, Value) {
    let unit = match name {
        "limit_packets" => "packets",
        "min_th" | "max_th" if parameters["mode"] == "packets" => "packets",
        "min_th" | "max_th" | "mean_packet" | "mtu" | "quantum" => "B",
        _ if name.ends_with("_ns") => "ns",
        _ => "",
    };
    let key = name.trim_end_matches("_ns").trim_end_matches("_packets").to_owned();
    let value = match value {
        Json::Null => Value::Text("none".to_owned()),
        Json::Bool(b) => Value::Bool(*b),
        Json::String(s) => Value::Text(s.clone()),
        Json::Number(n) if !unit.is_empty() => Value::Text(format!("{n} {unit}")),
        Json::Number(n) if n.is_i64() => Value::Integer(n.as_i64().unwrap()),
        Json::Number(n) => Value::Float(n.as_f64().unwrap()),
        other => panic!("{name} = {other}"),
    };
    (key, value)
}

fn params(kind: &str, case: &Json) -> QueueParams {
    let mut params = QueueParams::of_kind(kind).expect("a kind");
    if let Some(preset) = case["preset"].as_str() {
        assert!(params.params_mut().apply_preset(preset));
    }
    for (name, value) in case["parameters"].as_object().unwrap() {
        let (key, value) = setting(name, value, &case["parameters"]);
        params.params_mut().set(&key, &value).unwrap();
    }
    params.params().check().unwrap();
    params
}

/// A queue, and where in its vector it is.
struct Replay {
    queue: AnyQdisc<Pkt>,
    log: Log,
    name: String,
}

impl Replay {
    fn new(case: &Json, kind: &str) -> Self {
        let name = case["name"].as_str().unwrap().to_owned();
        let stream = || Rng::named(SEED, &name);
        let mut listed = stream();
        for uniform in case["uniforms"].as_array().into_iter().flatten() {
            assert_eq!(Some(listed.bits() >> 11), uniform.as_u64(), "{name}: the vector's numbers");
        }
        let rate = Rate(case["rate_bit_per_s"].as_u64().unwrap());
        let link = LinkFacts { rate, bdp_rtt: Duration::ZERO };
        let queue = params(kind, case).build(&link, stream());
        Self { queue, log: Log::default(), name }
    }

    fn run(mut self, case: &Json) {
        for (number, row) in case["events"].as_array().unwrap().iter().enumerate() {
            let at = format!("{}, event {number}: {row}", self.name);
            let now = Time(row[1].as_u64().unwrap());
            match row[0].as_str().unwrap() {
                "enqueue" => {
                    self.queue.enqueue(now, packet(row), &mut self.log);
                    assert_eq!(self.hits(), hits(&row[6]), "{at}");
                    if let AnyQdisc::Red(red) = &self.queue {
                        near(Red::average(red), &row[7], &at);
                    }
                }
                "dequeue" => {
                    let sent = self.queue.dequeue(now, &mut self.log).map(|(p, _)| p.id);
                    assert_eq!(sent, row[2].as_u64(), "{at}");
                    assert_eq!(self.hits(), hits(&row[3]), "{at}");
                }
                "update" => {
                    assert_eq!(self.queue.next_timer(), Some(now), "{at}");
                    self.queue.on_timer(now);
                    near(self.queue.probability().unwrap(), &row[2], &at);
                }
                other => panic!("{other}"),
            }
        }
    }

    /// What happened since the last call: drops and marks in order, which within one call is drops first, as a mark
    /// ends the call.
    fn hits(&mut self) -> Vec<Hit> {
        let drops = self.log.drops.drain(..).map(|(_, p, r)| (p.id, "drop", Reason::name(r)));
        let marks = self.log.marks.drain(..).map(|(_, p, r)| (p.id, "mark", Reason::name(r)));
        drops.chain(marks).collect()
    }
}

fn packet(row: &Json) -> Pkt {
    let number = |i: usize| row[i].as_u64().unwrap();
    let ecn = match number(4) {
        0 => Ecn::NotEct,
        1 => Ecn::Ect1,
        2 => Ecn::Ect0,
        _ => Ecn::Ce,
    };
    Pkt { id: number(2), size: u32::try_from(number(3)).unwrap(), ecn, flow: number(5) }
}

fn hits(told: &Json) -> Vec<(u64, &str, &str)> {
    let word = |text| Json::as_str(text).unwrap();
    let told = told.as_array().unwrap();
    told.iter().map(|h| (h[0].as_u64().unwrap(), word(&h[1]), word(&h[2]))).collect()
}

fn near(ours: f64, theirs: &Json, at: &str) {
    let theirs = theirs.as_f64().unwrap();
    assert!((ours - theirs).abs() <= STATE * theirs.abs(), "{ours} instead of {theirs}, {at}");
}

#[test]
fn red_is_that_of_the_1993_equations() {
    replay(include_str!("../../../../vectors/red.json"), "red");
}

#[test]
fn codel_is_that_of_rfc_8289() {
    replay(include_str!("../../../../vectors/codel.json"), "codel");
}

#[test]
fn pie_is_that_of_rfc_8033_and_of_linux_3_17() {
    replay(include_str!("../../../../vectors/pie.json"), "pie");
}

#[test]
fn fq_codel_is_that_of_rfc_8290() {
    replay(include_str!("../../../../vectors/fq-codel.json"), "fq-codel");
}
