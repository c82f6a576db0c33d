//! Files of measured values that a scenario names: CSV, read into what the scenario could have said itself.

use std::borrow::Cow;
use std::collections::BTreeMap;

use cwnd_apps::{Listed, Rows};
use cwnd_units::dist::{Shape, Table};
use cwnd_units::{
    Bytes, Duration, DurationDist, Kind, ParseError, SizeDist, Time, Value, parse_bytes,
    parse_duration,
};

/// Tables read so far, as what they become in the scenario; one that can't be read is remembered as its error.
pub(crate) type Tables = BTreeMap<(String, &'static str), Result<String, String>>;

/// Recorded delays, in order of time, or why they can't be used.
pub(crate) type Recorded = Result<Vec<(Time, Duration)>, String>;

/// What a file name of a table ends with.
const EXTENSION: &str = ".csv";
/// Stands in the place of a unit where a table has arrivals.
const ROWS: &str = "rows";
/// Where a distribution names a file.
const CDF: &str = "cdf(";

/// A value with its files read into it, so that what is resolved needs none: `"sizes.csv"` and `"cdf(sizes.csv)"` become
/// `"cdf(40 B: 0, …)"`.
pub(crate) fn inlined<'v>(
    value: &'v Value,
    kind: Kind,
    files: &dyn Fn(&str) -> Result<String, String>,
    tables: &mut Tables,
) -> Result<Cow<'v, Value>, String> {
    let unit = match kind {
        Kind::SizeDist => "B",
        Kind::DurationDist | Kind::OptionalDurationDist => "ns",
        Kind::Arrivals => ROWS,
        _ => return Ok(Cow::Borrowed(value)),
    };
    let Value::Text(text) = value else { return Ok(Cow::Borrowed(value)) };
    if !text.contains(EXTENSION) {
        return Ok(Cow::Borrowed(value));
    }
    let mut read = |name: &str| -> Result<String, String> {
        let key = (name.to_owned(), unit);
        let known = tables.entry(key).or_insert_with(|| {
            let text = files(name)?;
            if unit == ROWS { recorded(&text) } else { distribution(&text, unit) }
        });
        known.clone().map_err(|why| format!("`{name}` can't be used: {why}"))
    };
    if !text.contains('(') {
        return read(text.trim()).map(|found| Cow::Owned(Value::Text(found)));
    }
    let (mut rest, mut out) = (text.as_str(), String::new());
    while let Some((before, after)) = rest.split_once(CDF) {
        out.push_str(before);
        match after.split_once(')') {
            Some((name, behind)) if name.trim().ends_with(EXTENSION) => {
                out.push_str(&read(name.trim())?);
                rest = behind;
            }
            _ => {
                out.push_str(CDF);
                rest = after;
            }
        }
    }
    out.push_str(rest);
    Ok(Cow::Owned(Value::Text(out)))
}

/// A cumulative distribution: its first column has values in the unit that names it, the second the probability of no more.
fn distribution(text: &str, unit: &str) -> Result<String, String> {
    let (mut points, mut lines) = (Vec::new(), Vec::new());
    let column = rows(text, |header, line, cells| {
        let (Some(value), Some(p)) = (cells.first(), cells.get(1)) else { return Ok(()) };
        if cells.len() != 2 || header.get(1).is_none_or(|name| name != "probability") {
            return Err("two columns are expected, such as `bytes,probability`".to_owned());
        }
        let quantity = format!("{value} {}", header[0]);
        let read = match unit {
            "B" => parse_bytes(&quantity).map(|bytes| bytes.0),
            _ => parse_duration(&quantity).map(|span| span.0),
        };
        let value = read.map_err(|e| format!("its line {line}: {e}"))?;
        let p = p.parse().map_err(|_| format!("its line {line}: `{p}` is no probability"))?;
        points.push((value, p));
        lines.push(line);
        Ok(())
    });
    column?;
    let table = Table::new(points).map_err(|(i, why)| match lines.get(i) {
        Some(line) => format!("its line {line}: {why}"),
        None => "it has a header and no rows".to_owned(),
    })?;
    let shape = Shape::Table(table.into());
    Ok(match unit {
        "B" => SizeDist(shape).to_string(),
        _ => DurationDist(shape).to_string(),
    })
}

