//! Simulates a scenario file without Python, for profilers:
//! `cargo run --release --bin simulate -- FILE`.

use std::process::ExitCode;
use std::sync::Arc;

use cwnd_scenario::Document;
use cwnd_sim::World;

fn main() -> ExitCode {
    let Some(file) = std::env::args().nth(1) else {
        eprintln!("usage: simulate FILE");
        return ExitCode::from(2);
    };
    let text = match std::fs::read_to_string(&file) {
        Ok(text) => text,
        Err(error) => {
            eprintln!("{file}: {error}");
            return ExitCode::from(2);
        }
    };
    let files = |name: &str| std::fs::read_to_string(name).map_err(|e| e.to_string());
    let plan = match Document::parse(&file, &text, &files).and_then(|d| d.plan()) {
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
