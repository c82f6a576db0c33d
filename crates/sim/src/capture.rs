//! Captures: packets of chosen links, written to pcapng files as they pass.
//!
//! A link's packet is captured when its last byte leaves: after queueing, before propagation. A
//! dropped packet is captured at the drop, with its reason as a comment.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::io::{self, Write};

use cwnd_aqm::{Outcome, Reason, Verdict};
use cwnd_link::{Line, Reader};
use cwnd_packet::{Ecn, Interface, Writer};
use cwnd_quantity::Time;
use cwnd_scenario::{LinkRate, Scenario};
use cwnd_tcp::Segment;

use crate::capture_headers::{CaptureHeaders, Connection, End, HeaderContext};
use crate::connection_ends::Exchange;
use crate::event::FlowId;
use crate::packet::{Packet, set_note, take_note};
use crate::pipe::LinkParts;
use crate::segments::Segments;

/// Output of a capture file.
pub type Output = Box<dyn Write + Send>;

/// Captures of a run, with the state from which headers of packets are built.
pub struct Capture {
    /// Capture files; `None` once writing failed. The output must keep its error itself.
    files: Vec<Option<Writer<Output>>>,
    links: Vec<Tap>,
    /// Link of each line, by the line's index; `None` for lines of hosts.
    link_of_line: Vec<Option<usize>>,
    /// Verdict reader and link of each captured line.
    readers: BTreeMap<u32, (Reader, usize)>,
    link_of_pipe: Vec<Option<usize>>,
    headers: Vec<CaptureHeaders>,
    /// Flows and sources of datagrams, past ones included, by the bits of their identifiers.
    flows: BTreeMap<u32, Connection>,
}

/// Capture state of a link.
#[derive(Debug, Default)]
struct Tap {
    /// File and interface number of each capture of the link.
    interfaces: Vec<(usize, u32)>,
    /// Packets marked at this link that have not left it.
    marked: VecDeque<(Identity, Reason)>,
    has_pipe: bool,
}

/// Identity of a data packet: flow, sequence number and send time. A sender sends a byte at most
/// once at a time.
type Identity = (FlowId, u64, Time);

impl fmt::Debug for Capture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Capture").field("links", &self.links).finish_non_exhaustive()
    }
}

// The methods that the network calls are cold: most runs capture nothing, and their code stays
// compact.
impl Capture {
    /// Creates a capture without files.
    pub fn new(scenario: &Scenario, links: &[LinkParts]) -> Self {
        let mut capture = Self {
            files: Vec::new(),
            links: Vec::new(),
            link_of_line: Vec::new(),
            readers: BTreeMap::new(),
            link_of_pipe: Vec::new(),
            headers: scenario
                .flows
                .iter()
                .map(|group| CaptureHeaders::new(scenario, group))
                .collect(),
            flows: BTreeMap::new(),
        };
        for (index, parts) in links.iter().enumerate() {
            capture.links.push(Tap { has_pipe: parts.pipe.is_some(), ..Tap::default() });
            map_to_link(&mut capture.link_of_line, parts.line, index);
            map_to_link(&mut capture.link_of_pipe, parts.pipe, index);
        }
        capture
    }

    /// Adds a file with the packets of these links.
    pub fn add(&mut self, scenario: &Scenario, links: &[usize], to: Output) -> io::Result<()> {
        let application = concat!("cwnd ", env!("CARGO_PKG_VERSION"));
        let about = format!("{}, seed {}", scenario.name, scenario.run.seed);
        let mut writer = Writer::new(to, application, &about)?;
        for &link in links {
            let settings = &scenario.links[link];
            let (from, to) = (&scenario.nodes[settings.from], &scenario.nodes[settings.to]);
            let interface = writer.interface(&Interface {
                name: &settings.name,
                description: &format!("simulated link from {from} to {to}"),
                bit_s: match &settings.rate {
                    LinkRate::Steps { initial, changes, .. } if changes.is_empty() => {
                        Some(initial.0)
                    }
                    LinkRate::Steps { .. } | LinkRate::Trace(_) | LinkRate::Unlimited => None,
                },
            })?;
            self.links[link].interfaces.push((self.files.len(), interface));
        }
        self.files.push(Some(writer));
        Ok(())
    }

    /// Registers a new flow, perhaps in the slot of an earlier one.
    pub fn begin_flow(&mut self, id: FlowId, of: Connection) {
        self.flows.insert(id.bits(), of);
    }

    /// Registers a new request of a client.
    pub fn begin_exchange(&mut self, id: FlowId, exchange: Exchange) {
        if let Some(connection) = self.flows.get_mut(&id.bits()) {
            connection.begin(exchange);
        }
    }

    /// Stores in a sent segment the note that its header needs and the simulation does not.
    #[cold]
    pub fn sent_by_host(&mut self, now: Time, packet: Packet, segment: &mut Segment) {
        let Some(flow) = connection(&mut self.flows, packet) else { return };
        let of_request = packet.is_of_request();
        set_note(segment, self.headers[flow.group()].note(now, flow, of_request, segment));
    }

