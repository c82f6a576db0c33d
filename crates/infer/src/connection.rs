//! A connection: its two ends, its handshake, and the choice of the end that is the server.
//!
//! Linux keeps metrics of a client across connections (`tcp_metrics`). The timeout before the first
//! data are acknowledged follows the kept round-trip time if that is longer than the handshake
//! took.

use std::collections::BTreeMap;
use std::net::IpAddr;

use cwnd_quantity::{Duration, Time};

use crate::clock::Source;
use crate::direction::{DirectionState, DirectionSummary, Placed};
use crate::event::{Event, Evidence, Kind, Probe, SegmentKind, Timer, is_long};
use crate::headers::{Host, Segment, flag};

/// Maximum number of repeated SYNs and SYN-ACKs recorded for a connection.
const MAX_HANDSHAKES: usize = 32;
/// Initial retransmission timeout (RFC 6298 § 2.1). An ACK that follows its SYN-ACK this late may
/// answer a lost retransmission, and gives no RTT sample.
const INITIAL_RTO: Duration = Duration::from_secs(1);
/// Ratio of the minimum RTTs to both ends above which the farther end is taken for the server.
const CLEARLY: u64 = 2;

/// Reason why a connection ended in the capture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum End {
    /// The capture ended first.
    #[default]
    Open,
    /// Both ends sent FIN.
    Closed,
    /// One end sent RST.
    Reset,
    /// No packet came for [`Limits::idle`](crate::Limits::idle).
    Expired,
    /// Too many other connections were open.
    GivenUp,
    /// A new connection began between the same addresses and ports.
    Replaced,
}

impl End {
    /// Names in the column `end`, in the order of the variants.
    pub const NAMES: [&'static str; 6] =
        ["open", "closed", "reset", "expired", "given_up", "replaced"];
}

/// SYN and SYN-ACK of a connection, with their capture times.
#[derive(Clone, Debug, Default)]
struct Handshake {
    /// Index of the end that sent the SYN, its sequence number, and the times of its first and last
    /// copy.
    syn: Option<(usize, u32, Time, Time)>,
    /// Times of the first and last SYN-ACK.
    syn_ack: Option<(Time, Time)>,
    /// `true` once a SYN or SYN-ACK came again: then neither gives an RTT sample (Karn's
    /// algorithm).
    again: bool,
    /// `true` once a packet without SYN was captured.
    done: bool,
    ecn: bool,
    events: Vec<Event>,
}

/// State of an open connection. The ends are sorted by address and port; the lesser is the first.
#[derive(Clone, Debug)]
pub struct Connection {
    /// Addresses and ports of both ends.
    pub ends: [Host; 2],
    /// Data sent by each end.
    pub directions: [DirectionState; 2],
    /// Capture time of the first packet.
    pub began: Time,
    /// Capture time of the last packet of either end.
    pub last: Time,
    /// Capture time of the last packet of each end.
    lasts: [Time; 2],
    /// Longest time from a SYN or SYN-ACK without identification to a second capture of the same
    /// packet.
    copied_after: Duration,
    /// Number of the file that holds the first packet.
    file: u32,
    handshake: Handshake,
    /// `true` for each end that sent FIN.
    fins: [bool; 2],
    reset: bool,
}

/// Result of a finished connection.
#[derive(Clone, Debug)]
pub struct Summary {
    /// Address and port of the client.
    pub client: Host,
    /// Address and port of the server.
    pub server: Host,
    /// `true` if the client sent the SYN; `None` if no SYN was captured.
    pub client_opened: Option<bool>,
    /// Data sent by the client and by the server, in this order.
    pub directions: [DirectionSummary; 2],
    /// Capture time of the first packet.
    pub began: Time,
    /// Capture time of the last SYN-ACK; that of the first packet if none was captured.
    pub handshake_end: Time,
    /// Capture time of the last packet.
    pub last: Time,
    /// Number of the file that holds the first packet.
    pub file: u32,
    /// `true` if the first SYN-ACK captured agreed to ECN (ECE without CWR, RFC 3168 § 6.1.1);
    /// `false` also if none was captured.
    pub ecn: bool,
    /// Minimum RTT from the capture point to the server, as a fraction of the sum of those to both
    /// ends: 1 if captured at the client; `None` unless both are known.
    pub position: Option<f64>,
    /// Retransmissions of SYN and SYN-ACK, up to 32.
    pub handshakes: Vec<Event>,
    /// Reason of its end.
    pub end: End,
}

impl Connection {
    /// Creates the state of a connection whose first packet is `segment`.
    pub fn new(segment: &Segment) -> Self {
        let ends = if segment.from < segment.to {
            [segment.from, segment.to]
        } else {
            [segment.to, segment.from]
        };
        Self {
            ends,
            directions: Default::default(),
            began: segment.at,
            last: segment.at,
            lasts: [Time::ZERO; 2],
            copied_after: Duration::ZERO,
            file: segment.file,
            handshake: Handshake::default(),
            fins: [false; 2],
            reset: false,
        }
    }

