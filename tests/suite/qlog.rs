//! Logs of senders, read back by the crate `qlog`.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use cwnd_sim::World;
use qlog::QlogSeq;
use qlog::events::Event;
use serde_json::Value;

use crate::common::{Kept, scenario};

/// A scenario with losses or marks; its senders' logs, in order of their first packets.
fn logs(flow: &str) -> Vec<String> {
    let text = format!(
        "schema = 2\nrun = {{ duration = \"10 s\", seed = 5 }}\n\
         [dumbbell]\nrate = \"10 Mbit/s\"\ndelay = \"10 ms\"\nqueue = \"codel\"\nloss = 0.01\n\
         [flow.\"a \\\"b\\\"\"]\nrtt = \"30 ms\"\ncount = 2\n{flow}\n"
    );
    let mut world = World::new(scenario(&text));
    let files = Arc::new(Mutex::new(Vec::<Kept>::new()));
    let opened = Arc::clone(&files);
    let open = move |_: usize, _: u32| {
        let kept = Kept::default();
        opened.lock().expect("nobody panicked with it").push(kept.clone());
        Some(Box::new(kept) as _)
    };
    world.log_senders(&[0], Box::new(open)).expect("the group has senders");
    world.run(|_| true).expect("nothing stops it");
    let files = files.lock().expect("nobody panicked with it");
    files.iter().map(|file| String::from_utf8(file.bytes()).expect("it is UTF-8")).collect()
}

/// Compares two values, numbers to the 24 bits of the crate's times.
fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(key, of)| other.get(key).is_some_and(|there| same(of, there)))
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Number(one), Value::Number(other)) => {
            let [one, other] = [one, other].map(|n| n.as_f64().expect("it fits"));
            (one - other).abs() <= 1e-6 * one.abs()
        }
        _ => one == other,
    }
}

/// Reads a record, and checks that the type of the crate that `typed` reads has all its fields.
fn read(text: &str, typed: impl Fn(&str) -> serde_json::Result<Value>) -> Value {
    let value = serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"));
    let again = typed(text).unwrap_or_else(|error| panic!("{error}: {text}"));
    assert!(same(&value, &again), "{text} became {again}");
    value
}

#[test]
fn each_record_is_one_of_the_schema() {
    for (flow, protocol) in [
        ("stack = \"quic\"\nendpoint = { ecn = true }", "QUIC"),
        ("stack = \"linux\"\nendpoint = { ecn = true }", "TCP"),
        ("stack = \"rfc6675\"", "TCP"),
        ("endpoint = { recovery = \"newreno\" }", "TCP"),
    ] {
        let logs = logs(flow);
        assert_eq!(logs.len(), 2);
        for log in logs {
            let mut records = log.split('\u{1e}');
            assert_eq!(records.next(), Some(""));
            let header = read(records.next().expect("it has a header"), |text| {
                serde_json::to_value(serde_json::from_str::<QlogSeq>(text)?)
            });
            assert_eq!(header["trace"]["common_fields"]["protocol_type"][0], protocol);
            let title = header["title"].as_str().expect("a title");
            assert!(title.contains("seed 5: a \"b\" "), "{title}");
            let event = |text: &str| serde_json::to_value(serde_json::from_str::<Event>(text)?);
            let name = |record: &str| {
                // The crate has `ecn` where the draft has `ECN`.
                let record = record.replace("\"trigger\":\"ECN\"", "\"trigger\":\"ecn\"");
                read(&record, event)["name"].as_str().map(str::to_owned)
            };
            let names: BTreeSet<String> = records.filter_map(name).collect();
            let expected = [
                "recovery:congestion_state_updated",
                "recovery:metrics_updated",
                "recovery:packet_lost",
                "transport:packet_received",
                "transport:packet_sent",
            ];
            assert_eq!(names.iter().map(String::as_str).collect::<Vec<_>>(), expected);
        }
    }
}

#[test]
fn sources_of_datagrams_have_no_log() {
    let text = "[run]\nduration = \"1 s\"\n[dumbbell]\nrate = \"10 Mbit/s\"\n\
                [flow.main]\nrtt = \"30 ms\"\n\
                workload = { kind = \"udp\", rate = \"1 Mbit/s\", size = \"500 B\" }\n";
    let mut world = World::new(scenario(text));
    let error = world.log_senders(&[0], Box::new(|_, _| None)).expect_err("they are refused");
    assert_eq!(error.to_string(), "flow group `main` has no senders of cwnd to log");
}
