//! The rate of a link: unlimited, `"10 Mbit/s"`, in steps, or a trace.

use cwnd_quantity::{Duration, Rate, Time};
use cwnd_schema::SectionKeys;
use cwnd_schema::file::{
    At, Context, Item, ReadValue, Section, SectionKeys as _, WriteValue, WrittenValue, inline,
    plain, tables,
};

use crate::data_files::Columns;
use crate::value_forms::{self, Format, RateStep, rate_steps};

/// Rate of a link.
#[derive(Clone, Debug, PartialEq)]
pub enum LinkRate {
    /// No serialization and no queue: a pure delay.
    Unlimited,
    /// A constant rate, or rates that change in steps.
    Steps {
        /// Rate at the start.
        initial: Rate,
        /// Later rates, sorted by time.
        changes: Vec<(Time, Rate)>,
        /// Time after which the rates repeat, later than the last change; `None` if they never do.
        period: Option<Duration>,
    },
    /// A mahimahi trace: at each of these milliseconds 1500 bytes may pass; it repeats after the
    /// last. Not empty, sorted.
    Trace(Vec<u64>),
}

impl LinkRate {
    /// Creates a rate that never changes.
    #[must_use]
    pub const fn constant(rate: Rate) -> Self {
        Self::steps(rate, Vec::new())
    }

    /// Creates a rate with changes that do not repeat.
    #[must_use]
    pub const fn steps(initial: Rate, changes: Vec<(Time, Rate)>) -> Self {
        Self::Steps { initial, changes, period: None }
    }

    /// Mean rate over a run of this length, bit/s; for a trace, over its period. `None` if
    /// unlimited.
    #[must_use]
    pub fn mean_bit_s(&self, duration: Duration) -> Option<f64> {
        match self {
            Self::Steps { initial, .. } if duration == Duration::ZERO => Some(initial.0 as f64),
            Self::Steps { .. } => self.mean_bit_s_between(Time::ZERO, Time(duration.0)),
            Self::Unlimited | Self::Trace(_) => self.highest_bit_s(),
        }
    }

    /// Mean rate of steps between two instants, bit/s. `None` for other rates, or if `to` is not
    /// later than `from`.
    #[must_use]
    pub fn mean_bit_s_between(&self, from: Time, to: Time) -> Option<f64> {
        let Self::Steps { initial, changes, period } = self else { return None };
        // Unit: 10⁻⁹ bit, since times are in nanoseconds.
        let in_one_period = |until: u64| -> u128 {
            let (mut sum, mut rate, mut since) = (0, initial.0, 0);
            for (at, next) in changes {
                let at = at.0.min(until);
                sum += u128::from(rate) * u128::from(at - since);
                (rate, since) = (next.0, at);
            }
            sum + u128::from(rate) * u128::from(until - since)
        };
        let sent = |until: Time| match period {
            None => in_one_period(until.0),
            Some(Duration(period)) => {
                let whole = u128::from(until.0 / period) * in_one_period(*period);
                whole + in_one_period(until.0 % period)
            }
        };
        (from < to).then(|| (sent(to) - sent(from)) as f64 / to.since(from).0 as f64)
    }

    /// Highest rate in bit/s; for a trace, the mean over its period. `None` if unlimited.
    #[must_use]
    pub fn highest_bit_s(&self) -> Option<f64> {
        match self {
            Self::Unlimited => None,
            Self::Steps { initial, changes, .. } => {
                let rates = changes.iter().map(|(_, rate)| rate.0).chain([initial.0]);
                rates.max().map(|rate| rate as f64)
            }
            Self::Trace(at_ms) => {
                let period_s = at_ms.last().copied().unwrap_or(1).max(1) as f64 / 1000.0;
                Some(at_ms.len() as f64 * TRACE_BITS / period_s)
            }
        }
    }
}

/// Bits of one delivery opportunity of a trace.
const TRACE_BITS: f64 = 1500.0 * 8.0;

