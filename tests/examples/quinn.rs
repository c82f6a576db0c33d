//! Runs quinn-proto, cwnd's QUIC and cwnd's TCP, each with CUBIC, over the same bottleneck, and
//! prints goodput and packets per second of real time:
//! `cargo run --release -p cwnd-tests --example quinn`.

#[path = "../suite/endpoints/quinn.rs"]
mod quinn;

use std::sync::Arc;
use std::time::Instant;

use cwnd_scenario::Document;
use cwnd_sim::World;
use cwnd_tables::{ColumnData, Records};
use quinn_proto::congestion::CubicConfig;

/// Runs of each case, of which the fastest counts.
const RUNS: usize = 3;
/// Flows times seconds of a run, of 1 Mbit each: about 800,000 data packets.
const FLOW_SECONDS: u32 = 10_000;

/// Runs `count` flows at 1 Mbit/s each; returns the records and the seconds that it took.
#[expect(clippy::disallowed_methods, reason = "the speed of the simulator is what is measured")]
fn run(count: u32, stack: &str) -> (Records, f64) {
    let quinn = stack == "quinn";
    let keys = if stack == "quic" { "stack = \"quic\"" } else { "" };
    let text = format!(
        "[run]\nduration = \"{} s\"\nsample = \"none\"\n[dumbbell]\nrate = \"{count} Mbit/s\"\n\
         [flow.main]\ncount = {count}\nrtt = \"40 ms\"\nstart = \"uniform(0 s, 1 s)\"\n\
         controller = \"cubic\"\n{keys}\n",
        FLOW_SECONDS / count
    );
    let no_files = |name: &str| Err(format!("no file `{name}`"));
    let plan = Document::parse("quinn.toml", &text, &no_files).and_then(|document| document.plan());
    let plan = plan.unwrap_or_else(|diagnostics| panic!("{diagnostics}"));
    let mut world = World::new(Arc::new(plan.cells[0].scenario.clone()));
    if quinn {
        let cubic: quinn::Congestion = Arc::new(CubicConfig::default());
        assert!(world.replace_endpoints("main", move |start| quinn::pair(start, &cubic)));
    }
    let began = Instant::now();
    let records = world.run(|_| true).expect("nothing stops it");
    (records, began.elapsed().as_secs_f64())
}

fn main() {
    println!("stack  flows  Mbit/s  data packets  1,000 packets/s");
    for count in [10, 1000] {
        for stack in ["quinn", "quic", "tcp"] {
            let runs = (0..RUNS).map(|_| run(count, stack));
            let fastest = runs.min_by(|(_, a), (_, b)| a.total_cmp(b));
            let (records, seconds) = fastest.expect("there are runs");
            let Some(ColumnData::F64(goodputs)) = records.flows.column("goodput_bit_s") else {
                panic!("goodputs are numbers");
            };
            let Some(ColumnData::U64(sent)) = records.flows.column("segments_sent") else {
                panic!("counts are numbers");
            };
            let (goodput, sent) = (goodputs.iter().sum::<f64>() / 1e6, sent.iter().sum::<u64>());
            let rate = sent as f64 / seconds / 1000.0;
            println!("{stack:<5}  {count:>5}  {goodput:>6.1}  {sent:>12}  {rate:>15.0}");
        }
    }
}
