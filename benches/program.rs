//! Program that the benchmarks run under valgrind and profilers, without Python:
//! `cargo run --release --bin bench -- simulate FILE` simulates a scenario file.
//! `… -- read KIND FILE` reads a file as a scenario, a table that scenarios name or a capture, and
//! prints the outcome; `benches/readers.py` counts its instructions.

use std::process::ExitCode;
use std::sync::Arc;

use cwnd_infer::{Inference, Input, Limits};
use cwnd_scenario::{Diagnostics, Document};
use cwnd_sim::World;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["simulate", file] => simulate(file),
        ["read", kind, file] => read(kind, file),
        _ => {
            eprintln!("usage: bench simulate FILE | bench read KIND FILE");
            ExitCode::from(2)
        }
    }
}

fn simulate(file: &str) -> ExitCode {
    let text = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) => {
            eprintln!("{file}: {error}");
            return ExitCode::from(2);
        }
    };
    let files = |name: &str| std::fs::read_to_string(name).map_err(|e| e.to_string());
    let plan = match Document::parse(file, &text, &files).and_then(|d| d.plan()) {
        Ok(plan) => plan,
        Err(diagnostics) => {
            eprintln!("{}", diagnostics.render(false));
            return ExitCode::from(2);
        }
    };
    for cell in plan.cells {
        match World::new(Arc::new(cell.scenario)).run(|_| true) {
            Ok(records) => println!(
                "{} {} packets {} events {} {:?}",
                cell.id,
                records.delivered_data_packets,
                records.events,
                records.digest(),
                records.activity
            ),
            Err(cwnd_sim::Cancelled) => return ExitCode::FAILURE,
        }
    }
    ExitCode::SUCCESS
}

/// Returns a scenario that names the file.
fn naming(kind: &str) -> Option<String> {
    let (link, flow) = match kind {
        "sizes" => ("", "workload = { kind = \"bytes\", size = \"cdf(file.csv)\" }"),
        "arrivals" => (
            "",
            "workload = { kind = \"bytes\", size = \"1 kB\" }\n\
             arrivals = { kind = \"list\", rows = \"file.csv\" }",
        ),
        "delays" => ("delay_steps = \"file.csv\"", ""),
        "rates" => ("rate = { trace = \"file.csv\" }", ""),
        _ => return None,
    };
    let rate = if link.starts_with("rate") { "" } else { "rate = \"10 Mbit/s\"" };
    Some(format!(
        "schema = 2\n[run]\nduration = \"1 s\"\n[link.a]\nfrom = \"a\"\nto = \"b\"\n\
         delay = \"5 ms\"\nduplex = true\n{rate}\n{link}\n\
         [flow.main]\nfrom = \"a\"\nto = \"b\"\n{flow}\n"
    ))
}

fn outline(text: &str, file: &str) -> Result<usize, Diagnostics> {
    let files = |_: &str| Ok(file.to_owned());
    let plan = Document::parse("scenario.toml", text, &files)?.outline()?;
    Ok(plan.cell(0).map_or(0, |cell| cell.resolved_toml.len()))
}

fn capture(bytes: &[u8]) -> String {
    let mut inference = Inference::new(Limits::default());
    let read = inference.read(&[Input::of("capture", bytes)], || true);
    read.map_or_else(|error| error.to_string(), |()| format!("{:?}", inference.finish().counts))
}

fn read(kind: &str, path: &str) -> ExitCode {
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) => {
            eprintln!("{path}: {error}");
            return ExitCode::FAILURE;
        }
    };
    let text = String::from_utf8_lossy(&bytes);
    let planned = match (kind, naming(kind)) {
        ("capture", _) => {
            println!("{}", capture(&bytes));
            return ExitCode::SUCCESS;
        }
        (_, Some(scenario)) => outline(&scenario, &text),
        _ => outline(&text, ""),
    };
    match planned {
        Ok(bytes) => println!("read: {bytes}"),
        Err(diagnostics) => println!("refused: {}", diagnostics.render(false)),
    }
    ExitCode::SUCCESS
}