/// Keys of a rate written as a table.
#[derive(SectionKeys)]
#[section(check = check)]
pub(crate) struct RateTable {
    /// Rate at the start.
    #[derived("required, unless there is a trace", "none")]
    initial: Option<Rate>,
    /// Rate changes in order of time: `[{ at = "10 s", rate = "5 Mbit/s" }]`.
    #[entry(value_forms::STEPS)]
    #[default([], "cwnd: a line that does not change")]
    steps: Vec<(Time, Rate)>,
    /// Period after which `initial` and `steps` repeat; all steps are earlier. Sizes in BDP then
    /// refer to the mean over this time.
    #[default("none", "cwnd: rates that change once")]
    #[bounds(
        above Duration::ZERO;
        "time would never pass, write \"none\" for steps that are taken once"
    )]
    period: Option<Duration>,
    /// File of a trace: mahimahi's format with one millisecond a line, at each of which 1500 bytes
    /// pass, or seconds and Mbit/s on each line.
    #[entry(value_forms::TRACE_FILE)]
    #[derived("none", "mahimahi, mm-link")]
    trace: Option<TraceFile>,
    /// Milliseconds of a mahimahi trace, written in the scenario file; the trace repeats after the
    /// last.
    #[entry(value_forms::TRACE_TIMES)]
    #[derived("none", "mahimahi, mm-link")]
    trace_ms: Option<Vec<u64>>,
}

/// Rate read from a trace file.
pub(crate) struct TraceFile {
    /// Name of the file, relative to the scenario's folder.
    name: String,
    pub rate: LinkRate,
}

/// Reads a rate, or a table of its changes.
impl ReadValue<Format> for LinkRate {
    fn read(at: At<'_>, cx: &mut Context<'_>) -> Option<Self> {
        let Some(table) = at.node.table() else {
            if at.node.text() == Some("none") {
                return Some(Self::Unlimited);
            }
            let initial = at.plain::<Rate>(cx)?;
            return Some(Self::constant(initial));
        };
        let section = Section::new(table, &[RateTable::KEYS], at.path, at.node.span, cx);
        let RateTable { initial, steps: changes, period, trace, trace_ms } =
            RateTable::read(&section, cx)?;
        match (initial, trace, trace_ms) {
            (Some(initial), None, None) => Some(Self::Steps { initial, changes, period }),
            (None, Some(trace), None) => Some(trace.rate),
            (None, None, Some(times)) => Some(Self::Trace(times)),
            _ => None,
        }
    }
}

/// Reports a table that gives no rate or several, steps or a period beside a trace, and a period
/// that has no steps or does not end after the last one.
fn check(found: &PartialRateTable, section: &Section<'_>, cx: &mut Context<'_>) {
    let is_given = |key| section.entry(key).is_some();
    match ["initial", "trace", "trace_ms"].map(is_given) {
        [true, false, false] => {
            if let (Some(changes), Some(Some(period))) = (&found.steps, found.period) {
                repeats(section, changes, period, cx);
            }
        }
        [false, true, false] | [false, false, true] => {
            for key in ["steps", "period"] {
                if let Some(entry) = section.entry(key) {
                    let message = format!("a trace says it all: it takes no `{key}`");
                    cx.sink.error(entry.key_span, section.path_of(key), message);
                }
            }
        }
        [false, false, false] => {
            let message = format!("[{}] gives no rate", section.path);
            let problem = cx.sink.missing(section.at, &section.path, message);
            problem
                .help("write `initial = \"10 Mbit/s\"`, `trace = \"file\"` or `trace_ms = [...]`");
        }
        _ => {
            let message = "a rate is given by one of `initial`, `trace` and `trace_ms`";
            cx.sink.error(section.at, &section.path, message);
        }
    }
}

