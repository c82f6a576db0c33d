//! Builder of connections as captured at a client, packet by packet.

use cwnd_infer::{Error, Found, Inference, Input, Limits};
use cwnd_tables::{ColumnData, Table};
use etherparse::{PacketBuilder, TcpOptionElement};

pub const MSS: u32 = 1448;
/// Sequence number of the server's first byte; near the maximum, so that numbers wrap.
pub const FIRST: u32 = u32::MAX - 20_000;
pub const REQUEST: u32 = 5_000;

/// Captured IP packets with their times in milliseconds, without link-layer headers.
#[derive(Clone, Debug)]
pub struct Conversation {
    pub packets: Vec<(f64, Vec<u8>)>,
    pub timestamps: bool,
    /// `true` if identifications number the server's packets.
    pub identifications: bool,
    /// `true` if its SYN-ACK has the identification zero, as Linux's.
    pub zero_identification: bool,
    pub v6: bool,
    /// Time after which the server receives nothing from the client, ms.
    pub server_deaf_from: f64,
    id: u16,
    newest_tsval: u32,
    /// Bytes of the client's requests so far.
    requested: u32,
}

/// Further flags and options of a packet.
#[derive(Clone, Copy, Debug, Default)]
pub struct PacketOptions {
    pub syn: bool,
    pub fin: bool,
    pub psh: bool,
    pub window: Option<u16>,
    pub dsack: Option<(u32, u32)>,
}

impl Conversation {
    /// Creates a handshake over a round trip of 50 ms, and a request answered by `flight` segments
    /// at 101 ms.
    pub fn new(flight: u32) -> Self {
        let mut conversation = Self::empty();
        conversation.open();
        conversation.flight(101.0, 0, flight);
        conversation
    }

    pub fn empty() -> Self {
        let packets = Vec::new();
        Self {
            packets,
            timestamps: true,
            identifications: false,
            zero_identification: false,
            v6: false,
            server_deaf_from: f64::INFINITY,
            id: 7,
            newest_tsval: 0,
            requested: 0,
        }
    }

    pub fn open(&mut self) {
        self.client_says(0.0, 0, 0, PacketOptions { syn: true, ..PacketOptions::default() });
        self.server_says(50.0, 0, 0, PacketOptions { syn: true, ..PacketOptions::default() });
        self.client(50.1, 0, 0);
        self.client(50.2, 100, 0);
    }

    /// Adds consecutive segments from a segment number on, each acknowledged.
    pub fn flight(&mut self, at: f64, from: u32, segments: u32) {
        for i in from..from + segments {
            let at = at + f64::from(i - from) * 0.1;
            self.server(at, i * MSS, MSS);
            self.client(at + 0.01, 0, (i + 1) * MSS);
        }
    }

    /// Adds a flight whose fifth segment is lost, and its retransmission after a timeout.
    pub fn hole_filled_after_timeout(&mut self) {
        self.flight(101.0, 0, 4);
        self.server(151.0, 5 * MSS, MSS);
        self.client(151.1, 0, 4 * MSS);
        self.server(420.0, 4 * MSS, MSS);
        self.client(420.1, 0, 6 * MSS);
    }

    pub fn server(&mut self, at: f64, offset: u32, length: u32) {
        self.server_says(at, offset, length, PacketOptions::default());
    }

    pub fn server_says(&mut self, at: f64, offset: u32, length: u32, say: PacketOptions) {
        self.id = self.id.wrapping_add(1);
        let seq = if say.syn { FIRST.wrapping_sub(1) } else { FIRST.wrapping_add(offset) };
        let echo = self.echoed_timestamp(at);
        self.packet(at, true, (seq, REQUEST + 100), length, (stamp(at - 25.0), echo), say);
    }

    /// Adds an ACK, or another request of the client.
    pub fn client(&mut self, at: f64, length: u32, acked: u32) {
        self.client_says(at, length, acked, PacketOptions::default());
    }

    /// Loses the server's next packets: their identifications are skipped.
    pub fn lose(&mut self, packets: u16) {
        self.id = self.id.wrapping_add(packets);
    }

    /// Repeats the last request.
    pub fn client_again(&mut self, at: f64, length: u32, acked: u32) {
        self.requested -= length;
        self.client(at, length, acked);
    }

    pub fn client_says(&mut self, at: f64, length: u32, acked: u32, say: PacketOptions) {
        let seq = if say.syn { REQUEST - 1 } else { REQUEST + self.requested };
        self.requested += length;
        self.packet(
            at,
            false,
            (seq, FIRST.wrapping_add(acked)),
            length,
            (stamp(at), self.newest_tsval),
            say,
        );
    }

    /// Returns the timestamp of the client's newest packet that the server had received when it
    /// sent a packet captured at `at`.
    fn echoed_timestamp(&self, at: f64) -> u32 {
        let mine = |(sent, bytes): &&(f64, Vec<u8>)| {
            *sent <= (at - 50.0 + 0.001).min(self.server_deaf_from) && !from_server(bytes, self.v6)
        };
        self.packets.iter().rev().find(mine).map_or(0, |(sent, _)| stamp(*sent))
    }

