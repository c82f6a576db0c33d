//! A playground gives the records of the simulator, piece by piece, and edits scenarios.

use std::path::Path;
use std::sync::Arc;

use cwnd_play::{Playground, edit};
use cwnd_scenario::{Cell, Document};
use cwnd_sim::World;
use cwnd_tables::{ColumnData, Records};
use serde_json::Value as Json;

const SCENARIO: &str = r#"schema = 2

[run]
duration = "10 s"

[dumbbell] # the bottleneck
rate = "10 Mbit/s" # of a home
queue = "codel" # of its modem

[flow.a]
rtt = "40 ms"
controller = "cubic"
endpoint = { ecn = true }

[flow.b]
rtt = "80 ms"
"#;

fn cell(text: &str, index: usize) -> Cell {
    let files = |name: &str| Err(format!("there is no {name}"));
    let document = Document::parse("scenario.toml", text, &files).expect("the scenario is TOML");
    document.outline().expect("the scenario is valid").cell(index).expect("there is such a run")
}

fn simulated(text: &str, index: usize) -> Records {
    let mut world = World::unbuilt(Arc::new(cell(text, index).scenario));
    world.build(|_| true).expect("nobody stops it");
    world.run(|_| true).expect("nobody stops it")
}

/// Splits an answer into its head and its numbers.
fn read(bytes: &[u8]) -> (Json, Vec<f64>) {
    let length = u32::from_le_bytes(bytes[..4].try_into().expect("four bytes")) as usize;
    let head = serde_json::from_slice(&bytes[4..4 + length]).expect("the head is JSON");
    let numbers = bytes[(4 + length).next_multiple_of(8)..].chunks(8);
    let number = |chunk: &[u8]| f64::from_le_bytes(chunk.try_into().expect("eight bytes"));
    (head, numbers.map(number).collect())
}

fn text_of(json: &str) -> String {
    let json: Json = serde_json::from_str(json).expect("diagnostics are JSON");
    json["text"].as_str().expect("a text").to_owned()
}

#[test]
fn the_digest_of_each_scenario_is_that_of_the_simulator() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    for name in ["fifo-one-flow", "udp-on-off", "parking-lot", "two-bottlenecks"] {
        let text = std::fs::read_to_string(folder.join(format!("{name}.toml"))).expect("a file");
        let (playground, _) = Playground::open(&text, 0).expect("the scenario is valid");
        let (head, _) = read(&playground.results());
        assert_eq!(head["digest"], simulated(&text, 0).digest(), "{name}");
    }
}

#[test]
fn a_run_in_pieces_shows_the_beginning_of_the_series_and_ends_with_the_same_digest() {
    let (mut playground, _) = Playground::open(SCENARIO, 0).expect("the scenario is valid");
    assert!(playground.advance(10_000), "the run goes on");
    let (head, numbers) = read(&playground.series());
    let now_s = head["time_s"].as_f64().expect("a time");
    assert!(1.0 < now_s && now_s < 9.0, "{now_s}");
    let whole = simulated(SCENARIO, 0);
    let rows = head["tables"][0]["rows"].as_u64().expect("a number of rows") as usize;
    let Some(ColumnData::F64(windows)) = whole.flow_series.column("snd_cwnd_pkts") else {
        panic!("windows are numbers")
    };
    let at = whole.flow_series.columns.iter().position(|c| c.name == "snd_cwnd_pkts");
    let from = at.expect("there is a column of windows") * rows;
    // Both flows start with the run, after its first sample.
    assert_eq!(rows, 2 * (now_s * 10.0) as usize);
    assert_eq!(numbers[from..from + rows], windows[..rows]);
    while playground.advance(1000) {}
    let (head, _) = read(&playground.results());
    assert_eq!(head["digest"], whole.digest());
}

