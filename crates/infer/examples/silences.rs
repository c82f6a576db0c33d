//! Reads captures, and prints connections, silences and reading speed:
//! `cargo run --release -p cwnd-infer --example silences -- FILE…`.

use std::fs::File;
use std::process::ExitCode;

use cwnd_infer::{Bytes, Inference, Input, Limits, Meter, unpacked};
use cwnd_tables::{ColumnData, Table};

fn main() -> ExitCode {
    let mut inference = Inference::new(Limits::default());
    #[expect(clippy::disallowed_methods, reason = "it measures time")]
    let began = std::time::Instant::now();
    let open = |name: String| {
        Input::new(name.clone(), move || {
            unpacked(File::open(&name)?, Meter::default()).map(|bytes| bytes as Bytes<'_>)
        })
    };
    let inputs: Vec<Input<'_>> = std::env::args().skip(1).map(open).collect();
    if let Err(error) = inference.read(&inputs, || true) {
        eprintln!("{error}");
        return ExitCode::FAILURE;
    }
    let found = inference.finish();
    let seconds = began.elapsed().as_secs_f64();
    let mut out = std::io::stdout().lock();
    for table in [&found.connections, &found.silences] {
        if print(table, &mut out).is_err() {
            return ExitCode::FAILURE;
        }
    }
    let frames = found.counts.get("frames").unwrap_or(0);
    eprintln!("{frames} frames in {seconds:.2} s: {:.2} M a second", frames as f64 / seconds / 1e6);
    for (name, count) in found.counts.iter().filter(|(_, count)| *count > 0) {
        eprintln!("{name} {count}");
    }
    ExitCode::SUCCESS
}

fn print(table: &Table, out: &mut impl std::io::Write) -> std::io::Result<()> {
    let names: Vec<&str> = table.columns.iter().map(|column| column.name).collect();
    writeln!(out, "{}", names.join("\t"))?;
    for row in 0..table.len() {
        let cells: Vec<String> = table.columns.iter().map(|c| cell(&c.data, row)).collect();
        writeln!(out, "{}", cells.join("\t"))?;
    }
    Ok(())
}

fn cell(column: &ColumnData, row: usize) -> String {
    match column {
        ColumnData::U32(v) => v[row].to_string(),
        ColumnData::U64(v) => v[row].to_string(),
        ColumnData::F64(v) => v[row].to_string(),
        ColumnData::OptionalF64(v) => v.get(row).map_or_else(String::new, |x| x.to_string()),
        ColumnData::OptionalU64(v) => v.get(row).map_or_else(String::new, |x| x.to_string()),
        ColumnData::Name { codes, labels } => labels[codes[row].0 as usize].clone(),
    }
}
