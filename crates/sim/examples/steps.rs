//! Prints the steps of a scenario's runs, one a line, each after the hash of its run so far.
//!
//! Usage: `cargo run --example steps -- FILE [FROM [TO]]`. The first line that differs between two
//! builds shows where and how their runs diverge.

use std::io::{BufWriter, Write as _};
use std::process::ExitCode;
use std::sync::Arc;

use cwnd_scenario::Document;
use cwnd_sim::Witness;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let Some(file) = arguments.next() else {
        eprintln!("usage: steps FILE [FROM [TO]]");
        return ExitCode::from(2);
    };
    let mut number = |default: u64| arguments.next().map_or(Ok(default), |a| a.parse());
    let (Ok(from), Ok(to)) = (number(0), number(u64::MAX)) else {
        eprintln!("FROM and TO are numbers of events");
        return ExitCode::from(2);
    };
    match print(&file, from, to) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn print(file: &str, from: u64, to: u64) -> Result<(), String> {
    let read = |name: &str| std::fs::read_to_string(name).map_err(|e| format!("{name}: {e}"));
    let text = read(file)?;
    let plan = Document::parse(file, &text, &read)
        .and_then(|d| d.plan())
        .map_err(|diagnostics| diagnostics.render(false))?;
    let mut out = BufWriter::new(std::io::stdout().lock());
    for cell in plan.cells {
        let mut witness = Witness::new(Arc::new(cell.scenario));
        let _never_cancelled = witness.build(|_| true);
        loop {
            let step = witness.step();
            if (from..=to).contains(&step.index) {
                writeln!(out, "{:016x} {step}", step.chain).map_err(|e| e.to_string())?;
            }
            if step.index >= to || !witness.advance() {
                break;
            }
        }
    }
    out.flush().map_err(|e| e.to_string())
}
