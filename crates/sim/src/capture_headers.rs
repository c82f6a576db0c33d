//! Headers of captured packets: addresses, ports, sequence numbers, windows and timestamps that the
//! simulation does not need.

use cwnd_packet::{
    CongestionHeader, Endpoints, Experiment, Headers, Options, SourceQuench, Tcp, Udp, window_scale,
};
use cwnd_quantity::Time;
use cwnd_scenario::{FlowGroup, Scenario};
use cwnd_tcp::{Body, Flags, Quoted, Recovery, SackBlocks, Segment};

use crate::connection_ends::Exchange;

/// Builder of the headers of a flow group's packets.
#[derive(Debug)]
pub struct CaptureHeaders {
    transport: Transport,
    /// Nodes of sender and receiver, by path.
    nodes: Vec<[usize; 2]>,
    /// `true` if each flow has hosts of its own; otherwise all flows of a node share its address.
    own_hosts: bool,
}

#[derive(Clone, Copy, Debug)]
enum Transport {
    Udp,
    /// QUIC in UDP, without the bytes of its packets.
    Quic {
        /// Bytes of headers below QUIC.
        header: u16,
    },
    Tcp {
        /// Tick of the timestamp clock in nanoseconds; `None` without timestamps.
        tick: Option<u64>,
        mss: u16,
        sack: bool,
        ecn: bool,
        window: u32,
    },
}

/// State of a connection that headers need.
#[derive(Clone, Copy, Debug)]
pub struct Connection {
    number: u32,
    group: u32,
    /// Index of its path in the group.
    path: u32,
    /// TS.Recent of the sender of data and of its receiver (RFC 7323 § 4.3): the newest TSval
    /// received.
    ts_recent: [Option<u32>; 2],
    /// Current and previous exchange, if its client opens it.
    exchanges: [Exchange; 2],
    /// `true` if its ends are endpoints from outside.
    has_endpoints: bool,
}

/// Facts about a packet's header that its segment does not hold.
#[derive(Clone, Copy, Debug)]
pub struct HeaderContext<'a> {
    /// `true` for requests of the flow's receiver, for acknowledgements of requests, and for
    /// datagrams of an endpoint from outside at the end of the path.
    pub of_request: bool,
    /// Payload of a datagram between endpoints from outside.
    pub payload: Option<&'a [u8]>,
    /// Note of the sending host.
    pub note: u32,
}

impl Connection {
    /// Creates the state of the flow with this number in results.
    pub const fn new(number: u32, group: u32, path: u32) -> Self {
        let (ts_recent, exchanges) = ([None; 2], [Exchange::FIRST; 2]);
        Self { number, group, path, ts_recent, exchanges, has_endpoints: false }
    }

    /// The same connection, between endpoints from outside.
    pub const fn with_endpoints(self) -> Self {
        Self { has_endpoints: true, ..self }
    }

    /// `true` if its ends are endpoints from outside.
    pub const fn has_endpoints(&self) -> bool {
        self.has_endpoints
    }

    /// Number of the flow in results.
    pub const fn number(&self) -> u32 {
        self.number
    }

    /// Index of its group.
    pub const fn group(&self) -> usize {
        self.group as usize
    }

    /// Updates TS.Recent of one end by a received TSval.
    pub fn update_ts_recent(&mut self, at: End, ts_val: u32) {
        let recent_value = &mut self.ts_recent[at as usize];
        // RFC 7323 § 4.3: only forward, modulo 2³².
        if recent_value.is_none_or(|recent| ts_val.wrapping_sub(recent).cast_signed() > 0) {
            *recent_value = Some(ts_val);
        }
    }

    /// Starts a new exchange.
    pub const fn begin(&mut self, exchange: Exchange) {
        self.exchanges = [exchange, self.exchanges[0]];
    }

    /// Sequence and acknowledgment numbers of a segment of this flow.
    fn numbers(&self, segment: &Segment, of_request: bool) -> Numbers {
        let (isn, other_isn) = if of_request { (ACK_ISN, DATA_ISN) } else { (DATA_ISN, ACK_ISN) };
        let own = isn.wrapping_add(1).wrapping_add(segment.seq as u32);
        let other = other_isn.wrapping_add(1);
        let other = other.wrapping_add(self.other_number(of_request, segment) as u32);
        let (sequence, acknowledgment) = match (segment.is_ack(), segment.flags.has(Flags::SYN)) {
            (false, true) => (isn, 0),
            (true, true) => (other_isn, own),
            (true, false) => (other, own),
            (false, false) => (own, other),
        };
        Numbers { sequence, acknowledgment, own }
    }

