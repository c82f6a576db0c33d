//! CSV files of measured values that a scenario names, converted to inline values, and source files
//! of parts. Their errors quote nothing: a file named by mistake may be secret.

use std::borrow::Cow;

use cwnd_apps::{RecordedArrival, RecordedArrivals};
use cwnd_quantity::dist::{Shape, Table};
use cwnd_quantity::{
    Bytes, Duration, DurationDist, ParseError, SizeDist, Time, parse_bytes, parse_duration,
};
use cwnd_schema::file::{Context, EXTENSIONS};
use cwnd_schema::{Value, ValueType};

use crate::headers::with_headers;

/// Accepted names of the probability column of a cumulative distribution, in lower case.
const PROBABILITY: [&str; 3] = ["probability", "percent", "cdf"];
/// Key in place of a unit for tables of arrivals.
const ROWS: &str = "rows";
/// Ends of the names of source files.
const SOURCES: [&str; 2] = [".py", C];
/// End of the names of those that include headers.
const C: &str = ".c";
/// Prefix of a distribution that names a file.
const CDF: &str = "cdf(";

/// Returns a value with its files inlined, so that resolved files need none: `"sizes.csv"` and
/// `"cdf(sizes.csv)"` become `"cdf(40 B: 0, …)"`, a file of arrivals becomes its rows, and the text
/// of a source file is added below its name.
pub(crate) fn inlined<'v>(
    value: &'v Value,
    kind: ValueType,
    cx: &mut Context<'_>,
) -> Result<Cow<'v, Value>, String> {
    let unit = match kind {
        ValueType::SizeDist => "B",
        ValueType::DurationDist | ValueType::Optional(ValueType::DurationDist) => "ns",
        ValueType::Arrivals => ROWS,
        ValueType::SourceFile => return with_source(value, cx),
        _ => return Ok(Cow::Borrowed(value)),
    };
    let Value::Text(text) = value else { return Ok(Cow::Borrowed(value)) };
    let is_file = |name: &str| EXTENSIONS.iter().any(|extension| name.ends_with(extension));
    if !text.contains('(') && !is_file(text.trim()) {
        return Ok(Cow::Borrowed(value));
    }
    let mut read = |name: &str| -> Result<String, String> {
        let read = |text: &str| {
            if unit == ROWS { recorded(text) } else { distribution(text, unit) }
        };
        let found = cx.content(name, unit, read).map(|text| text.as_ref().clone());
        found.map_err(|why| format!("`{name}` can't be used: {why}"))
    };
    if !text.contains('(') {
        return read(text.trim()).map(|found| Cow::Owned(Value::Text(found)));
    }
    let (mut rest, mut out) = (text.as_str(), String::new());
    while let Some((before, after)) = rest.split_once(CDF) {
        out.push_str(before);
        match after.split_once(')') {
            Some((name, behind)) if is_file(name.trim()) => {
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

/// Returns the name of a source file with its text below it; a text below the name stays.
fn with_source<'v>(value: &'v Value, cx: &mut Context<'_>) -> Result<Cow<'v, Value>, String> {
    let Value::Text(name) = value else { return Ok(Cow::Borrowed(value)) };
    if name.contains('\n') {
        return Ok(Cow::Borrowed(value));
    }
    // Any other file may be secret, and its text would be part of results.
    if !SOURCES.iter().any(|end| name.ends_with(end)) {
        let ends = SOURCES.join(" or ");
        return Err(format!("`{name}` is no source file, whose name ends in {ends}"));
    }
    let found = cx.content(name, "source file", |text| Ok(text.to_owned()));
    let mut text = found.map_err(|why| format!("`{name}` can't be used: {why}"))?;
    if name.ends_with(C) {
        text = with_headers(name, &text, cx)?.into();
    }
    Ok(Cow::Owned(Value::Text(format!("{name}\n{text}"))))
}

/// Parser of a quantity to a whole number of bytes or nanoseconds.
type Read = fn(&str) -> Result<u64, ParseError>;

/// Converts a cumulative distribution to `cdf(…)`: values in the first column, the probability of
/// at most this value in the last.
///
/// A third column between the two is skipped, as in the files of ns-2. The header's first name is
/// the unit of the values or ends in it, as `size_kB`. Without a header, sizes are in bytes and
/// times are refused. Probabilities are in per cent if the last one is nearer to 100 than to 1.
fn distribution(text: &str, unit: &str) -> Result<String, String> {
    let table = Columns::read(text)?;
    let (read, what, plain): (Read, _, _) = match unit {
        "B" => (|text| parse_bytes(text).map(|bytes| bytes.0), "size", Some("B")),
        _ => (|text| parse_duration(text).map(|span| span.0), "time", None),
    };
    let example = if plain.is_some() { "bytes,probability" } else { "ms,probability" };
    let expected = |found: String| {
        format!(
            "{found}; expected are values and their cumulative probability under a header such as \
             `{example}`, with a count between them or without"
        )
    };
    let (last, names) = (table.width - 1, table.names());
    if !(1..=2).contains(&last) {
        let of = table.width;
        return Err(expected(format!("it has {of} column{}", if of == 1 { "" } else { "s" })));
    }
    if names.last().is_some_and(|name| !PROBABILITY.contains(&&*name.to_lowercase())) {
        return Err(expected(table.header_error().to_owned()));
    }
    let unit = match (&table.header, plain) {
        // A name may carry its unit at the end, as in `size_bytes`.
        (Some(header), _) => {
            let unit = names[0].rsplit('_').next().unwrap_or_default();
            let why = format_args!("its name ends in no unit of {what}");
            let no_unit = |_| expected(header.error_at(0, why));
            read(&format!("1 {unit}")).map_err(no_unit)?;
            unit
        }
        (None, Some(unit)) => unit,
        (None, None) => {
            return Err(expected(format!("its line {} names no unit", table.first.line)));
        }
    };
    let mut points = Vec::with_capacity(table.length);
    for row in table.rows() {
        let quantity = format!("{} {unit}", row.cell(0));
        let value = read(&quantity).map_err(|_| row.error_at(0, format_args!("no {what}")))?;
        points.push((value, row.number(last, "probability")?));
    }
    let whole = points.last().map_or(1.0, |(_, p)| *p);
    let per_cent = (whole - 100.0).abs() < (whole - 1.0).abs();
    let (divisor, divided) = if per_cent { (100.0, "; these are in per cent") } else { (1.0, "") };
    points.iter_mut().for_each(|(_, p)| *p /= divisor);
    let found = Table::new(points.clone()).map_err(|(i, why)| {
        let value_falls = i > 0 && points[i].0 < points[i - 1].0;
        let row = table.rows().nth(i).unwrap_or(table.first);
        row.error_at(if value_falls { 0 } else { last }, format!("{why}{divided}"))
    })?;
    let shape = Shape::Table(found.into());
    Ok(match plain {
        Some(_) => SizeDist(shape).to_string(),
        None => DurationDist(shape).to_string(),
    })
}

/// Reads recorded delays: the column `time_s`, in increasing order, and `added_ms` or another unit.
pub(crate) fn delays(text: &str) -> Result<Vec<(Time, Duration)>, String> {
    let table = Columns::read(text)?;
    let names = table.names();
    let unit = match names[..] {
        ["time_s", added] => added.strip_prefix("added_"),
        _ => None,
    };
    let unit =
        unit.ok_or_else(|| format!("{}; expected are `time_s,added_ms`", table.header_error()))?;
    let mut steps: Vec<(Time, Duration)> = Vec::with_capacity(table.length);
    for row in table.rows() {
        let read = |column: usize, unit: &str| {
            let quantity = format!("{} {unit}", row.cell(column));
            parse_duration(&quantity).map_err(|_| row.error_at(column, "no time"))
        };
        let (at, added) = (Time(read(0, "s")?.0), read(1, unit)?);
        if steps.last().is_some_and(|(before, _)| *before >= at) {
            return Err(format!("its line {} is no later than the one before it", row.line));
        }
        steps.push((at, added));
    }
    Ok(steps)
}

/// Converts recorded arrivals: the column `time_s`, and optionally `server`, `client` and
/// `size_bytes`.
fn recorded(text: &str) -> Result<String, String> {
    const COLUMNS: [&str; 4] = ["time_s", "server", "client", "size_bytes"];
    let table = Columns::read(text)?;
    let names = table.names();
    let unknown = names.iter().any(|name| !COLUMNS.contains(name));
    if unknown || !names.contains(&COLUMNS[0]) {
        let expected = "`time_s` and, where they are known, `server`, `client` and `size_bytes`";
        return Err(format!("{}; expected are {expected}", table.header_error()));
    }
    let column_of = |name: &str| names.iter().position(|other| *other == name);
    let columns = COLUMNS.map(column_of);
    let mut arrivals = Vec::with_capacity(table.length);
    for row in table.rows() {
        let cell = |i: usize| {
            let column = columns[i]?;
            Some((column, row.cell(column))).filter(|(_, text)| !text.is_empty())
        };
        let name = |i: usize| match cell(i) {
            Some((column, name)) if name.contains(';') => {
                Err(row.error_at(column, "a name with a semicolon"))
            }
            name => Ok(name.map(|(_, name)| name.to_owned())),
        };
        let (column, time) = cell(0).unwrap_or_default();
        let at = parse_duration(&format!("{time} s"))
            .map_err(|_| row.error_at(column, "no number of seconds from 0"))?;
        let size = cell(3).map(|(column, bytes)| match parse_bytes(&format!("{bytes} B")) {
            Ok(Bytes(0)) => Err(row.error_at(column, "a transfer of 0 bytes sends nothing")),
            read => read.map_err(|_| row.error_at(column, "no number of bytes")),
        });
        let (server, client) = (name(1)?, name(2)?);
        arrivals.push(RecordedArrival { at, server, client, size: size.transpose()? });
    }
    Ok(RecordedArrivals::new(arrivals).to_string())
}

/// A table; all rows have the same number of cells. It stores no cells: each pass over its rows
/// splits the lines again.
#[derive(Debug)]
pub(crate) struct Columns<'t> {
    text: &'t str,
    /// The header row; `None` if the first row begins with a number.
    pub header: Option<Row<'t>>,
    /// The first row below the header.
    pub first: Row<'t>,
    /// Number of rows, without the header.
    pub length: usize,
    /// Number of cells in each row.
    pub width: usize,
}

/// A line of a table with its line number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row<'t> {
    pub line: usize,
    text: &'t str,
}

impl<'t> Columns<'t> {
    /// Parses a table; empty lines and those that begin with `#` are skipped. Fails without a row
    /// below the header, or if rows differ in their number of cells.
    pub fn read(text: &'t str) -> Result<Self, String> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let Some(top) = data_lines(text).next() else { return Err("it is empty".to_owned()) };
        let width = top.cells().count();
        let mut length = 0;
        for row in data_lines(text) {
            let found = row.cells().count();
            if found != width {
                let (line, before) = (row.line, top.line);
                return Err(format!(
                    "its line {line} has another number of columns ({found}) than its line \
                     {before} ({width})"
                ));
            }
            length += 1;
        }
        let header = top.cell(0).parse::<f64>().is_err().then_some(top);
        let skipped = usize::from(header.is_some());
        let Some(first) = data_lines(text).nth(skipped) else {
            return Err("it has a header and no rows".to_owned());
        };
        Ok(Self { text, header, first, length: length - skipped, width })
    }

    /// Iterates over the rows below the header.
    pub fn rows(&self) -> impl Iterator<Item = Row<'t>> {
        data_lines(self.text).skip(usize::from(self.header.is_some()))
    }

    /// Returns the column names; empty without a header.
    pub fn names(&self) -> Vec<&'t str> {
        self.header.map_or_else(Vec::new, |row| row.cells().collect())
    }

    /// Describes a wrong header, for an error.
    pub const fn header_error(&self) -> &'static str {
        match self.header {
            Some(_) => "its header has other columns",
            None => "it has no header",
        }
    }
}