    /// `true` if `segment` is a SYN with another sequence number than this connection's, or if this
    /// connection's SYN was not captured: the ports are reused.
    pub fn is_replaced_by(&self, segment: &Segment) -> bool {
        let opens = segment.has(flag::SYN) && !segment.has(flag::ACK);
        opens && self.handshake.syn.is_none_or(|(_, seq, ..)| seq != segment.seq)
    }

    /// `true` if `segment` is a second capture of the packet that was seen `since` ago, and `false`
    /// if it is a retransmission.
    ///
    /// A copy has the same IPv4 identification and comes within `IDENTIFIED`, a
    /// retransmission has another. Without identifications, a copy may take `TIMES`
    /// times as long as a copy of the handshake took, and 10 µs in any case. A pure ACK is not a
    /// copy if the other end sent a packet in between.
    pub fn is_duplicate(&mut self, segment: &Segment, since: Duration) -> bool {
        if segment.id.is_some_and(|id| id != 0) {
            return since <= IDENTIFIED;
        }
        if segment.has(flag::SYN) {
            let copied = since <= HANDSHAKE;
            self.copied_after = self.copied_after.max(if copied { since } else { Duration::ZERO });
            return copied;
        }
        let most = AT_ONCE.max(self.copied_after * TIMES);
        let other = usize::from(segment.from == self.ends[0]);
        let answer = segment.space() == 0 && segment.at.since(self.lasts[other]) < since;
        since <= most && !answer
    }

    /// Processes a segment of either end, and returns the place of its data in their stream.
    #[inline]
    pub fn on_segment(&mut self, segment: &Segment) -> Option<Placed> {
        let from = usize::from(segment.from != self.ends[0]);
        // Clocks of captures step back now and then: times of a connection never decrease.
        self.last = self.last.max(segment.at);
        let segment = &Segment { at: self.last, ..*segment };
        self.lasts[from] = self.last;
        self.directions[from].count(segment);
        if segment.has(flag::SYN) || !self.handshake.done {
            self.on_handshake(segment, from);
        }
        let scale = self.scale(segment);
        let placed = self.directions[from].on_sender_segment(segment);
        self.directions[1 - from].on_receiver_segment(segment, scale);
        self.fins[from] |= segment.has(flag::FIN);
        self.reset |= segment.has(flag::RST);
        placed
    }

    /// Returns the scale of a segment's window: windows are scaled only if both ends sent the
    /// option, and not in a SYN (RFC 7323 § 2.2).
    pub fn scale(&self, segment: &Segment) -> Option<u8> {
        let from = usize::from(segment.from != self.ends[0]);
        let both = self.directions[from].scale().zip(self.directions[1 - from].scale());
        both.map(|(scale, _)| scale).filter(|_| !segment.has(flag::SYN))
    }