impl WriteValue<Format> for LinkRate {
    fn write(&self) -> WrittenValue<'_> {
        let nothing = RateTable {
            initial: None,
            steps: Vec::new(),
            period: None,
            trace: None,
            trace_ms: None,
        };
        let table = match self {
            Self::Unlimited => return plain(&None::<Rate>),
            Self::Steps { initial, changes, period } => RateTable {
                initial: Some(*initial),
                steps: changes.clone(),
                period: *period,
                ..nothing
            },
            Self::Trace(times) => RateTable { trace_ms: Some(times.clone()), ..nothing },
        };
        let (has_steps, has_period) = (table.initial.is_some(), table.period.is_some());
        WrittenValue::Line(inline(&table, |key| match key {
            "steps" => has_steps,
            "period" => has_period,
            _ => true,
        }))
    }
}

impl ReadValue<Format> for Vec<(Time, Rate)> {
    fn read(at: At<'_>, cx: &mut Context<'_>) -> Option<Self> {
        rate_steps(at, cx)
    }
}

impl WriteValue<Format> for Vec<(Time, Rate)> {
    fn write(&self) -> WrittenValue<'_> {
        tables(self.iter().map(|(at, rate)| RateStep { at: Duration(at.0), rate: *rate }))
    }
}

/// Reports a period without steps, or one that ends before or at the last step.
fn repeats(
    section: &Section<'_>,
    changes: &[(Time, Rate)],
    period: Duration,
    cx: &mut Context<'_>,
) {
    let (message, help) = match changes.last() {
        None => ("nothing changes, so nothing begins anew".to_owned(), "give `steps`"),
        Some((last, _)) if last.0 >= period.0 => {
            let last = last.since(Time::ZERO);
            let message = format!("the last step is at {last}, which never comes");
            (message, "make `period` longer than that")
        }
        Some(_) => return,
    };
    let (span, path) = (section.span_of("period"), section.path_of("period"));
    cx.sink.error(span, path, message).help(help);
}

/// Reads the trace file of this name.
impl ReadValue<Format> for TraceFile {
    fn read(at: At<'_>, cx: &mut Context<'_>) -> Option<Self> {
        let name = at.plain::<String>(cx)?;
        match cx.content(&name, "trace", parse_trace) {
            Ok(rate) => Some(Self { rate: rate.as_ref().clone(), name }),
            Err(why) => {
                let message = format!("the trace `{name}` can't be used: {why}");
                cx.sink.error(at.node.span, at.path, message);
                None
            }
        }
    }
}

impl WriteValue<Format> for TraceFile {
    fn write(&self) -> WrittenValue<'_> {
        plain(&self.name)
    }
}

/// Reads a trace written as a list of milliseconds.
impl ReadValue<Format> for Vec<u64> {
    fn read(at: At<'_>, cx: &mut Context<'_>) -> Option<Self> {
        let Item::Array(list) = &at.node.item else {
            at.wrong_kind("a list of milliseconds", cx);
            return None;
        };
        let mut times = Self::with_capacity(list.len());
        for node in list {
            times.push(At { node, path: at.path }.plain::<u64>(cx)?);
        }
        if let Err(why) = check_trace(&times) {
            cx.sink.error(at.node.span, at.path, format!("this trace can't be used: {why}"));
            return None;
        }
        Some(times)
    }
}

impl WriteValue<Format> for Vec<u64> {
    fn write(&self) -> WrittenValue<'_> {
        let times: Vec<String> = self.iter().map(u64::to_string).collect();
        WrittenValue::Line(format!("[{}]", times.join(", ")))
    }
}

/// Parses a trace file: one whole number of milliseconds a line, as mm-link reads it, or seconds
/// and Mbit/s.
pub(crate) fn parse_trace(text: &str) -> Result<LinkRate, String> {
    let table = Columns::read(text)?;
    match (table.width, &table.names()[..]) {
        (1, []) => milliseconds(&table).map(LinkRate::Trace),
        (2, []) => recorded(&table),
        (2, [time, rate]) if is_seconds(time) && is_mbit_s(rate) => recorded(&table),
        (_, [.., rate]) if is_bytes(rate) => Err("its last column is in bytes per second; \
             expected are bits: name the column `mbit_s` once its values are Mbit/s"
            .to_owned()),
        (columns, names) => {
            let found = match names {
                [] => format!("it has {columns} columns"),
                _ => table.header_error().to_owned(),
            };
            Err(format!(
                "{found}; expected is one column of whole milliseconds, as mahimahi has it, or \
                 two of seconds and Mbit/s, with the header `time_s,mbit_s` or without"
            ))
        }
    }
}

