//! The vectors of `vectors/`, computed by the reference in `tests/reference`, event by event.

use cwnd_aqm::{AnyQdisc, Qdisc, QueueParams, Reason};
use cwnd_packet::Ecn;
use cwnd_quantity::{Duration, LinkProperties, Rate, Rng, Time};
use cwnd_schema::{Field, ParamsChoice, Value, ValueType};
use serde_json::Value as Json;

use crate::{Log, Pkt};

#[path = "../../../../tests/vector_files.rs"]
mod vector_files;

/// Relative tolerance of a number, which the files state, too.
const STATE: f64 = 1e-9;
/// Seed of the streams whose numbers the vectors list; each stream is named after its case.
const SEED: u64 = 1;

/// Number of a packet, its drop or mark, and the reason.
type Hit = (u64, &'static str, &'static str);

/// A parameter as a scenario would write it; its key ends in the unit, and sizes without one are
/// bytes.
fn setting(fields: &[Field], name: &str, value: &Json) -> (&'static str, Value) {
    let unit_of = |field: &Field| {
        let unit = name.strip_prefix(field.name)?;
        ["", "_ns", "_packets"].contains(&unit).then(|| unit.trim_start_matches('_').to_owned())
    };
    let found = fields.iter().find_map(|field| Some((field, unit_of(field)?)));
    let (field, unit) = found.unwrap_or_else(|| panic!("no parameter is called {name}"));
    let kind =
        if let ValueType::Optional(kind) = field.value_type { *kind } else { field.value_type };
    let unit = match kind {
        ValueType::Bytes | ValueType::QueueSize if unit.is_empty() => "B".to_owned(),
        _ => unit,
    };
    let value = match value {
        Json::Null => Value::Text("none".to_owned()),
        Json::Bool(b) => Value::Bool(*b),
        Json::String(s) => Value::Text(s.clone()),
        Json::Number(n) if !unit.is_empty() => Value::Text(format!("{n} {unit}")),
        Json::Number(n) if n.is_i64() => Value::Integer(n.as_i64().unwrap()),
        Json::Number(n) => Value::Float(n.as_f64().unwrap()),
        other => panic!("{name} = {other}"),
    };
    (field.name, value)
}

fn params(kind: &str, case: &Json) -> QueueParams {
    let mut params = QueueParams::of_kind(kind).expect("a kind");
    if let Some(preset) = case["preset"].as_str() {
        assert!(params.params_mut().apply_preset(preset));
    }
    for (name, value) in case["parameters"].as_object().unwrap() {
        let (key, value) = setting(params.params().fields(), name, value);
        params.params_mut().set(key, &value).unwrap();
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
        let link = LinkProperties { rate, bdp_rtt: Duration::ZERO };
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
                    // The state of a queue with a timer moves as that fires.
                    let timer = self.queue.next_timer();
                    match self.queue.state().filter(|_| timer.is_none()) {
                        Some(state) => near(state, &row[7], &at),
                        None => assert!(row[7].is_null(), "{at}"),
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
                    near(self.queue.state().unwrap(), &row[2], &at);
                }
                other => panic!("{other}"),
            }
        }
    }

    /// Takes the drops and marks logged since the last call, in order. Within one call of the queue
    /// drops come first, as a mark ends the call.
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

fn hits(json: &Json) -> Vec<(u64, &str, &str)> {
    let word = |text| Json::as_str(text).unwrap();
    let json = json.as_array().unwrap();
    json.iter().map(|h| (h[0].as_u64().unwrap(), word(&h[1]), word(&h[2]))).collect()
}

fn near(ours: f64, theirs: &Json, at: &str) {
    let theirs = theirs.as_f64().unwrap();
    assert!((ours - theirs).abs() <= STATE * theirs.abs(), "{ours} instead of {theirs}, {at}");
}

#[test]
fn every_queue_but_the_default_does_what_its_vectors_say() {
    let mut without: Vec<_> = QueueParams::KINDS.iter().map(|kind| kind.name).collect();
    for file in vector_files::of_kind("queue") {
        assert_eq!(file["tolerance"]["state"], STATE);
        let kind = file["algorithm"].as_str().unwrap();
        for case in file["cases"].as_array().unwrap() {
            Replay::new(case, kind).run(case);
            without.retain(|other| *other != kind);
        }
    }
    assert_eq!(
        without,
        [QueueParams::default().kind()],
        "a new queue needs vectors/KIND.json: write its reference in tests/reference, name its \
         cases in FILES of generate.py, run make vectors ARGS=KIND (CONTRIBUTING.md, step 2)"
    );
}