    /// Tracks the handshake, and samples the RTTs to both ends.
    fn on_handshake(&mut self, segment: &Segment, from: usize) {
        let now = segment.at;
        let shake = &mut self.handshake;
        match (segment.has(flag::SYN), segment.has(flag::ACK)) {
            (true, false) => match &mut shake.syn {
                None => shake.syn = Some((from, segment.seq, now, now)),
                Some((_, _, _, last)) => {
                    let began = std::mem::replace(last, now);
                    shake.again = true;
                    self.record_repeat(SegmentKind::Syn, began, now);
                }
            },
            (true, true) => match &mut shake.syn_ack {
                None => {
                    shake.syn_ack = Some((now, now));
                    shake.ecn = segment.has(flag::ECE) && !segment.has(flag::CWR);
                    if let Some((by, _, first, _)) = shake.syn
                        && by != from
                        && !shake.again
                    {
                        self.directions[from].rtt.sample(now, now.since(first), Source::Handshake);
                    }
                }
                Some((_, last)) => {
                    let began = std::mem::replace(last, now);
                    shake.again = true;
                    // A SYN that came again is answered by another SYN-ACK without any timeout.
                    if shake.syn.is_none_or(|(_, _, _, syn)| syn <= began) {
                        self.record_repeat(SegmentKind::SynAck, began, now);
                    }
                }
            },
            (false, _) => {
                shake.done = true;
                if let (Some((by, ..)), Some((first, _))) = (shake.syn, shake.syn_ack)
                    && by == from
                    && !shake.again
                    && now.since(first) < INITIAL_RTO
                {
                    self.directions[from].rtt.sample(now, now.since(first), Source::Handshake);
                }
            }
        }
    }

    /// Records a repeated SYN or SYN-ACK as a timeout, unless too many were recorded.
    fn record_repeat(&mut self, what: SegmentKind, began: Time, ended: Time) {
        let events = &mut self.handshake.events;
        if events.len() == MAX_HANDSHAKES {
            return;
        }
        let again = events.iter().any(|event| event.what == what);
        let gap = ended.since(began);
        events.push(Event {
            began,
            ended,
            rtt: Duration::ZERO,
            variation: Duration::ZERO,
            rttvar_linux: Duration::ZERO,
            queueing_delay: Duration::ZERO,
            linux: Timer::default(),
            delay: Duration::ZERO,
            backed_off: false,
            waited: gap,
            after_request: false,
            request_repeated: false,
            pushed: true,
            all_acked: false,
            idle: gap,
            probe: Probe::No,
            missing: None,
            new: false,
            repair_lost: false,
            offset: 0,
            rule: is_long(gap, Duration::ZERO),
            what,
            kind: Kind::Timeout,
            evidence: Evidence::Handshake,
            again,
            before: 0,
            timeouts: 1,
            rto: Duration::ZERO,
        });
    }

    /// `true` if both ends sent FIN, or one sent RST.
    pub fn is_over(&self) -> bool {
        self.reset || self.fins == [true; 2]
    }

    /// Ends the connection for the reason `end`. A connection that is open, expired or replaced
    /// counts as closed or reset if its packets say so.
    pub fn finish(mut self, end: End) -> Summary {
        self.directions.iter_mut().for_each(DirectionState::end);
        let server = self.server();
        let rtt = |half: &DirectionState| half.rtt.is_known().then_some(half.rtt.min.0 as f64);
        let (far, near) = (rtt(&self.directions[server]), rtt(&self.directions[1 - server]));
        let position = far.zip(near).and_then(|(far, near)| {
            let both = far + near;
            (both > 0.0).then(|| far / both)
        });
        // The sender's RTT includes the path from the capture point to the other end.
        let beyond = self.directions[1 - server].rtt.min;
        for event in &mut self.directions[server].events {
            event.delay = event.delay.max(beyond);
        }
        let client_opened = self.handshake.syn.map(|(by, ..)| by != server);
        let [a, b] = self.directions.map(DirectionState::into_summary);
        Summary {
            client: self.ends[1 - server],
            server: self.ends[server],
            client_opened,
            directions: if server == 1 { [a, b] } else { [b, a] },
            began: self.began,
            handshake_end: self.handshake.syn_ack.map_or(self.began, |(_, last)| last),
            last: self.last,
            file: self.file,
            ecn: self.handshake.ecn,
            position,
            handshakes: self.handshake.events,
            end: match end {
                End::Replaced | End::Open | End::Expired if self.reset => End::Reset,
                End::Replaced | End::Open | End::Expired if self.fins == [true; 2] => End::Closed,
                end => end,
            },
        }
    }