/// Recorded delays: the column `time_s`, and `added_ms`, or another unit.
pub(crate) fn delays(text: &str) -> Recorded {
    let mut steps: Vec<(Time, Duration)> = Vec::new();
    rows(text, |header, line, cells| {
        let [time, added] = cells else {
            return Err(format!("its columns are `{}`", header.join(",")));
        };
        let unit = header[1].strip_prefix("added_").filter(|_| header[0] == "time_s");
        let unit = unit.ok_or_else(|| format!("its columns are `{}`", header.join(",")))?;
        let read = |value: &str, unit: &str| {
            let wrong = |e| format!("its line {line}: {e}");
            parse_duration(&format!("{value} {unit}")).map_err(wrong)
        };
        let (at, added) = (Time(read(time, "s")?.0), read(added, unit)?);
        if steps.last().is_some_and(|(before, _)| *before >= at) {
            return Err(format!("its line {line} is no later than the one before it"));
        }
        steps.push((at, added));
        Ok(())
    })?;
    if steps.is_empty() { Err("it has no rows".to_owned()) } else { Ok(steps) }
}

/// Recorded arrivals: the column `time_s`, and perhaps `server`, `client` and `size_bytes`.
fn recorded(text: &str) -> Result<String, String> {
    const COLUMNS: [&str; 4] = ["time_s", "server", "client", "size_bytes"];
    let mut listed = Vec::new();
    rows(text, |header, line, cells| {
        let unknown = header.iter().find(|name| !COLUMNS.contains(&name.as_str()));
        if unknown.is_some() || !header.iter().any(|name| name == COLUMNS[0]) {
            return Err(format!(
                "its columns are `time_s` and, where they are known, `server`, `client` and `size_bytes`, not `{}`",
                header.join(",")
            ));
        }
        let cell = |column: &str| {
            let i = header.iter().position(|name| name == column)?;
            cells.get(i).copied().filter(|text| !text.is_empty())
        };
        let wrong = |e: ParseError| format!("its line {line}: {e}");
        let name = |column: &str| match cell(column) {
            Some(name) if name.contains([',', ';']) => {
                Err(format!("its line {line}: the name `{name}` has a comma or a semicolon"))
            }
            name => Ok(name.map(str::to_owned)),
        };
        let at = parse_duration(&format!("{} s", cell(COLUMNS[0]).unwrap_or_default()));
        let size = cell(COLUMNS[3]).map(|bytes| parse_bytes(&format!("{bytes} B"))).transpose();
        let size = size.map_err(wrong)?;
        if size == Some(Bytes(0)) {
            return Err(format!("its line {line}: a transfer of 0 bytes sends nothing"));
        }
        let (server, client) = (name(COLUMNS[1])?, name(COLUMNS[2])?);
        listed.push(Listed { at: at.map_err(wrong)?, server, client, size });
        Ok(())
    })?;
    if listed.is_empty() {
        return Err("it has no rows".to_owned());
    }
    Ok(Rows::new(listed).to_string())
}