    /// Removes the note from a received segment; its TSval updates the connection.
    #[cold]
    pub fn received_by_host(&mut self, packet: Packet, segment: &mut Segment) {
        let note = take_note(segment);
        let Some(flow) = connection(&mut self.flows, packet) else { return };
        if let Some(ts_val) = self.headers[flow.group()].ts_val(segment, note) {
            let end = End::reached_by(packet.is_of_request(), segment.is_ack());
            flow.update_ts_recent(end, ts_val);
        }
    }

    /// Reads the verdicts of a line's queue after an arrival or departure: keeps marks, writes
    /// dropped packets.
    pub fn verdicts(&mut self, line: u32, of: &mut Line<Packet>, segments: &Segments) {
        let Some(&(reader, link)) = self.readers.get(&line) else { return };
        while let Some(Verdict { at, packet, what, reason }) = of.read(reader) {
            let (flow, segment) = (packet.flow(), segments.get(packet.slot()));
            match what {
                Outcome::Marked { .. } => {
                    // A meter may report a mark of the queue again: only the first verdict counts.
                    let (marked, this) = (&mut self.links[link].marked, identity(flow, segment));
                    if !marked.iter().any(|(other, _)| *other == this) {
                        marked.push_back((this, reason));
                    }
                }
                Outcome::Dropped => self.write(at, link, packet, segments, Some(reason)),
            }
        }
    }

    /// Writes a packet that left a line, unless its link has a pipe.
    #[cold]
    pub fn left_line(&mut self, now: Time, line: u32, packet: Packet, segments: &Segments) {
        if let Some(link) = self.link_of_line.get(line as usize).copied().flatten()
            && !self.links[link].has_pipe
        {
            self.write(now, link, packet, segments, None);
        }
    }

    /// Writes a packet that entered a pipe, with a comment if it was lost there.
    #[cold]
    pub fn entered_pipe(
        &mut self,
        now: Time,
        pipe: u32,
        packet: Packet,
        segments: &Segments,
        lost: bool,
    ) {
        if let Some(link) = self.link_of_pipe.get(pipe as usize).copied().flatten() {
            self.write(now, link, packet, segments, lost.then_some(cwnd_link::LOSS));
        }
    }

    fn write(
        &mut self,
        now: Time,
        link: usize,
        packet: Packet,
        segments: &Segments,
        dropped: Option<Reason>,
    ) {
        let segment = segments.get(packet.slot());
        let tap = &mut self.links[link];
        if tap.interfaces.is_empty() {
            return;
        }
        let mut comment = String::new();
        if segment.ecn == Ecn::Ce {
            let this = identity(packet.flow(), segment);
            if let Some(at) = tap.marked.iter().position(|(other, _)| *other == this)
                && let Some((_, reason)) = tap.marked.remove(at)
            {
                comment = format!("marked: {}", reason.name());
            }
        }
        if let Some(reason) = dropped {
            let before = if comment.is_empty() { "" } else { ", " };
            comment.push_str(before);
            comment.push_str("dropped: ");
            comment.push_str(reason.name());
        }
        let Some(flow) = connection(&mut self.flows, packet) else { return };
        let mut plain = *segment;
        let note = take_note(&mut plain);
        let payload = flow.has_endpoints().then(|| segments.payload(packet.slot()));
        let context = HeaderContext { of_request: packet.is_of_request(), note, payload };
        let headers = self.headers[flow.group()].headers(flow, &plain, context);
        for &(file, interface) in &tap.interfaces {
            let Some(writer) = &mut self.files[file] else { continue };
            if writer.packet(interface, now, &headers, &comment).is_err() {
                self.files[file] = None;
            }
        }
    }

    /// Flushes the files at the end of the run.
    pub fn end(&mut self) {
        for file in &mut self.files {
            if file.as_mut().is_some_and(|writer| writer.flush().is_err()) {
                *file = None;
            }
        }
    }

    /// Adds readers for the verdicts of the captured lines.
    pub fn read_lines(&mut self, lines: &mut [Line<Packet>]) {
        for (line, &link) in (0..).zip(&self.link_of_line) {
            if let Some(link) = link.filter(|&link| !self.links[link].interfaces.is_empty()) {
                let of = &mut lines[line as usize];
                self.readers.entry(line).or_insert_with(|| (of.reader(), link));
            }
        }
    }
}

/// Connection of a packet. Sources of datagrams have identifiers of their own.
fn connection(flows: &mut BTreeMap<u32, Connection>, of: Packet) -> Option<&mut Connection> {
    let id = of.flow();
    let own = flows.contains_key(&id.bits());
    flows.get_mut(&if own { id } else { id.of_requests() }.bits())
}

const fn identity(flow: FlowId, segment: &Segment) -> Identity {
    (flow, segment.seq, segment.ts)
}

fn map_to_link(table: &mut Vec<Option<usize>>, part: Option<u32>, link: usize) {
    let Some(part) = part else { return };
    let place = part as usize;
    table.resize(table.len().max(place + 1), None);
    table[place] = Some(link);
}
