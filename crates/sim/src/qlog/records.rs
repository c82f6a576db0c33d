//! Records of a JSON text sequence (RFC 7464): the header of a log, and its events.

use core::fmt::{self, Display, Write as _};
use std::io::{self, Write as _};

use cwnd_quantity::{Duration, Time};

use crate::capture::Output;

/// Output of a log, and the record that is being written.
pub struct Records {
    output: Output,
    record: String,
}

/// Facts of a log for its header.
pub struct Header<'a> {
    /// Title of the log.
    pub title: &'a str,
    /// Protocol of the connection: `QUIC` or `TCP`.
    pub protocol: &'static str,
    /// Role of the sender: `client` or `server`.
    pub role: &'static str,
}

impl Records {
    /// Creates an empty sequence.
    pub const fn new(output: Output) -> Self {
        Self { output, record: String::new() }
    }

    /// Writes the header, with times in ms from the start of the run.
    pub fn header(&mut self, of: &Header<'_>) -> io::Result<()> {
        let Header { title, protocol, role } = of;
        let title = Text(title);
        self.begin();
        Object::of(&mut self.record, |file| {
            file.field("qlog_version", Text("0.3"));
            file.field("qlog_format", Text("JSON-SEQ"));
            file.field("title", &title);
            file.object("trace", |trace| {
                trace.field("title", &title);
                trace.object("vantage_point", |point| {
                    point.field("name", Text("cwnd"));
                    point.field("type", Text(role));
                });
                trace.object("common_fields", |fields| {
                    fields.field("protocol_type", format_args!("[{}]", Text(protocol)));
                    fields.field("time_format", Text("relative"));
                    fields.field("reference_time", 0);
                });
            });
        });
        self.write()
    }

    /// Writes an event with the fields that `data` adds.
    pub fn event(
        &mut self,
        now: Time,
        name: &str,
        data: impl FnOnce(&mut Object<'_>),
    ) -> io::Result<()> {
        self.begin();
        Object::of(&mut self.record, |event| {
            event.field("time", Ms(now.0));
            event.field("name", Text(name));
            event.object("data", data);
        });
        self.write()
    }

    /// Flushes the output.
    pub fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }

    fn begin(&mut self) {
        self.record.clear();
        self.record.push('\u{1e}');
    }

    fn write(&mut self) -> io::Result<()> {
        self.record.push('\n');
        self.output.write_all(self.record.as_bytes())
    }
}

/// A JSON object that is being written.
pub struct Object<'a> {
    text: &'a mut String,
    is_empty: bool,
}

impl<'a> Object<'a> {
    /// Writes an object with the fields that `add` adds.
    fn of(text: &'a mut String, add: impl FnOnce(&mut Object<'_>)) {
        text.push('{');
        let mut object = Object { text, is_empty: true };
        add(&mut object);
        object.text.push('}');
    }

    /// Adds a field whose value is JSON when displayed.
    pub fn field(&mut self, name: &str, value: impl Display) {
        self.name(name);
        // A string takes all that is written to it.
        let _unused = write!(self.text, "{value}");
    }

    /// Adds a field with an object.
    pub fn object(&mut self, name: &str, add: impl FnOnce(&mut Object<'_>)) {
        self.name(name);
        Object::of(self.text, add);
    }

    /// Adds a list of one object.
    pub fn list_of_one(&mut self, name: &str, add: impl FnOnce(&mut Object<'_>)) {
        self.name(name);
        self.text.push('[');
        Object::of(self.text, add);
        self.text.push(']');
    }

    /// Adds a list of closed ranges, each with its first and last number.
    pub fn ranges(&mut self, name: &str, ranges: impl Iterator<Item = (u64, u64)>) {
        self.name(name);
        self.text.push('[');
        for (i, (first, last)) in ranges.enumerate() {
            let comma = if i == 0 { "" } else { "," };
            let _unused = write!(self.text, "{comma}[{first},{last}]");
        }
        self.text.push(']');
    }

    fn name(&mut self, name: &str) {
        let comma = if core::mem::take(&mut self.is_empty) { "" } else { "," };
        let _unused = write!(self.text, "{comma}\"{name}\":");
    }
}

/// Nanoseconds, written in ms.
pub struct Ms(pub u64);

impl From<Duration> for Ms {
    fn from(of: Duration) -> Self {
        Self(of.0)
    }
}

impl Display for Ms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:06}", self.0 / 1_000_000, self.0 % 1_000_000)
    }
}

/// A JSON string (RFC 8259 § 7).
pub struct Text<'a>(pub &'a str);

impl Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        for c in self.0.chars() {
            match c {
                '"' | '\\' => write!(f, "\\{c}")?,
                '\0'..' ' => write!(f, "\\u{:04x}", u32::from(c))?,
                _ => f.write_char(c)?,
            }
        }
        f.write_char('"')
    }
}
