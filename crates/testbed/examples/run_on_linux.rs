//! Runs the first cell of a scenario file on this machine's kernel and prints its tables.

use std::error::Error;

use cwnd_scenario::Document;
use cwnd_testbed::{Options, run};

fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::args().nth(1).ok_or("which scenario?")?;
    let text = std::fs::read_to_string(&file)?;
    let plan = Document::parse(&file, &text, &|_: &str| Err("no files".to_owned()))?.plan()?;
    for cell in plan.cells {
        let options =
            Options { kernel_helper: std::env::args().nth(2).map(Into::into), calibrate: true };
        let outcome = run(&cell.scenario, &options, Vec::new(), &mut |_| true)?;
        for table in [&outcome.records.flows, &outcome.records.links] {
            for column in &table.columns {
                println!("{}: {:?}", column.name, column.data);
            }
        }
        println!("{:?}", outcome.records.activity);
        println!("{}", serde_json::to_string_pretty(&outcome.facts)?);
    }
    Ok(())
}