fn is_seconds(name: &str) -> bool {
    name.ends_with("_s") || ["s", "seconds"].contains(&name)
}

/// `true` if a column is in Mbit/s. The case of the B in Mbps and MBps distinguishes bits and
/// bytes, so it is significant.
fn is_mbit_s(name: &str) -> bool {
    ["mbit_s", "mbit/s", "Mbit_s", "Mbit/s", "Mbps", "mbps"].iter().any(|unit| name.ends_with(unit))
}

/// `true` if a column is in bytes per second.
fn is_bytes(name: &str) -> bool {
    ["Bps", "B/s", "B_s"].iter().any(|unit| name.ends_with(unit))
}

fn milliseconds(table: &Columns<'_>) -> Result<Vec<u64>, String> {
    let mut times = Vec::with_capacity(table.length);
    for row in table.rows() {
        let time = row.cell(0).parse();
        times.push(time.map_err(|_| row.error_at(0, "no whole number of milliseconds"))?);
    }
    check_trace(&times)?;
    Ok(times)
}

/// Converts recorded rates to steps. Times count from the first row. A rate holds until the next
/// row, the last one for as long as the one before it. Then the rates repeat, like a mahimahi
/// trace. An outage becomes [`OUTAGE`].
fn recorded(table: &Columns<'_>) -> Result<LinkRate, String> {
    let mut steps: Vec<(Time, Rate)> = Vec::with_capacity(table.length);
    let began = table.first.number(0, "number of seconds")?;
    for row in table.rows() {
        let at = Time(Duration::from_secs_f64(row.number(0, "number of seconds")? - began).0);
        let mbit_s = row.number(1, "rate in Mbit/s")?;
        let bit_s = mbit_s * 1e6;
        if !(0.0..FASTEST).contains(&bit_s) {
            return Err(row.error_at(1, "no rate in Mbit/s"));
        }
        if steps.last().is_some_and(|(before, _)| *before >= at) {
            return Err(row.error_at(0, "a time must be later than the one before it"));
        }
        steps.push((at, Rate(bit_s as u64).max(OUTAGE)));
    }
    let (_, initial) = steps.remove(0);
    let period = steps.last().map(|(last, _)| {
        let before = steps.len().checked_sub(2).map_or(Time::ZERO, |i| steps[i].0);
        last.since(Time::ZERO) + last.since(before)
    });
    Ok(LinkRate::Steps { initial, changes: steps, period })
}

/// Rate that stands for zero, and for any recorded rate below it. A packet in transmission, and
/// those queued behind it, wait for the next rate unless the outage lasts minutes: 40 bytes take
/// 320 s.
const OUTAGE: Rate = Rate(1);
/// Upper limit of a recorded rate in bit/s, above that of any link.
const FASTEST: f64 = 1e18;

