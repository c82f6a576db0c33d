//! Reads a file as a scenario, a table that scenarios name or a capture, and prints the outcome.
//!
//! `benches/readers.py` counts its instructions.

use std::process::ExitCode;

use cwnd_infer::{Inference, Input, Limits};
use cwnd_scenario::{Diagnostics, Document};

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

fn plan(text: &str, file: &str) -> Result<usize, Diagnostics> {
    let files = |_: &str| Ok(file.to_owned());
    let plan = Document::parse("scenario.toml", text, &files)?.outline()?;
    Ok(plan.cell(0).map_or(0, |cell| cell.resolved_toml.len()))
}

fn capture(bytes: &[u8]) -> String {
    let mut inference = Inference::new(Limits::default());
    let read = inference.read(&[Input::of("capture", bytes)], || true);
    read.map_or_else(|error| error.to_string(), |()| format!("{:?}", inference.finish().counts))
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [kind, path] = &arguments[..] else {
        eprintln!("usage: readers KIND FILE");
        return ExitCode::from(2);
    };
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) => {
            eprintln!("{path}: {error}");
            return ExitCode::FAILURE;
        }
    };
    let text = String::from_utf8_lossy(&bytes);
    let planned = match (kind.as_str(), naming(kind)) {
        ("capture", _) => {
            println!("{}", capture(&bytes));
            return ExitCode::SUCCESS;
        }
        (_, Some(scenario)) => plan(&scenario, &text),
        _ => plan(&text, ""),
    };
    match planned {
        Ok(bytes) => println!("read: {bytes}"),
        Err(diagnostics) => println!("refused: {}", diagnostics.render(false)),
    }
    ExitCode::SUCCESS
}
