//! Runs a scenario file on this machine's kernel; a second argument is the path of `cwnd-kernel`.
//! Prints a line of JSON for each cell: its tables of flows, links and flow samples by column, and
//! facts about the run.

use std::error::Error;

use cwnd_scenario::Document;
use cwnd_tables::{ColumnData, Table};
use cwnd_testbed::{Options, run};
use serde_json::{Map, Value, json};

fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::args().nth(1).ok_or("which scenario?")?;
    let text = std::fs::read_to_string(&file)?;
    let plan = Document::parse(&file, &text, &|_: &str| Err("no files".to_owned()))?.plan()?;
    for cell in plan.cells {
        let options = Options {
            kernel_helper: std::env::args().nth(2).map(Into::into),
            objects: Vec::new(),
            calibrate: true,
        };
        let outcome = run(&cell.scenario, &options, Vec::new(), &mut |_| true)?;
        let records = &outcome.records;
        let told = json!({
            "flows": columns(&records.flows),
            "links": columns(&records.links),
            "flow_series": columns(&records.flow_series),
            "facts": outcome.facts,
        });
        println!("{told}");
    }
    Ok(())
}

fn columns(table: &Table) -> Value {
    let each = table.columns.iter().map(|column| (column.name.to_owned(), values(&column.data)));
    Value::Object(each.collect::<Map<_, _>>())
}

fn values(data: &ColumnData) -> Value {
    match data {
        ColumnData::U32(v) => json!(v),
        ColumnData::U64(v) => json!(v),
        ColumnData::F64(v) => json!(v),
        ColumnData::OptionalF64(v) => v.iter().map(|x| json!(x)).collect(),
        ColumnData::OptionalU64(v) => v.iter().map(|x| json!(x)).collect(),
        ColumnData::Name { codes, labels } => {
            codes.iter().map(|code| json!(labels[code.0 as usize])).collect()
        }
    }
}