fn check_trace(times: &[u64]) -> Result<(), String> {
    // The longest time that nanoseconds can hold.
    const LAST: u64 = u64::MAX / 1_000_000;
    if let Some(i) = times.windows(2).position(|pair| pair[0] > pair[1]) {
        return Err(format!("its times must not decrease, as they do after value {}", i + 1));
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

    const S: u64 = 1_000_000_000;

    #[test]
    fn the_mean_of_a_rate_that_repeats_is_that_of_the_periods_and_parts_between() {
        let changes = vec![(Time(S), Rate(4000))];
        let once = LinkRate::steps(Rate(8000), changes.clone());
        let again = LinkRate::Steps { initial: Rate(8000), changes, period: Some(Duration(4 * S)) };
        let mean = |rate: &LinkRate, from: u64, to: u64| {
            rate.mean_bit_s_between(Time(from * S), Time(to * S)).unwrap()
        };
        assert_eq!([mean(&once, 0, 4), mean(&again, 0, 4)], [5000.0, 5000.0]);
        assert_eq!([mean(&once, 0, 400), mean(&again, 0, 400)], [4010.0, 5000.0]);
        assert_eq!([mean(&once, 4, 5), mean(&again, 4, 5)], [4000.0, 8000.0]);
        assert_eq!(mean(&again, 3, 6), (4000.0 + 8000.0 + 4000.0) / 3.0);
        assert_eq!(again.mean_bit_s_between(Time(S), Time(S)), None);
    }

    #[test]
    fn a_trace_has_one_millisecond_a_line_in_order() {
        assert_eq!(parse_trace("0\n4\n4\n\n9\n"), Ok(LinkRate::Trace(vec![0, 4, 4, 9])));
        assert!(parse_trace("1\nx\n").unwrap_err().contains("line 2"));
        assert!(parse_trace("5\n4\n").unwrap_err().contains("after value 1"));
        assert!(parse_trace("\n").unwrap_err().contains("empty"));
        assert!(parse_trace("0\n0\n").unwrap_err().contains("without end"));
    }

    #[test]
    fn a_trace_of_seconds_and_rates_repeats_after_its_last_interval() {
        let ms = |n: u64| Time(n * 1_000_000);
        let expected = LinkRate::Steps {
            initial: Rate(4_200_000),
            changes: vec![
                (ms(500), Rate(3_900_000)),
                (ms(1000), Rate(800_000)),
                (ms(1500), Rate(6_000_000)),
            ],
            period: Some(Duration::from_secs(2)),
        };
        for text in [
            "0.5 4.2\n1.0 3.9\n1.5 0.8\n2.0 6.0\n",
            "time_s,throughput_mbps\n0,4.2\n0.5,3.9\n1,0.8\n1.5,6\n",
            "seconds,Mbit/s\n0,4.2\n0.5,3.9\n1,0.8\n1.5,6\n",
            "time_s,rate_Mbps\n0,4.2\n0.5,3.9\n1,0.8\n1.5,6\n",
            "# epoch\n1700000000.5\t4.2\n1700000001\t3.9\n1700000001.5\t0.8\n1700000002\t6",
        ] {
            assert_eq!(parse_trace(text), Ok(expected.clone()), "{text}");
        }
        assert_eq!(parse_trace("7 5\n"), Ok(LinkRate::constant(Rate(5_000_000))));
        let outage = LinkRate::Steps {
            initial: Rate(5_000_000),
            changes: vec![(ms(1000), Rate(1))],
            period: Some(Duration::from_secs(2)),
        };
        assert_eq!(parse_trace("0 5\n1 0\n"), Ok(outage));
    }

    #[test]
    fn what_is_wrong_with_a_trace_names_line_and_column() {
        let why = |text: &str| parse_trace(text).unwrap_err();
        assert!(why("0 5\n1 fast\n").contains("line 2, column 2: no rate in Mbit/s"));
        assert!(why("0 5\n1 -2\n").contains("line 2, column 2: no rate in Mbit/s"));
        assert!(why("0 5\nsoon 2\n").contains("line 2, column 1: no number of seconds"));
        assert!(why("0 5\n0 2\n").contains("line 2, column 1: a time must be later"));
        assert!(why("0.5\n1\n").contains("line 1, column 1: no whole number"));
        for rate in ["MBps", "MB/s", "throughput_MBps", "kBps", "MB_s"] {
            let why = why(&format!("time_s,{rate}\n0,1\n1,2\n"));
            assert!(why.starts_with("its last column is in bytes per second"), "{why}");
        }
        assert!(why("1 2 3\n").contains("it has 3 columns; expected"));
        assert!(why("time_ms,mbit_s\n1,2\n").contains("its header has other columns; expected"));
    }
}