#[test]
fn a_point_of_a_sweep_is_the_cell_with_its_index() {
    let text = format!(
        "{SCENARIO}\n[sweep]\nrepeat = 2\n[sweep.axis.queue]\npath = \"dumbbell.queue\"\n\
         values = [\"fifo\", \"pie\"]\n"
    );
    let (playground, facts) = Playground::open(&text, 3).expect("the scenario is valid");
    let facts: Json = serde_json::from_str(&facts).expect("facts are JSON");
    assert_eq!(facts["resolved"]["dumbbell"]["queue"]["kind"], "pie");
    assert_eq!(facts["id"], cell(&text, 3).id);
    assert_eq!(read(&playground.results()).0["digest"], simulated(&text, 3).digest());
    // An edit may leave fewer runs than there were.
    let (playground, _) = Playground::open(&text, 4).expect("there are four runs");
    assert_eq!(read(&playground.results()).0["digest"], simulated(&text, 3).digest());
}

#[test]
fn code_of_a_user_is_refused() {
    let text = SCENARIO.replace("\"cubic\"", "{ kind = \"c\", path = \"mine.c\\nint x;\" }");
    let error = text_of(&Playground::open(&text, 0).expect_err("nobody loads it"));
    assert_eq!(error, "error: code of one's own runs with `cwnd run` only");
    let class = "{ kind = \"python\", path = \"mine.py\", class = \"Mine\" }";
    let named = SCENARIO.replace("\"cubic\"", class);
    let error = text_of(&Playground::open(&named, 0).expect_err("nobody loads it"));
    assert!(error.contains("code of one's own runs with `cwnd run` only"), "{error}");
}

#[test]
fn more_samples_than_a_page_can_draw_are_refused() {
    let sampled = |interval: &str| {
        let text = SCENARIO.replace("\"10 s\"", &format!("\"10 s\"\nsample = \"{interval}\""));
        Playground::open(&text, 0).map(|_| ())
    };
    let error = text_of(&sampled("10 us").expect_err("it has a million samples"));
    assert!(error.ends_with("set `run.sample` to 100 us or more"), "{error}");
    assert!(sampled("100 us").is_ok());
}

#[test]
fn mistakes_have_line_and_key_and_files_are_refused() {
    let wrong = SCENARIO.replace("10 Mbit/s", "fast").replace("\"40 ms\"", "\"soon\"");
    let error = Playground::open(&wrong, 0).expect_err("there are two mistakes");
    let error: Json = serde_json::from_str(&error).expect("diagnostics are JSON");
    let places = error["list"].as_array().expect("a list").iter();
    let places: Vec<_> = places.map(|each| (each["line"].as_u64(), each["key"].as_str())).collect();
    assert_eq!(places, [(Some(7), Some("dumbbell.rate")), (Some(11), Some("flow.a.rtt"))]);
    let traced = SCENARIO.replace("rate = \"10 Mbit/s\"", "trace = \"lte.up\"");
    let error = text_of(&Playground::open(&traced, 0).expect_err("it names a file"));
    assert!(error.contains("a page reads no files"), "{error}");
}

#[test]
fn edits_keep_comments_and_make_tables_of_names() {
    let changes = r#"[
        [["dumbbell", "rate"], "20 Mbit/s"],
        [["dumbbell", "queue", "target"], "7 ms"],
        [["flow", "a", "endpoint", "ecn"], null],
        [["flow", "b", "controller", "kind"], "bbr"],
        [["dumbbell", "meter"], {"kind": "none"}],
        [["flow", "c"], {"rtt": "1 ms"}]
    ]"#;
    let edited = edit(SCENARIO, changes).expect("the changes are valid");
    let expected = SCENARIO
        .replace("\"10 Mbit/s\" # of", "\"20 Mbit/s\" # of")
        .replace("\"codel\"", "{ kind = \"codel\", target = \"7 ms\" }")
        .replace("\n[flow.a]", "meter = { kind = \"none\" }\n\n[flow.a]")
        .replace("{ ecn = true }", "{}")
        .replace("\"80 ms\"", "\"80 ms\"\ncontroller = { kind = \"bbr\" }");
    assert_eq!(edited, format!("{expected}\n[flow.c]\nrtt = \"1 ms\"\n"));
    let error = edit(SCENARIO, r#"[[["schema", "x"], 1]]"#).expect_err("a number has no keys");
    assert_eq!(error, "`schema` is no table: integer");
}
