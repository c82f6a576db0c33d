//! Helpers that run a scenario given as text and read the tables of its results.

use std::path::PathBuf;
use std::sync::Arc;

use cwnd_scenario::{Document, Scenario};
use cwnd_sim::World;
use cwnd_tables::{ColumnData, Records, Table};

#[path = "../../crates/sim/tests/capture/kept.rs"]
mod kept;

pub use kept::Kept;

/// Returns the single cell of a scenario given as text.
pub fn scenario(text: &str) -> Arc<Scenario> {
    let no_files = |name: &str| Err(format!("no file `{name}`"));
    let plan = match Document::parse("test.toml", text, &no_files).and_then(|d| d.plan()) {
        Ok(plan) => plan,
        Err(diagnostics) => panic!("{diagnostics}\n{text}"),
    };
    let [cell] = plan.cells.try_into().expect("a scenario without sweep is one cell");
    Arc::new(cell.scenario)
}

/// Runs a scenario given as text.
pub fn run(text: &str) -> Records {
    World::new(scenario(text)).run(|_| true).expect("nothing stops it")
}

/// Runs a world and audits it: after each of the first 299 events, then at intervals of a prime
/// number, so that no periodic fault is missed.
pub fn run_audited(mut world: World) -> Records {
    let mut events = 0_u64;
    while world.step() {
        events += 1;
        if events < 300 || events.is_multiple_of(101) {
            assert_eq!(world.audit(), Ok(()));
        }
    }
    world.finish()
}

/// Returns a column as numbers: a missing value is NaN, a name is its code.
pub fn column(table: &Table, name: &str) -> Vec<f64> {
    match table.column(name).unwrap_or_else(|| panic!("no column `{name}`")) {
        ColumnData::U32(v) => v.iter().map(|&x| f64::from(x)).collect(),
        ColumnData::U64(v) => v.iter().map(|&x| x as f64).collect(),
        ColumnData::F64(v) => v.clone(),
        ColumnData::OptionalF64(v) => v.iter().map(|x| x.unwrap_or(f64::NAN)).collect(),
        ColumnData::OptionalU64(v) => v.iter().map(|x| x.map_or(f64::NAN, |x| x as f64)).collect(),
        ColumnData::Name { codes, .. } => codes.iter().map(|c| f64::from(c.0)).collect(),
    }
}

/// Returns the value in a row of a column.
pub fn at(table: &Table, row: usize, name: &str) -> f64 {
    column(table, name)[row]
}

/// Jain's fairness index: 1 for equal shares, 1/n if one flow has everything.
pub fn jain(shares: &[f64]) -> f64 {
    let squares: f64 = shares.iter().map(|x| x * x).sum();
    shares.iter().sum::<f64>().powi(2) / (shares.len() as f64 * squares)
}

/// Runs two flows beside two others for 150 s over 20 Mbit/s and 40 ms, with a buffer given in BDP.
/// Returns the first two's share of the goodput after 30 s, and the records. The flows start within
/// `within` seconds; each pair is given by group name and keys.
pub fn share_beside(buffer: f64, within: u32, pairs: [(&str, &str); 2]) -> (f64, Records) {
    let flows = pairs.map(|(group, keys)| {
        format!(
            "[flow.{group}]\nrtt = \"40 ms\"\ncount = 2\nstart = \"uniform(0 s, {within} s)\"\n\
             {keys}\n"
        )
    });
    let records = run(&format!(
        "[run]\nduration = \"150 s\"\nwarmup = \"30 s\"\nsample = \"none\"\n[dumbbell]\n\
         rate = \"20 Mbit/s\"\nqueue = {{ kind = \"fifo\", limit = \"{buffer} BDP\" }}\n{}",
        flows.concat()
    ));
    let goodputs = column(&records.flows, "goodput_bit_s");
    ((goodputs[0] + goodputs[1]) / goodputs.iter().sum::<f64>(), records)
}

/// Returns a counter of the activity; panics if there is none. Many counters of zero are omitted.
pub fn activity(records: &Records, name: &str) -> u64 {
    records.activity.get(name).unwrap_or_else(|| panic!("no activity `{name}`"))
}

/// Index of the bottleneck in a dumbbell's table of links.
pub const BOTTLENECK: usize = 0;

/// `true` in the long mode: `LONG` is in the environment.
#[expect(clippy::disallowed_methods, reason = "a test is told from outside how long it may take")]
pub fn is_long() -> bool {
    std::env::var("LONG").is_ok()
}

/// Compares a text with the file of that name in `golden/`; `UPDATE=1 cargo test -p cwnd-tests`
/// writes the file.
#[expect(clippy::disallowed_methods, reason = "a test is told from outside to refresh its golden")]
pub fn assert_golden(name: &str, found: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("golden").join(name);
    if std::env::var("UPDATE").is_ok() {
        std::fs::write(&path, found).expect("golden files can be written");
        return;
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == expected,
        "{name} has changed; if it was meant to, refresh it with \
         UPDATE=1 cargo test -p cwnd-tests\n--- expected\n{expected}\n--- found\n{found}"
    );
}
