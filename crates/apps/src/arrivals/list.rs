//! Recorded arrivals, also as text: `"0.5 s, server, client, 30 kB; 1 s, server, client, 2 kB"`.

use core::fmt;
use std::sync::Arc;

use cwnd_quantity::{Bytes, Duration, ParseError, Rng, parse_bytes, parse_duration};
use cwnd_schema::{Param, RegistryEntry, Schema, Value, ValueType};

use super::{Arrival, Arriving, Process};

/// Name and description in scenarios.
pub const ENTRY: RegistryEntry =
    RegistryEntry::new("list", "As they were recorded: when, between whom, how much.");

/// Recorded arrivals.
#[derive(Clone, Debug, PartialEq, Schema)]
pub struct Params {
    /// A CSV file with the column `time_s` and, where they are known, `server`, `client` and
    /// `size_bytes`; or its rows in the scenario itself, `"0.5 s, server, client, 30 kB; 1 s,
    /// …"`.
    #[required("none")]
    pub rows: RecordedArrivals,
}

impl Arriving for Params {
    fn process(&self) -> Box<dyn Process> {
        Box::new(Recorded { rows: self.rows.clone(), next: 0 })
    }
    fn rows(&self) -> &[RecordedArrival] {
        self.rows.arrivals()
    }
}

/// Recorded arrivals from row `next` on.
#[derive(Debug)]
struct Recorded {
    rows: RecordedArrivals,
    next: usize,
}

impl Process for Recorded {
    fn next(&mut self, _: &mut Rng) -> Option<Arrival> {
        let row = self.next;
        self.next += 1;
        let rows = self.rows.arrivals();
        let arrivals = rows.get(row)?;
        let before = row.checked_sub(1).map_or(Duration::ZERO, |before| rows[before].at);
        let gap = arrivals.at.saturating_sub(before);
        Some(Arrival { gap, row: Some(row), size: arrivals.size })
    }
}

/// A recorded connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedArrival {
    /// Time of its arrival.
    pub at: Duration,
    /// Node that sends the data; `None` if it is not recorded.
    pub server: Option<String>,
    /// Node that receives the data; `None` if it is not recorded.
    pub client: Option<String>,
    /// Size of its transfer; `None` if it is not recorded.
    pub size: Option<Bytes>,
}

/// Recorded connections in order of time; those at equal times keep their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordedArrivals(Arc<[RecordedArrival]>);

impl RecordedArrivals {
    /// Sorts the connections by time.
    #[must_use]
    pub fn new(mut arrivals: Vec<RecordedArrival>) -> Self {
        arrivals.sort_by_key(|one| one.at);
        Self(arrivals.into())
    }

    /// All connections.
    #[must_use]
    pub fn arrivals(&self) -> &[RecordedArrival] {
        &self.0
    }
}

impl Param for RecordedArrivals {
    const VALUE_TYPE: ValueType = ValueType::Arrivals;
    type Bound = Self;

    fn read(value: &Value) -> Result<Self, ParseError> {
        let Value::Text(text) = value else {
            return Err(ParseError(
                "expected a CSV file such as \"arrivals.csv\", or rows such as \"0.5 s, server, \
                 client, 30 kB; 1 s\""
                    .to_owned(),
            ));
        };
        let mut arrivals = Vec::new();
        for (i, row) in text.split(';').map(str::trim).filter(|row| !row.is_empty()).enumerate() {
            let read = one(row).map_err(|e| ParseError(format!("arrival {}: {}", i + 1, e.0)))?;
            arrivals.push(read);
        }
        if arrivals.is_empty() {
            return Err(ParseError("there are no arrivals in it".to_owned()));
        }
        Ok(Self::new(arrivals))
    }

    fn write(&self) -> Value {
        Value::Text(self.to_string())
    }
}

fn one(row: &str) -> Result<RecordedArrival, ParseError> {
    let cells: Vec<&str> = row.split(',').map(str::trim).collect();
    if cells.len() > 4 {
        return Err(ParseError(format!(
            "`{row}` has more than a time, a server, a client and a size"
        )));
    }
    let cell = |i: usize| cells.get(i).copied().filter(|text| !text.is_empty());
    let size = match cell(3).map(parse_bytes).transpose()? {
        Some(Bytes(0)) => return Err(ParseError("a transfer of 0 bytes sends nothing".to_owned())),
        size => size,
    };
    Ok(RecordedArrival {
        at: parse_duration(cell(0).unwrap_or_default())?,
        server: cell(1).map(str::to_owned),
        client: cell(2).map(str::to_owned),
        size,
    })
}

impl fmt::Display for RecordedArrivals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, one) in self.0.iter().enumerate() {
            let name = |name: &Option<String>| name.clone().unwrap_or_default();
            let size = one.size.map(|size| size.to_string()).unwrap_or_default();
            let cells = format!("{}, {}, {}, {size}", one.at, name(&one.server), name(&one.client));
            write!(f, "{}{}", if i == 0 { "" } else { "; " }, cells.trim_end_matches([',', ' ']))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str) -> Result<RecordedArrivals, ParseError> {
        RecordedArrivals::read(&Value::Text(text.to_owned()))
    }

    #[test]
    fn a_list_reads_back_what_it_writes_in_order_of_time() {
        let text = "500 ms, a, b, 30 kB; 1 s; 2 s, , , 1 kB; 2 s, a";
        assert_eq!(rows(text).unwrap().to_string(), text);
        assert_eq!(rows("2 s; 1 s, a;").unwrap().to_string(), "1 s, a; 2 s");
        for (text, said) in [
            ("", "no arrivals"),
            ("1 s; 2", "arrival 2"),
            ("1 s, a, b, 0 B", "sends nothing"),
            ("1 s, a, b, 1 kB, x", "more than"),
            (", a, b", "arrival 1"),
        ] {
            assert!(rows(text).unwrap_err().0.contains(said), "{text}");
        }
    }
}