/// Hands on each row with the names of the columns and its line; a line that begins with `#` is a remark.
fn rows(
    text: &str,
    mut each: impl FnMut(&[String], u64, &[&str]) -> Result<(), String>,
) -> Result<(), String> {
    let mut reader = csv::ReaderBuilder::new()
        .trim(csv::Trim::All)
        .comment(Some(b'#'))
        .from_reader(text.as_bytes());
    let wrong = |e: csv::Error| match e.position() {
        Some(at) => format!("its line {} has another number of columns than its first", at.line()),
        None => e.to_string(),
    };
    let header: Vec<String> = reader.headers().map_err(wrong)?.iter().map(str::to_owned).collect();
    for record in reader.records() {
        let record = record.map_err(wrong)?;
        let line = record.position().map_or(0, csv::Position::line);
        each(&header, line, &record.iter().collect::<Vec<_>>())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(text: &str) -> Result<String, String> {
        distribution(text, "B")
    }

    #[test]
    fn a_file_becomes_the_points_that_it_has() {
        let found = sizes("# measured\nkB, probability\n0.04, 0\n 1 ,0.5\n10,1\n").unwrap();
        assert_eq!(found, "cdf(40 B: 0, 1 kB: 0.5, 10 kB: 1)");
        assert_eq!(
            distribution("ms,probability\n1,0.5\n2,1\n", "ns").unwrap(),
            "cdf(1 ms: 0.5, 2 ms: 1)"
        );
    }

    #[test]
    fn what_is_wrong_with_a_file_names_its_line() {
        let why = |text: &str| sizes(text).unwrap_err();
        assert!(why("bytes,probability\n1,0.5\nx,1\n").contains("line 3"));
        assert!(why("bytes,probability\n1,0.5\n2,half\n").contains("line 3: `half`"));
        assert!(why("bytes,probability\n1,0.5\n2,0.4\n3,1\n").contains("line 3: a cumulative"));
        assert!(why("bytes,probability\n1,0.5\n2\n").contains("line 3 has another number"));
        assert!(why("bytes,probability\n1,0.5\n").contains("line 2: the last probability"));
        assert!(why("bytes,probability\n").contains("no rows"));
        assert!(why("").contains("no rows"));
        assert!(why("ms,probability\n1,1\n").contains("unknown unit `ms`"));
        assert!(why("bytes\n1\n").contains("no rows") || why("bytes\n1\n").contains("columns"));
        assert!(why("bytes,share\n1,1\n").contains("`bytes,probability`"));
    }

    #[test]
    fn recorded_delays_are_steps_and_errors_name_the_line() {
        let ms = Duration::from_millis;
        let found = delays("# ping\ntime_s,added_ms\n0,1.5\n0.02, 30\n").unwrap();
        assert_eq!(found, [(Time(0), Duration(1_500_000)), (Time(20_000_000), ms(30))]);
        assert_eq!(delays("time_s,added_us\n1,7\n").unwrap()[0].1, Duration(7_000));
        let why = |text: &str| delays(text).unwrap_err();
        assert!(why("time_s,added_ms\n0,1\n0,2\n").contains("line 3 is no later"));
        assert!(why("time_s,added_ms\n0,-1\n").contains("line 2"));
        assert!(why("time_s,added_ms\n0,x\n").contains("line 2"));
        assert!(why("time_s,rtt_ms\n0,1\n").contains("`time_s,rtt_ms`"));
        assert!(why("time_s,added_ms,x\n0,1,1\n").contains("`time_s,added_ms,x`"));
        assert!(why("time_s,added_ms\n").contains("no rows"));
    }

    #[test]
    fn recorded_arrivals_are_put_in_order_and_errors_name_the_line() {
        let found = recorded("time_s,size_bytes,server,client\n1.5,2000,a,b\n0.25,,a,\n").unwrap();
        assert_eq!(found, "250 ms, a; 1.5 s, a, b, 2 kB");
        let why = |text: &str| recorded(text).unwrap_err();
        assert!(why("time_s\n1\nx\n").contains("line 3"));
        assert!(why("time_s\n-1\n").contains("line 2: a time can't be negative"));
        assert!(why("time_s,size_bytes\n1,0\n").contains("line 2: a transfer of 0 bytes"));
        assert!(why("time_s,server\n1,a;b\n").contains("line 2: the name `a;b`"));
        assert!(why("time_s,from\n1,a\n").contains("not `time_s,from`"));
        assert!(why("server\na\n").contains("not `server`"));
        assert!(why("time_s\n").contains("no rows"));
    }

    #[test]
    fn files_are_found_wherever_a_distribution_names_them() {
        let files = |name: &str| match name {
            "a.csv" => Ok("bytes,probability\n5,1\n".to_owned()),
            other => Err(format!("there is no {other}")),
        };
        let mut tables = Tables::new();
        let mut inline = |text: &str| {
            let value = Value::Text(text.to_owned());
            let found = inlined(&value, Kind::SizeDist, &files, &mut tables)?;
            let Value::Text(found) = found.into_owned() else { panic!("a text") };
            Ok::<String, String>(found)
        };
        assert_eq!(inline("a.csv").unwrap(), "cdf(5 B: 1)");
        assert_eq!(
            inline("mix(0.5 cdf(a.csv), 0.5 min(cdf(1 kB: 1), 2 B))").unwrap(),
            "mix(0.5 cdf(5 B: 1), 0.5 min(cdf(1 kB: 1), 2 B))"
        );
        assert!(inline("cdf(b.csv)").unwrap_err().contains("`b.csv` can't be used: there is no"));
        assert_eq!(inline("pareto(2, 1 kB)").unwrap(), "pareto(2, 1 kB)");
    }
}