    /// Byte number of the other direction at the time of a segment: the one that data acknowledges,
    /// or the one from which an ACK is sent. A segment of one exchange may still be in flight in
    /// the next.
    const fn other_number(&self, of_request: bool, segment: &Segment) -> u64 {
        let [exchange, before] = &self.exchanges;
        let (seq, ack) = (segment.seq, segment.is_ack());
        match (of_request, ack) {
            (false, false) if seq >= exchange.response_start => exchange.request_end,
            (false, true) if seq > exchange.response_start => exchange.request_end,
            (false, _) => before.request_end,
            (true, false) if seq >= exchange.request_start => exchange.response_start,
            (true, true) if seq > exchange.request_start => exchange.response_start,
            (true, _) => before.response_start,
        }
    }
}

/// Sequence and acknowledgment numbers of a TCP header.
struct Numbers {
    sequence: u32,
    acknowledgment: u32,
    /// Number in the segment's own direction: the sequence number of data, the acknowledgment
    /// number of an ACK.
    own: u32,
}

/// TCP flags of a segment's header.
const fn flags(segment: &Segment, ecn_capable: bool) -> u8 {
    let (is_ack, is_syn) = (segment.is_ack(), segment.flags.has(Flags::SYN));
    let mut flags = segment.flags.0;
    if is_ack || !is_syn {
        // Each segment after the SYN carries ACK (RFC 9293 § 3.10.7.4).
        flags |= Flags::ACK.0;
    }
    if is_syn && ecn_capable {
        // RFC 3168 § 6.1.1: an ECN-setup SYN has both flags, an ECN-setup SYN-ACK has ECE alone.
        flags |= Flags::ECE.0 | if is_ack { 0 } else { Flags::CWR.0 };
    }
    flags
}

/// End of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Sender of the data.
    Sender,
    /// Receiver of the data.
    Receiver,
}

impl End {
    /// End that receives a packet: the sender receives ACKs of its data, and requests.
    pub const fn reached_by(of_request: bool, is_ack: bool) -> Self {
        if of_request == is_ack { Self::Receiver } else { Self::Sender }
    }
}

impl CaptureHeaders {
    /// Creates the builder for a group of the scenario.
    pub fn new(scenario: &Scenario, group: &FlowGroup) -> Self {
        let endpoint = &group.endpoint;
        let transport = match (group.workload.facts().transport, &group.quic) {
            (cwnd_apps::Transport::Datagrams { .. }, _) => Transport::Udp,
            (cwnd_apps::Transport::Connection, Some(quic)) => {
                Transport::Quic { header: quic.header.0 as u16 }
            }
            (cwnd_apps::Transport::Connection, None) => Transport::Tcp {
                tick: endpoint.rtt.timestamps.then_some(endpoint.rtt.clock.0.max(FINEST_TICK)),
                // RFC 6691 § 2: the option counts payload as if segments carried no options.
                mss: u16::try_from(
                    endpoint.packets.mss.0
                        + if endpoint.rtt.timestamps { TIMESTAMPS_BYTES } else { 0 },
                )
                .unwrap_or(u16::MAX),
                sack: endpoint.recovery.recovery == Recovery::Sack,
                ecn: endpoint.says_cwr(),
                window: u32::try_from(endpoint.windows.receive_window.0).unwrap_or(u32::MAX),
            },
        };
        Self {
            transport,
            nodes: group.paths.iter().map(|path| [path.from, path.to]).collect(),
            own_hosts: scenario.has_own_hosts(group),
        }
    }

    /// Note for the header of a packet sent now: the TSval of an ACK, the TSecr of data; 0 if it
    /// needs none.
    pub fn note(&self, now: Time, flow: &Connection, of_request: bool, segment: &Segment) -> u32 {
        match self.transport_of(flow) {
            Transport::Tcp { tick: Some(tick), .. } if segment.is_ack() => ticks(now, tick),
            // RFC 7323 § 3.2: zero before anything was heard.
            Transport::Tcp { tick: Some(_), .. } => {
                flow.ts_recent[usize::from(of_request)].unwrap_or(0)
            }
            Transport::Tcp { tick: None, .. } | Transport::Udp | Transport::Quic { .. } => 0,
        }
    }

    /// Transport of a flow of the group.
    const fn transport_of(&self, flow: &Connection) -> Transport {
        if flow.has_endpoints { Transport::Udp } else { self.transport }
    }

    /// TSval of a packet with this note; `None` without timestamps.
    pub const fn ts_val(&self, segment: &Segment, note: u32) -> Option<u32> {
        match self.transport {
            Transport::Tcp { tick: Some(_), .. } if segment.is_ack() => Some(note),
            Transport::Tcp { tick: Some(tick), .. } => Some(ticks(segment.ts, tick)),
            Transport::Tcp { tick: None, .. } | Transport::Udp | Transport::Quic { .. } => None,
        }
    }