/// Iterates over the lines that have cells.
fn data_lines(text: &str) -> impl Iterator<Item = Row<'_>> {
    let lines = text.lines().map(str::trim).enumerate();
    let data = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    data.map(|(i, text)| Row { line: i + 1, text })
}

impl<'t> Row<'t> {
    /// Iterates over its cells, without quotes and surrounding blanks.
    fn cells(self) -> impl Iterator<Item = &'t str> {
        let commas = self.text.contains(',');
        let ends = move |c: char| if commas { c == ',' } else { c.is_whitespace() };
        let cells = self.text.split(ends).map(str::trim);
        cells.filter(move |cell| commas || !cell.is_empty()).map(|cell| cell.trim_matches('"'))
    }

    /// Returns the cell of a column; empty if the row is shorter.
    pub fn cell(self, column: usize) -> &'t str {
        self.cells().nth(column).unwrap_or_default()
    }

    /// Returns an error message for one of its cells.
    pub fn error_at(self, column: usize, why: impl core::fmt::Display) -> String {
        format!("its line {}, column {}: {why}", self.line, column + 1)
    }

    /// Parses a finite number; `what` names the quantity in errors.
    pub fn number(self, column: usize, what: &str) -> Result<f64, String> {
        let number = self.cell(column).parse().ok().filter(|x: &f64| x.is_finite());
        number.ok_or_else(|| self.error_at(column, format_args!("no {what}")))
    }
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
    fn cells_stand_between_commas_tabs_or_blanks_with_a_header_or_without() {
        let expected = "cdf(40 B: 0, 1 kB: 0.5, 10 kB: 1)";
        let same = [
            "40 0\n1000  0.5\n10000 1\n",
            "40\t0\r\n1000\t0.5\r\n\r\n10000\t1",
            "\u{feff}40, 0\n1000, 0.5\n10000, 1\n",
            "\"size_kB\" \"cdf\"\n0.04 0\n1 0.5\n10 1\n",
            // ns-2: value, number of values up to it, cumulative probability.
            "40 1 0\n1000 7 0.5\n10000 9 1.0\n",
            "bytes count probability\n40 1 0\n1000 7 0.5\n10000 9 1.0\n",
        ];
        same.iter().for_each(|text| assert_eq!(sizes(text).unwrap(), expected, "{text}"));
    }

    #[test]
    fn probabilities_are_in_per_cent_if_the_last_is_100() {
        let found = sizes("bytes,probability\n0,0\n5000,20\n20000000,100\n").unwrap();
        assert_eq!(found, "cdf(0 B: 0, 5 kB: 0.2, 20 MB: 1)");
        let falls = sizes("0 0\n5 20\n9 10\n20 100\n").unwrap_err();
        assert!(falls.ends_with("must not fall from one point to the next; these are in per cent"));
    }

    #[test]
    fn what_is_wrong_with_a_file_names_its_line() {
        let why = |text: &str| sizes(text).unwrap_err();
        let (first, second) = ("line 3, column 1: ", "line 3, column 2: ");
        assert!(why("bytes,probability\n1,0.5\nx,1\n").contains(first));
        assert!(
            why("bytes,probability\n1,0.5\n2,half\n").contains(&format!("{second}no probability"))
        );
        let falls = why("bytes,probability\n1,0.5\n2,0.4\n3,1\n");
        assert!(falls.contains(&format!("{second}a cumulative")), "{falls}");
        assert!(why("bytes,probability\n1,0.5\n2\n").contains("line 3 has another number"));
        assert!(why("1 0.5\n2 0.9\n").contains("line 2, column 2: the last probability must be 1"));
        assert!(why("1 0\n2 99\n").ends_with("must be 1; these are in per cent"));
        assert!(why("2 0.5\n1 1\n").contains("line 2, column 1: the values must not fall"));
        let beyond = why("1 0.5\n2 1.0000001\n");
        assert!(beyond.ends_with("a probability lies between 0 and 1"));
        assert!(why("1 50\n2 100.5\n").ends_with("between 0 and 1; these are in per cent"));
        assert!(why("bytes,probability\n").contains("no rows"));
        assert!(why("# nothing\n\n").contains("it is empty"));
        assert!(
            why("ms,probability\n1,1\n").contains("line 1, column 1: its name ends in no unit")
        );
        assert!(why("bytes\n1\n").contains("it has 1 column;"));
        assert!(why("1 2 3 1\n").contains("it has 4 columns;"));
        assert!(why("bytes,share\n1,1\n").contains("its header has other columns; expected are"));
        let unnamed = distribution("1 0.5\n2 1\n", "ns").unwrap_err();
        assert!(unnamed.contains("line 1 names no unit"), "{unnamed}");
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
        assert!(why("time_s,rtt_ms\n0,1\n").contains("its header has other columns"));
        assert!(why("time_s,added_ms,x\n0,1,1\n").contains("its header has other columns"));
        assert!(why("time_s,added_ms\n").contains("no rows"));
        assert_eq!(why("0 1.5\n0.02 30\n"), "it has no header; expected are `time_s,added_ms`");
    }

    #[test]
    fn recorded_arrivals_are_put_in_order_and_errors_name_the_line() {
        let found = recorded("time_s,size_bytes,server,client\n1.5,2000,a,b\n0.25,,a,\n").unwrap();
        assert_eq!(found, "250 ms, a; 1.5 s, a, b, 2 kB");
        let why = |text: &str| recorded(text).unwrap_err();
        assert!(why("time_s\n1\nx\n").contains("line 3"));
        assert!(why("time_s\n-1\n").contains("line 2, column 1: no number of seconds from 0"));
        assert!(
            why("time_s,size_bytes\n1,0\n").contains("line 2, column 2: a transfer of 0 bytes")
        );
        assert!(
            why("time_s,server\n1,a;b\n").contains("line 2, column 2: a name with a semicolon")
        );
        assert!(why("time_s,from\n1,a\n").contains("other columns; expected are `time_s`"));
        assert!(why("server\na\n").contains("other columns; expected are `time_s`"));
        assert!(why("time_s\n").contains("no rows"));
        let expected = "it has no header; expected are `time_s` and, ";
        assert!(why("1.5 2000\n").starts_with(expected));
    }

    #[test]
    fn errors_show_nothing_of_a_file_that_is_not_the_one_that_was_meant() {
        for text in [
            "SECRET:x:1\n",
            "SECRET,x\n1,2\n",
            "1 SECRET\n",
            "time_s\nSECRET\n",
            "time_s,added_ms\n1,SECRET\n",
            "bytes,probability\nSECRET,1\n",
            "SECRET\n1\n",
            "time_s,size_bytes\n1,SECRET\n",
            "x_SECRET,probability\n1,1\n",
            "0 1\n1 SECRET\n",
        ] {
            let of_trace = crate::link_rate::parse_trace(text).err();
            let told = [sizes(text).err(), delays(text).err(), recorded(text).err(), of_trace];
            assert!(told.iter().flatten().all(|why| !why.contains("SECRET")), "{told:?}");
            assert!(told.iter().flatten().count() >= 3, "{text}: {told:?}");
        }
    }

    #[test]
    fn files_are_found_wherever_a_distribution_names_them() {
        let files = |name: &str| match name {
            "a.csv" => Ok("bytes,probability\n5,1\n".to_owned()),
            other => Err(format!("there is no {other}")),
        };
        let mut cx = Context::new(&files, inlined);
        let mut inline = |text: &str| {
            let value = Value::Text(text.to_owned());
            let found = inlined(&value, ValueType::SizeDist, &mut cx)?;
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