    /// Returns the index of the server. It is the end that is clearly farther away; else the one
    /// with an unknown RTT that did not open the connection; else the one that sent more bytes.
    pub fn server(&self) -> usize {
        let [a, b] = &self.directions;
        if a.rtt.is_known() && b.rtt.is_known() {
            let clearly =
                |far: &DirectionState, near: &DirectionState| far.rtt.min > near.rtt.min * CLEARLY;
            if clearly(a, b) {
                return 0;
            }
            if clearly(b, a) {
                return 1;
            }
        }
        // The distance of the opener is known, the other's is not, since its SYN-ACK came late: the
        // opener is near.
        if let Some((by, ..)) = self.handshake.syn
            && self.directions[by].rtt.is_known()
            && !self.directions[1 - by].rtt.is_known()
        {
            return 1 - by;
        }
        usize::from(b.counts.bytes > a.counts.bytes)
    }
}

/// Least amount added to a kept round-trip time (`TCP_RTO_MIN`).
const MIN_RTTVAR: Duration = Duration::from_millis(200);

/// Sets the RTO of first silences by the SRTT that their server kept of closed connections with the
/// same client, if that is longer than their own.
pub fn apply_tcp_metrics<'a>(summaries: impl Iterator<Item = &'a mut Summary>) {
    let mut all: Vec<&mut Summary> = summaries.collect();
    let mut moments: Vec<(Time, bool, usize)> = Vec::new();
    for (number, summary) in all.iter().enumerate() {
        moments.push((summary.handshake_end, true, number));
        if summary.end == End::Closed {
            moments.push((summary.last, false, number));
        }
    }
    moments.sort_unstable();
    let mut known: BTreeMap<(IpAddr, IpAddr), Duration> = BTreeMap::new();
    for (_, begins, number) in moments {
        let summary = &mut *all[number];
        let hosts = (summary.server.address(), summary.client.address());
        let server = &mut summary.directions[1];
        if begins {
            let Some(&round) = known.get(&hosts) else { continue };
            for event in server.events.iter_mut().filter(|event| event.linux.first) {
                if round > event.linux.smoothed {
                    event.linux.timeout = round + (round * 2).max(MIN_RTTVAR);
                }
            }
        } else if server.smoothed > Duration::ZERO {
            // A longer SRTT replaces it at once, a shorter one counts an eighth
            // (`tcp_update_metrics`).
            let round = known.entry(hosts).or_default();
            *round = if server.smoothed > *round {
                server.smoothed
            } else {
                *round - (*round - server.smoothed) / 8
            };
        }
    }
}

/// Number of sets of the table. The packets of a set fit a cache line. A copy is found while fewer
/// than four later packets fall into its set: with 1,000 packets in between, 1 copy in 10,000 is
/// missed.
const SETS: usize = 1 << 12;
const WAYS: usize = 4;

/// Longest time to a copy that has the same IPv4 identification, other than zero.
const IDENTIFIED: Duration = Duration::from_millis(100);
/// Longest time to a copy of a SYN or SYN-ACK without identification. A retransmission comes after
/// a second (RFC 6298 § 2.1).
const HANDSHAKE: Duration = Duration::from_millis(1);
/// Longest time to a copy without identification: at 1 Gbit/s two full segments are 12 µs apart.
const AT_ONCE: Duration = Duration::from_micros(10);
/// Longest time to a copy without identification, as a multiple of the longest time to a copy of
/// the handshake, if that is more than [`AT_ONCE`]: queues of a mirror port vary.
const TIMES: u64 = 8;

/// Table of the packets seen last, by the digests of their headers. Captures of all interfaces or
/// of mirror ports contain packets more than once.
#[derive(Debug)]
pub struct Duplicates {
    /// Digest and capture time of the packets of each set, newest first.
    sets: Vec<[(u64, Time); WAYS]>,
}

impl Default for Duplicates {
    fn default() -> Self {
        Self { sets: vec![[(0, Time::ZERO); WAYS]; SETS] }
    }
}

impl Duplicates {
    /// Returns the time since the same packet was last seen, if it was, and records this packet.
    #[inline]
    pub fn since(&mut self, segment: &Segment) -> Option<Duration> {
        let set = &mut self.sets[segment.digest as usize % SETS];
        let found = set.iter().position(|&(digest, _)| digest == segment.digest);
        let last = found.map(|place| set[place].1);
        set.copy_within(..found.unwrap_or(WAYS - 1), 1);
        set[0] = (segment.digest, segment.at);
        last.map(|last| segment.at.since(last))
    }
}