    /// Builds the headers of a packet.
    pub fn headers(
        &self,
        flow: &Connection,
        segment: &Segment,
        context: HeaderContext<'_>,
    ) -> Headers {
        let HeaderContext { of_request, note, payload: bytes } = context;
        let forward = self.endpoints(flow.number, flow.path);
        if let Body::Quench { marked, level, router, about } = segment.body {
            let about = self.quoted(flow, segment, about, of_request);
            let quench = SourceQuench { quoted: &about.bytes, marked, level };
            return quench.headers(address(NODES, router), forward.source);
        }
        let (payload, wanted) = (segment.len.min(u32::from(u16::MAX)) as u16, segment.wire);
        let (mss, sack, ecn_capable, window, tick) = match self.transport_of(flow) {
            Transport::Udp => {
                let to = if of_request { forward.reversed() } else { forward };
                let udp = Udp { ecn: segment.ecn, payload, wanted_length: wanted };
                return bytes.map_or_else(|| udp.headers(to), |bytes| udp.packet(to, bytes));
            }
            Transport::Quic { header } => {
                let to = if segment.is_ack() { forward.reversed() } else { forward };
                let payload = wanted.saturating_sub(header);
                return Udp { ecn: segment.ecn, payload, wanted_length: wanted }.headers(to);
            }
            Transport::Tcp { mss, sack, ecn, window, tick } => (mss, sack, ecn, window, tick),
        };
        let (is_ack, is_syn) = (segment.is_ack(), segment.flags.has(Flags::SYN));
        let Numbers { sequence, acknowledgment, own } = flow.numbers(segment, of_request);
        let shift = window_scale(window);
        let (open, blocks) = match segment.body {
            Body::Ack { window, sack, .. } => (window, sack),
            _ => (window, SackBlocks::default()),
        };
        let tcp = Tcp {
            sequence,
            acknowledgment,
            flags: flags(segment, ecn_capable),
            // RFC 7323 § 2.2: the window of a SYN is not scaled.
            window: u16::try_from(if is_syn { open } else { open >> shift }).unwrap_or(u16::MAX),
            options: Options {
                mss: is_syn.then_some(mss),
                sack_permitted: is_syn && sack,
                window_scale: is_syn.then_some(shift),
                timestamps: tick.map(|tick| {
                    let time = ticks(segment.ts, tick);
                    if is_ack { (note, time) } else { (time, note) }
                }),
                sack: blocks.map(|block| {
                    let start = own.wrapping_add_signed(block.offset);
                    (start, start.wrapping_add(block.len))
                }),
                experiment: experiment(segment.body),
            },
            ecn: segment.ecn,
            identification: match segment.body {
                Body::Data { header: CongestionHeader::Id(id), .. } => id,
                _ => 0,
            },
            payload,
            wanted_length: wanted,
        };
        let goes_back = End::reached_by(of_request, is_ack) == End::Sender;
        tcp.headers(if goes_back { forward.reversed() } else { forward })
    }

    /// Builds the headers that a source quench quotes.
    fn quoted(
        &self,
        flow: &Connection,
        quench: &Segment,
        about: Quoted,
        of_request: bool,
    ) -> Headers {
        let Quoted { len, wire, flags, ecn } = about;
        let original = Segment { len, wire, flags, ecn, body: Body::DATA, ..*quench };
        // The quote ends before the options, so the note does not matter.
        self.headers(flow, &original, HeaderContext { note: 0, of_request, payload: None })
    }

    /// Addresses and ports of a flow: addresses by host, ports by flow number.
    fn endpoints(&self, flow: u32, path: u32) -> Endpoints {
        let [source, destination] = if self.own_hosts {
            [address(SENDERS, flow), address(RECEIVERS, flow)]
        } else {
            self.nodes[path as usize].map(|node| address(NODES, node as u32))
        };
        Endpoints {
            source,
            source_port: FIRST_PORT + (flow % PORTS) as u16,
            destination,
            destination_port: FIRST_PORT + (flow / PORTS % PORTS) as u16,
        }
    }
}

/// Experimental TCP option for the header in data, or for its echo in an ACK.
fn experiment(body: Body) -> Option<Experiment> {
    let (kind, behind) = match body {
        Body::Data { header, .. } => header.option(),
        Body::Ack { echo, .. } => echo.option(),
        Body::Quench { .. } | Body::Quic { .. } | Body::QuicAck(_) => None,
    }?;
    Some(Experiment::new(kind, &behind))
}

const fn ticks(at: Time, tick: u64) -> u32 {
    // The timestamp clock wraps at 32 bits (RFC 7323 § 5.4).
    (at.0 / tick) as u32
}

/// Address of host `host` in a network with [`HOST_BITS`]. Hosts count from 1, since 0 is the
/// network itself.
const fn address(network: u32, host: u32) -> [u8; 4] {
    (network | host.wrapping_add(1) & ((1 << HOST_BITS) - 1)).to_be_bytes()
}

