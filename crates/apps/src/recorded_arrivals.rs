//! Recorded arrivals as text: `"0.5 s, server, client, 30 kB; 1 s, server, client, 2 kB"`.

use core::fmt;
use std::sync::Arc;

use cwnd_quantity::{Bytes, Duration, ParseError, parse_bytes, parse_duration};
use cwnd_schema::{Param, Value, ValueType};

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
