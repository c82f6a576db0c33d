//! Result tables.

use std::collections::BTreeMap;

use cwnd_packet::Ecn;
use cwnd_quantity::{Duration, Time};
use cwnd_tables::{Column, ColumnData, Name, Table};

use crate::clock::Source;
use crate::connection::{Connection, End, Summary};
use crate::direction::{Counts, Novelty, Placed};
use crate::event::{Event, Evidence, Kind, SegmentKind};
use crate::headers::{Segment, flag};
use crate::rto::Backoff;

/// Distinct texts and their numbers.
#[derive(Debug, Default)]
pub struct Labels {
    numbers: BTreeMap<String, u32>,
    texts: Vec<String>,
}

impl Labels {
    fn number(&mut self, text: String) -> Name {
        let next = self.texts.len() as u32;
        let number = *self.numbers.entry(text).or_insert_with_key(|text| {
            self.texts.push(text.clone());
            next
        });
        Name(number)
    }
}

macro_rules! rows {
    ($(#[$doc:meta])* $rows:ident { $($field:ident: $ty:ty => $variant:ident,)+ }) => {
        $(#[$doc])*
        #[derive(Debug, Default)]
        pub struct $rows { $($field: Vec<$ty>,)+ }

        impl $rows {
            fn columns(self, mut names: impl FnMut(&str) -> Vec<String>) -> Table {
                let _ = &mut names;
                Table { columns: vec![$( Column {
                    name: stringify!($field),
                    data: rows!(@data $variant, self.$field, names, $field),
                    rare: false,
                }, )+] }
            }
        }
    };
    (@data Name, $codes:expr, $names:ident, $field:ident) => {
        ColumnData::Name { codes: $codes, labels: $names(stringify!($field)) }
    };
    (@data OptionalF64, $values:expr, $names:ident, $field:ident) => {
        ColumnData::OptionalF64($values.into_iter().collect())
    };
    (@data OptionalU64, $values:expr, $names:ident, $field:ident) => {
        ColumnData::OptionalU64($values.into_iter().collect())
    };
    (@data $variant:ident, $values:expr, $names:ident, $field:ident) => {
        ColumnData::$variant($values)
    };
}

rows! {
    /// Columns with a row for each connection.
    Connections {
        connection: u64 => U64,
        file: Name => Name,
        client: Name => Name,
        client_port: u32 => U32,
        server: Name => Name,
        server_port: u32 => U32,
        began_s: f64 => F64,
        duration_s: f64 => F64,
        server_last_s: f64 => F64,
        packets: u64 => U64,
        server_packets: u64 => U64,
        server_segments: u64 => U64,
        server_bytes: u64 => U64,
        client_bytes: u64 => U64,
        server_stream_bytes: u64 => U64,
        client_stream_bytes: u64 => U64,
        server_first_s: f64 => F64,
        client_first_s: f64 => F64,
        client_last_s: f64 => F64,
        end: Name => Name,
        rtt_ms: Option<f64> => OptionalF64,
        rtt_min_ms: Option<f64> => OptionalF64,
        server_path_ms: Option<f64> => OptionalF64,
        client_path_ms: Option<f64> => OptionalF64,
        opened_by: Name => Name,
        rtt_from: Name => Name,
        rtt_samples: u64 => U64,
        position: Option<f64> => OptionalF64,
        rule_timeouts: u64 => U64,
        rule_consecutive: u64 => U64,
        timeouts: u64 => U64,
        silences: u64 => U64,
        consecutive: u64 => U64,
        backoff: Name => Name,
        ambiguous: u64 => U64,
        pauses: u64 => U64,
        probes: u64 => U64,
        recoveries: u64 => U64,
        window_waits: u64 => U64,
        syn_timeouts: u64 => U64,
        syn_ack_timeouts: u64 => U64,
        filled: u64 => U64,
        repeated: u64 => U64,
        dsacks: u64 => U64,
        keep_alives: u64 => U64,
        ecn: u32 => U32,
        ect: u64 => U64,
        ce: u64 => U64,
        ece: u64 => U64,
        cwr: u64 => U64,
        forgotten: u64 => U64,
    }
}

rows! {
    /// Columns with a row for each silence.
    Silences {
        connection: u64 => U64,
        began_s: f64 => F64,
        ended_s: f64 => F64,
        gap_ms: f64 => F64,
        waited_ms: f64 => F64,
        idle_ms: f64 => F64,
        rtt_ms: f64 => F64,
        rto_ms: Option<f64> => OptionalF64,
        round: u64 => U64,
        timeouts: u64 => U64,
        what: Name => Name,
        kind: Name => Name,
        evidence: Name => Name,
        rule: u32 => U32,
        offset: u64 => U64,
    }
}

rows! {
    /// Columns with a row for each packet of a connection. Positions are those of the stream whose
    /// data the packet carries or acknowledges, in bytes from its first one.
    PacketRows {
        time_s: f64 => F64,
        end: Name => Name,
        novelty: Name => Name,
        start: Option<u64> => OptionalU64,
        past: Option<u64> => OptionalU64,
        acked: Option<u64> => OptionalU64,
        window: Option<u64> => OptionalU64,
        sack_start: Option<u64> => OptionalU64,
        sack_past: Option<u64> => OptionalU64,
        second_sack_start: Option<u64> => OptionalU64,
        second_sack_past: Option<u64> => OptionalU64,
        ce: u32 => U32,
        ece: u32 => U32,
        cwr: u32 => U32,
    }
}

const fn name(number: usize) -> Name {
    Name(number as u32)
}

fn ms(span: Duration) -> f64 {
    span.as_secs_f64() * 1e3
}

fn s(at: Time) -> f64 {
    at.as_secs_f64()
}

fn texts(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

rows! {
    /// Bytes by the delivery rate of the window that they ended, and by the end that sent them.
    RateRows {
        end: Name => Name,
        seen: Name => Name,
        rate_bit_s: f64 => F64,
        bytes: u64 => U64,
    }
}

rows! {
    /// Packets and their bytes in intervals of time, by direction.
    ThroughputRows {
        link: Name => Name,
        time_s: f64 => F64,
        packets: u64 => U64,
        bytes: u64 => U64,
    }
}

rows! {
    /// Segments, and lost segments, by queueing delay and by the end that sent them.
    QueueRows {
        end: Name => Name,
        delay_ms: f64 => F64,
        segments: u64 => U64,
        lost: u64 => U64,
    }
}

/// Names in the column `link`.
const LINKS: [&str; 2] = ["downlink", "uplink"];

impl ThroughputRows {
    /// Adds a row.
    pub fn push(&mut self, uplink: bool, time_s: f64, packets: u64, bytes: u64) {
        self.link.push(name(usize::from(uplink)));
        self.time_s.push(time_s);
        self.packets.push(packets);
        self.bytes.push(bytes);
    }

    /// Returns the table.
    pub fn into_table(self) -> Table {
        self.columns(|_| texts(&LINKS))
    }
}

/// Names in the column `end`.
const ENDS: [&str; 2] = ["client", "server"];

impl RateRows {
    /// Adds a row.
    pub fn push(&mut self, by_server: bool, data: bool, rate_bit_s: f64, bytes: u64) {
        self.end.push(name(usize::from(by_server)));
        self.seen.push(name(usize::from(data)));
        self.rate_bit_s.push(rate_bit_s);
        self.bytes.push(bytes);
    }

    /// Returns the table.
    pub fn into_table(self) -> Table {
        self.columns(|column| if column == "end" { texts(&ENDS) } else { texts(&["acks", "data"]) })
    }
}

impl QueueRows {
    /// Adds a row.
    pub fn push(&mut self, by_server: bool, delay_ms: f64, segments: u64, lost: u64) {
        self.end.push(name(usize::from(by_server)));
        self.delay_ms.push(delay_ms);
        self.segments.push(segments);
        self.lost.push(lost);
    }

    /// Returns the table.
    pub fn into_table(self) -> Table {
        self.columns(|_| texts(&ENDS))
    }
}

impl PacketRows {
    /// Adds a packet `of` a connection that began at `began`. `placed` is the place of its data.
    pub fn push(
        &mut self,
        began: Time,
        segment: &Segment,
        of: &Connection,
        placed: Option<Placed>,
        by_server: bool,
    ) {
        let other = &of.directions[usize::from(segment.from == of.ends[0])];
        let acked = Some(segment.ack).filter(|_| segment.has(flag::ACK));
        let acked = acked.and_then(|number| other.position(number));
        let size = u64::from(segment.window) << of.scale(segment).unwrap_or(0);
        let edge = |block: Option<(u32, u32)>, past: bool| {
            block.and_then(|(start, end)| other.position(if past { end } else { start }))
        };
        let [first, second] = segment.blocks;
        // The flags of a SYN negotiate ECN, and report no mark (RFC 3168 § 6.1.1).
        let says = |flags: u8| u32::from(segment.has(flags) && !segment.has(flag::SYN));
        self.time_s.push(segment.at.since(began).as_secs_f64());
        self.end.push(name(usize::from(by_server)));
        self.novelty.push(name(placed.map_or(0, |placed| placed.novelty as usize + 1)));
        self.start.push(placed.map(|placed| placed.start));
        self.past.push(placed.map(|placed| placed.end));
        self.acked.push(acked);
        self.window.push(acked.map(|acked| acked + size));
        self.sack_start.push(edge(first, false));
        self.sack_past.push(edge(first, true));
        self.second_sack_start.push(edge(second, false));
        self.second_sack_past.push(edge(second, true));
        self.ce.push(u32::from(segment.ecn == Ecn::Ce));
        self.ece.push(says(flag::ECE));
        self.cwr.push(says(flag::CWR));
    }

    /// Returns the table of packets.
    pub fn into_table(self) -> Table {
        self.columns(|column| match column {
            "end" => texts(&ENDS),
            _ => [texts(&["none"]), texts(&Novelty::NAMES)].concat(),
        })
    }
}

impl Silences {
    /// Adds a row for a silence of a server, or for a repeated SYN or SYN-ACK.
    pub fn push(&mut self, connection: u64, event: &Event) {
        let timeout = event.kind == Kind::Timeout;
        self.connection.push(connection);
        self.began_s.push(s(event.began));
        self.ended_s.push(s(event.ended));
        self.gap_ms.push(ms(event.ended.since(event.began)));
        self.waited_ms.push(ms(event.waited));
        self.idle_ms.push(ms(event.idle));
        self.rtt_ms.push(ms(event.rtt));
        self.rto_ms.push((event.rto > Duration::ZERO).then(|| ms(event.rto)));
        self.round.push(if timeout { u64::from(event.before) + 1 } else { 0 });
        self.timeouts.push(if timeout { u64::from(event.timeouts) } else { 0 });
        self.what.push(name(event.what as usize));
        self.kind.push(name(event.kind as usize));
        self.evidence.push(name(event.evidence as usize));
        self.rule.push(u32::from(event.rule));
        self.offset.push(event.offset);
    }

    /// Returns the table of silences.
    pub fn into_table(self) -> Table {
        self.columns(|column| match column {
            "what" => texts(&SegmentKind::NAMES),
            "kind" => texts(&Kind::NAMES),
            _ => texts(&Evidence::NAMES),
        })
    }
}

/// Returns the length of the longest run of silences that the paper's rule takes for timeouts, each
/// of which begins where the one before ends.
fn longest_by_rule(events: &[Event]) -> u64 {
    let (mut longest, mut row, mut last) = (0, 0, None);
    for event in events.iter().filter(|event| event.rule && event.what == SegmentKind::Data) {
        row = if last.is_some_and(|ended| event.began <= ended) { row + 1 } else { 1 };
        last = Some(event.ended);
        longest = longest.max(row);
    }
    longest
}

impl Connections {
    /// Adds the row of a connection.
    pub fn push(
        &mut self,
        connection: u64,
        summary: &Summary,
        backoff: Backoff,
        hosts: &mut Labels,
    ) {
        let [client, server] = &summary.directions;
        let data = |event: &&Event| event.what == SegmentKind::Data;
        let of = |kind: Kind| server.events.iter().filter(data).filter(move |e| e.kind == kind);
        let count = |kind: Kind| of(kind).count() as u64;
        let again = |what: SegmentKind| {
            summary.handshakes.iter().filter(|event| event.what == what).count() as u64
        };
        let rtt = |span: Duration| server.rtt.is_known().then(|| ms(span));
        self.connection.push(connection);
        self.file.push(Name(summary.file));
        self.client.push(hosts.number(summary.client.address().to_string()));
        self.client_port.push(u32::from(summary.client.port));
        self.server.push(hosts.number(summary.server.address().to_string()));
        self.server_port.push(u32::from(summary.server.port));
        self.began_s.push(s(summary.began));
        self.duration_s.push(summary.last.since(summary.began).as_secs_f64());
        self.server_last_s.push(s(server.counts.last));
        self.packets.push(client.counts.packets + server.counts.packets);
        self.server_packets.push(server.counts.packets);
        self.server_segments.push(server.counts.segments);
        self.server_bytes.push(server.counts.bytes);
        self.client_bytes.push(client.counts.bytes);
        self.server_stream_bytes.push(server.stream_bytes);
        self.client_stream_bytes.push(client.stream_bytes);
        self.server_first_s.push(s(server.counts.first));
        self.client_first_s.push(s(client.counts.first));
        self.client_last_s.push(s(client.counts.last));
        self.end.push(name(summary.end as usize));
        self.rtt_ms.push(rtt(server.rtt.smoothed));
        self.rtt_min_ms.push(rtt(server.rtt.min));
        let path = |rtt: Duration| (rtt > Duration::ZERO).then(|| ms(rtt));
        self.server_path_ms.push(path(server.rtt_min));
        self.client_path_ms.push(path(client.rtt_min));
        self.opened_by.push(name(summary.client_opened.map_or(2, |client| usize::from(!client))));
        self.rtt_from.push(name(server.rtt.source as usize));
        self.rtt_samples.push(server.rtt.samples);
        self.position.push(summary.position);
        self.rule_timeouts.push(server.events.iter().filter(|event| event.rule).count() as u64);
        self.rule_consecutive.push(longest_by_rule(&server.events));
        self.timeouts.push(of(Kind::Timeout).map(|event| u64::from(event.timeouts)).sum());
        self.silences.push(count(Kind::Timeout));
        let longest = of(Kind::Timeout).map(|event| event.before + event.timeouts).max();
        self.consecutive.push(u64::from(longest.unwrap_or(0)));
        self.backoff.push(name(backoff as usize));
        self.ambiguous.push(count(Kind::Ambiguous));
        self.pauses.push(count(Kind::Pause));
        self.probes.push(count(Kind::Probe));
        self.recoveries.push(count(Kind::Recovery));
        self.window_waits.push(count(Kind::Window));
        self.syn_timeouts.push(again(SegmentKind::Syn));
        self.syn_ack_timeouts.push(again(SegmentKind::SynAck));
        self.filled.push(server.counts.filled);
        self.repeated.push(server.counts.repeated);
        self.dsacks.push(server.counts.dsacks);
        self.keep_alives.push(server.counts.probes);
        self.ecn.push(u32::from(summary.ecn));
        // Data of either end may be marked, before the capture or behind it.
        let both = |count: fn(&Counts) -> u64| count(&client.counts) + count(&server.counts);
        self.ect.push(both(|counts| counts.ect));
        self.ce.push(both(|counts| counts.ce));
        self.ece.push(both(|counts| counts.ece));
        self.cwr.push(both(|counts| counts.cwr));
        self.forgotten.push(server.counts.forgotten);
    }

    /// Returns the table of connections.
    pub fn into_table(self, files: &[String], hosts: &Labels) -> Table {
        self.columns(|column| match column {
            "file" => files.to_vec(),
            "end" => texts(&End::NAMES),
            "opened_by" => texts(&["client", "server", "unknown"]),
            "rtt_from" => texts(&Source::NAMES),
            "backoff" => texts(&Backoff::NAMES),
            _ => hosts.texts.clone(),
        })
    }
}