    fn packet(
        &mut self,
        at: f64,
        server: bool,
        (seq, ack): (u32, u32),
        length: u32,
        stamps: (u32, u32),
        say: PacketOptions,
    ) {
        let (from, to) = if server { (80, 40_000) } else { (40_000, 80) };
        let ends =
            if server { [[192, 0, 2, 1], [10, 0, 0, 1]] } else { [[10, 0, 0, 1], [192, 0, 2, 1]] };
        let mut options = Vec::new();
        if say.syn {
            options.push(TcpOptionElement::MaximumSegmentSize(1460));
        }
        if self.timestamps {
            options.push(TcpOptionElement::Timestamp(stamps.0, stamps.1));
        }
        if let Some((a, b)) = say.dsack {
            let block = (FIRST.wrapping_add(a), FIRST.wrapping_add(b));
            options.push(TcpOptionElement::SelectiveAcknowledgement(block, [None; 3]));
        }
        let counted = server && self.identifications && !(self.zero_identification && say.syn);
        let identification = if counted { self.id } else { 0 };
        let ip = if self.v6 {
            let wide = |end: [u8; 4]| {
                let mut wide = [0; 16];
                wide[12..].copy_from_slice(&end);
                wide[0] = 0x20;
                wide
            };
            PacketBuilder::ipv6(wide(ends[0]), wide(ends[1]), 64)
        } else {
            let mut header =
                etherparse::Ipv4Header::new(0, 64, etherparse::ip_number::TCP, ends[0], ends[1])
                    .expect("it is short");
            header.identification = identification;
            PacketBuilder::ip(etherparse::IpHeaders::Ipv4(header, Default::default()))
        };
        let mut tcp = ip
            .tcp(from, to, seq, say.window.unwrap_or(60_000))
            .ack(ack)
            .options(&options)
            .expect("they fit");
        if say.syn && !server {
            tcp = PacketBuilder::ipv4(ends[0], ends[1], 64)
                .tcp(from, to, seq, 60_000)
                .options(&options)
                .expect("they fit");
            if self.v6 {
                let wide = |end: [u8; 4]| {
                    let mut wide = [0; 16];
                    wide[12..].copy_from_slice(&end);
                    wide[0] = 0x20;
                    wide
                };
                tcp = PacketBuilder::ipv6(wide(ends[0]), wide(ends[1]), 64)
                    .tcp(from, to, seq, 60_000)
                    .options(&options)
                    .expect("they fit");
            }
        }
        if say.syn {
            tcp = tcp.syn();
        }
        if say.fin {
            tcp = tcp.fin();
        }
        if say.psh {
            tcp = tcp.psh();
        }
        let mut bytes = Vec::new();
        tcp.write(&mut bytes, &vec![0; length as usize]).expect("memory takes it");
        self.packets.push((at, bytes));
        if server {
            self.newest_tsval = stamp(at - 25.0);
        }
    }

    /// Returns a pcap file of raw IP packets with a clock of nanoseconds.
    pub fn pcap(&self) -> Vec<u8> {
        let mut file = header(0xa1b2_3c4d, 101);
        for (at, bytes) in &self.packets {
            file.extend(frame(*at, 1, bytes, bytes.len()));
        }
        file
    }

    pub fn found(&self) -> Found {
        assert!(self.packets.is_sorted_by(|a, b| a.0 <= b.0), "a capture is in order");
        read(&self.pcap()).expect("it is a capture")
    }

    /// Returns kind and evidence of each silence.
    pub fn silences(&self) -> Vec<(String, String)> {
        silences(&self.found())
    }
}

fn from_server(bytes: &[u8], v6: bool) -> bool {
    let at = if v6 { 40 } else { 20 };
    bytes[at..at + 2] == 80_u16.to_be_bytes()
}

/// Returns the timestamp of a clock of 10 kHz.
fn stamp(at: f64) -> u32 {
    (at * 10.0) as u32 + 1000
}

pub fn header(magic: u32, link: u32) -> Vec<u8> {
    let mut file = Vec::new();
    file.extend(magic.to_le_bytes());
    file.extend([2, 0, 4, 0]);
    file.extend([0; 8]);
    file.extend(262_144_u32.to_le_bytes());
    file.extend(link.to_le_bytes());
    file
}

/// Returns a record of a pcap file; `tick_ns` is the unit of its time fraction.
pub fn frame(at_ms: f64, tick_ns: u64, bytes: &[u8], length: usize) -> Vec<u8> {
    let ns = (at_ms * 1e6) as u64;
    let mut record = Vec::new();
    record.extend(((ns / 1_000_000_000) as u32).to_le_bytes());
    record.extend(((ns % 1_000_000_000 / tick_ns) as u32).to_le_bytes());
    record.extend((bytes.len() as u32).to_le_bytes());
    record.extend((length as u32).to_le_bytes());
    record.extend(bytes);
    record
}

pub fn read(file: &[u8]) -> Result<Found, Error> {
    read_all(&[Input::of("conversation", file)])
}

pub fn read_all(inputs: &[Input<'_>]) -> Result<Found, Error> {
    let mut inference = Inference::new(Limits::default());
    inference.read(inputs, || true)?;
    Ok(inference.finish())
}

pub fn silences(found: &Found) -> Vec<(String, String)> {
    names(&found.silences, "kind").into_iter().zip(names(&found.silences, "evidence")).collect()
}

pub fn names(table: &Table, column: &str) -> Vec<String> {
    match table.column(column) {
        Some(ColumnData::Name { codes, labels }) => {
            codes.iter().map(|code| labels[code.0 as usize].clone()).collect()
        }
        other => panic!("{column}: {other:?}"),
    }
}

pub fn numbers(table: &Table, column: &str) -> Vec<f64> {
    match table.column(column) {
        Some(ColumnData::U64(v)) => v.iter().map(|&x| x as f64).collect(),
        Some(ColumnData::U32(v)) => v.iter().map(|&x| f64::from(x)).collect(),
        Some(ColumnData::F64(v)) => v.clone(),
        Some(ColumnData::OptionalF64(v)) => v.iter().map(|x| x.unwrap_or(f64::NAN)).collect(),
        other => panic!("{column}: {other:?}"),
    }
}

/// Returns a value of the only connection.
pub fn of_connection(found: &Found, column: &str) -> f64 {
    let [value] = numbers(&found.connections, column)[..] else { panic!("one connection") };
    value
}