/// Initial sequence number of the data's sender; a round number makes byte numbers easy to read in
/// raw values.
const DATA_ISN: u32 = 1_000_000_000;
/// Initial sequence number of the data's receiver.
const ACK_ISN: u32 = 2_000_000_000;

// Private addresses (RFC 1918): hosts at nodes, and hosts that belong to one flow.
const NODES: u32 = 0x0A00_0000;
const SENDERS: u32 = 0x0A40_0000;
const RECEIVERS: u32 = 0x0A80_0000;
const HOST_BITS: u32 = 22;

/// First dynamic port (RFC 6335 § 6), for which packet analysers presume no protocol.
const FIRST_PORT: u16 = 49_152;
/// Number of dynamic ports.
const PORTS: u32 = 16_384;

/// Smallest tick of the timestamp clock, ns: microseconds, as fine as in real stacks. A clock that
/// is exact in the simulation has this tick on the wire.
const FINEST_TICK: u64 = 1_000;
/// Bytes of the timestamps option with its padding (RFC 7323, appendix A).
const TIMESTAMPS_BYTES: u64 = 12;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_echoed_clock_only_goes_forward_and_goes_round() {
        let mut flow = Connection::new(0, 0, 0);
        let mut heard = Vec::new();
        for ts_val in [u32::MAX - 9, u32::MAX - 20, 3, u32::MAX, 4] {
            flow.update_ts_recent(End::Sender, ts_val);
            heard.extend(flow.ts_recent[0]);
        }
        assert_eq!(heard, [u32::MAX - 9, u32::MAX - 9, 3, 3, 4]);
    }

    #[test]
    fn hosts_of_one_flow_have_addresses_of_their_own_and_flows_ports_of_their_own() {
        let stack = |own_hosts| CaptureHeaders {
            transport: Transport::Udp,
            nodes: vec![[0, 300]],
            own_hosts,
        };
        let shared = stack(false).endpoints(PORTS + 2, 0);
        assert_eq!(shared.source, [10, 0, 0, 1]);
        assert_eq!(shared.destination, [10, 0, 1, 45]);
        assert_eq!((shared.source_port, shared.destination_port), (49_154, 49_153));
        let own = stack(true).endpoints(257, 0);
        assert_eq!((own.source, own.destination), ([10, 64, 1, 2], [10, 128, 1, 2]));
    }

    #[test]
    fn numbers_go_round_in_their_32_bits() {
        let stack = CaptureHeaders {
            transport: Transport::Tcp {
                tick: Some(1_000_000),
                mss: 1460,
                sack: true,
                ecn: false,
                window: 1 << 30,
            },
            nodes: vec![[0, 1]],
            own_hosts: false,
        };
        let mut segment = crate::packet::data_segment(0, 0);
        // 5 GB into the transfer, on day 50 of a clock of milliseconds.
        segment.seq = 5_000_000_000;
        let context = HeaderContext { of_request: false, note: 7, payload: None };
        segment.ts = Time(50 * 86_400 * 1_000_000_000);
        let bytes = stack.headers(&Connection::new(0, 0, 0), &segment, context).bytes;
        let word = |at: usize| u64::from(u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap()));
        assert_eq!(word(24), (1_000_000_001 + 5_000_000_000) % (1 << 32));
        // After 20 B of IPv4 and 20 B of TCP: two bytes of padding, kind and length, TSval, TSecr.
        assert_eq!((word(44), word(48)), (50 * 86_400 * 1000 % (1 << 32), 7));
    }

    #[test]
    fn a_duplicate_is_a_first_block_below_the_ack() {
        let (mss, window) = (1460, 1 << 30);
        let stack = CaptureHeaders {
            transport: Transport::Tcp {
                tick: Some(1_000_000),
                mss,
                sack: true,
                ecn: false,
                window,
            },
            nodes: vec![[0, 1]],
            own_hosts: false,
        };
        let mut sack = SackBlocks::default();
        sack[0] = cwnd_tcp::SackBlock::of(5000, 2000, 3000);
        sack[1] = cwnd_tcp::SackBlock::of(5000, 6000, 8000);
        let ack = Segment {
            seq: 5000,
            body: Body::Ack { window, echo: cwnd_packet::Echo::None, sack },
            ..crate::packet::data_segment(0, 0)
        };
        let context = HeaderContext { of_request: false, note: 7, payload: None };
        let bytes = stack.headers(&Connection::new(0, 0, 0), &ack, context).bytes;
        let word = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
        let number = word(28);
        // After the timestamps: two bytes of padding, kind and length.
        let edges = [0, 1, 2, 3].map(|n| word(56 + 4 * n).wrapping_sub(number) as i32);
        assert_eq!(edges, [-3000, -2000, 1000, 3000]);
    }
}
