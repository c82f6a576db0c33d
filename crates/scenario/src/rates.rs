//! How fast a link sends: `"10 Mbit/s"`, steps, or a mahimahi trace.

use cwnd_units::Rate;

use crate::model::LinkRate;
use crate::reader::{At, Context, Section};
use crate::sections::RATE;
use crate::steps::rate_steps;
use crate::tree::Item;

/// A rate, or a table of how it changes.
pub(crate) fn link_rate(at: At<'_>, cx: &mut Context<'_>) -> Option<LinkRate> {
    let Some(table) = at.node.table() else {
        if at.node.text() == Some("none") {
            return Some(LinkRate::Unlimited);
        }
        let initial = at.plain::<Rate>(cx)?;
        return Some(LinkRate::Steps { initial, changes: Vec::new() });
    };
    let section = Section::new(table, &[RATE], at.path, at.node.span, cx);
    let sources = ["initial", "trace", "trace_ms"].map(|k| section.entry(k).is_some());
    match sources {
        [true, false, false] => {
            let initial = section.plain::<Rate>("initial", cx);
            let changes = section.read("steps", cx, rate_steps);
            Some(LinkRate::Steps { initial: initial?, changes: changes? })
        }
        [false, true, false] | [false, false, true] => {
            if let Some(entry) = section.entry("steps") {
                let path = section.path_of("steps");
                cx.sink.error(entry.key_span, path, "a trace says it all: it takes no `steps`");
            }
            let times = if sources[1] {
                section.read("trace", cx, trace_file)
            } else {
                section.read("trace_ms", cx, trace_times)
            };
            times.map(LinkRate::Trace)
        }
        [false, false, false] => {
            let message = format!("[{}] gives no rate", at.path);
            let problem = cx.sink.missing(at.node.span, at.path, message);
            problem
                .help("write `initial = \"10 Mbit/s\"`, `trace = \"file\"` or `trace_ms = [...]`");
            None
        }
        _ => {
            let message = "a rate is given by one of `initial`, `trace` and `trace_ms`";
            cx.sink.error(at.node.span, at.path, message);
            None
        }
    }
}

/// A trace from a file.
pub(crate) fn trace_file(at: At<'_>, cx: &mut Context<'_>) -> Option<Vec<u64>> {
    let name = at.plain::<String>(cx)?;
    if !cx.traces.contains_key(&name) {
        let trace = (cx.files)(&name).and_then(|text| parse_trace(&text));
        cx.traces.insert(name.clone(), trace);
    }
    match cx.traces.get(&name)? {
        Ok(times) => Some(times.clone()),
        Err(why) => {
            let message = format!("the trace `{name}` can't be used: {why}");
            cx.sink.error(at.node.span, at.path, message);
            None
        }
    }
}

/// A trace in the file itself.
fn trace_times(at: At<'_>, cx: &mut Context<'_>) -> Option<Vec<u64>> {
    let Item::Array(list) = &at.node.item else {
        at.wrong_kind("a list of milliseconds", cx);
        return None;
    };
    let mut times = Vec::with_capacity(list.len());
    for node in list {
        times.push(At { node, path: at.path }.plain::<u64>(cx)?);
    }
    if let Err(why) = check_trace(&times) {
        cx.sink.error(at.node.span, at.path, format!("this trace can't be used: {why}"));
        return None;
    }
    Some(times)
}

/// One whole number of milliseconds a line, as mm-link reads it.
fn parse_trace(text: &str) -> Result<Vec<u64>, String> {
    let mut times = Vec::new();
    for (i, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let time = line.trim().parse::<u64>();
        times.push(time.map_err(|_| {
            let start: String = line.chars().take(20).collect();
            format!("its line {} is not a whole number of milliseconds: `{start}`", i + 1)
        })?);
    }
    check_trace(&times)?;
    Ok(times)
}

fn check_trace(times: &[u64]) -> Result<(), String> {
    // The longest time that nanoseconds can hold.
    const LAST: u64 = u64::MAX / 1_000_000;
    if let Some(i) = times.windows(2).position(|pair| pair[0] > pair[1]) {
        return Err(format!(
            "its times must not decrease, and {} follows {}",
            times[i + 1],
            times[i]
        ));
    }
    match times.last() {
        None => Err("it is empty".to_owned()),
        Some(0) => Err("it lasts 0 ms, and would repeat without end".to_owned()),
        Some(&last) if last > LAST => Err(format!("{last} ms is too large for a time")),
        Some(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_has_one_millisecond_a_line_in_order() {
        assert_eq!(parse_trace("0\n4\n4\n\n9\n"), Ok(vec![0, 4, 4, 9]));
        assert!(parse_trace("1\nx\n").unwrap_err().contains("line 2"));
        assert!(parse_trace("5\n4\n").unwrap_err().contains("4 follows 5"));
        assert!(parse_trace("\n").unwrap_err().contains("empty"));
        assert!(parse_trace("0\n0\n").unwrap_err().contains("without end"));
    }
}
