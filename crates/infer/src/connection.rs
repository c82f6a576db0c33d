//! Both ends of a connection, its handshake, and which end is the server.

use cwnd_quantity::{Duration, Time};

use crate::clock::Source;
use crate::duplicates;
use crate::event::{Event, Evidence, Kind, Probe, Timer, What, is_long};
use crate::half::{Half, Kept};
use crate::headers::{Host, Segment, flag};

/// Repeated SYNs and SYN-ACKs that are remembered.
const MOST_HANDSHAKES: usize = 32;
/// What took longer may have been lost and sent again (RFC 6298 § 2.1).
const INITIAL_RTO: Duration = Duration::from_secs(1);
/// A round trip so many times the other's says on which side the capture was made.
const CLEARLY: u64 = 2;

/// How a connection ended, as far as the capture goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum End {
    /// The capture ended first.
    #[default]
    Open,
    /// Both ends sent FIN.
    Closed,
    /// RST.
    Reset,
    /// Nothing came for long.
    Expired,
    /// There were too many others.
    GivenUp,
    /// Another one began between the same ports.
    Replaced,
}

impl End {
    /// As in the tables.
    pub const NAMES: [&'static str; 6] =
        ["open", "closed", "reset", "expired", "given_up", "replaced"];
}

/// When SYN and SYN-ACK were seen.
#[derive(Clone, Debug, Default)]
struct Handshake {
    /// By which end, its number, when first and when last.
    syn: Option<(usize, u32, Time, Time)>,
    syn_ack: Option<(Time, Time)>,
    /// The second of each says nothing about round trips (Karn).
    again: bool,
    done: bool,
    ecn: bool,
    events: Vec<Event>,
}

/// A connection between two ends; the first is the lesser.
#[derive(Clone, Debug)]
pub struct Connection {
    /// The ends.
    pub ends: [Host; 2],
    /// What each of them sent.
    pub halves: [Half; 2],
    /// The first packet.
    pub began: Time,
    /// The last.
    pub last: Time,
    /// The last of each end.
    lasts: [Time; 2],
    /// The time after which copies of the handshake came.
    copied_after: Duration,
    /// The file of the first packet.
    file: u32,
    handshake: Handshake,
    fins: [bool; 2],
    reset: bool,
}

/// What was found of a connection.
#[derive(Clone, Debug)]
pub struct Summary {
    /// The ends: client and server.
    pub client: Host,
    /// See `client`.
    pub server: Host,
    /// Whether the client sent the SYN, if one was seen.
    pub client_opened: Option<bool>,
    /// What client and server sent.
    pub halves: [Kept; 2],
    /// First and last packet.
    pub began: Time,
    /// When the handshake was over, as far as it was seen.
    pub shaken: Time,
    /// See `began`.
    pub last: Time,
    /// The file of the first packet.
    pub file: u32,
    /// `true` if the SYN-ACK agreed to ECN (RFC 3168 § 6.1.1).
    pub ecn: bool,
    /// Round trips from here to the server, as a part of those to both ends: one if captured at the client.
    pub position: Option<f64>,
    /// SYN or SYN-ACK sent again.
    pub handshakes: Vec<Event>,
    /// How it ended.
    pub end: End,
}

impl Connection {
    /// A connection begins with this segment.
    pub fn new(segment: &Segment) -> Self {
        let ends = if segment.from < segment.to {
            [segment.from, segment.to]
        } else {
            [segment.to, segment.from]
        };
        Self {
            ends,
            halves: Default::default(),
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

    /// A SYN with another number than the one that began this connection: the ports are used again.
    pub fn is_replaced_by(&self, segment: &Segment) -> bool {
        let opens = segment.has(flag::SYN) && !segment.has(flag::ACK);
        opens && self.handshake.syn.is_none_or(|(_, seq, ..)| seq != segment.seq)
    }

    /// `true` for a copy of a packet that was seen `since` ago, not for data that were sent again.
    ///
    /// Identifications tell copies from retransmissions. Without, a copy comes within the time that
    /// a copy of the handshake took, about, and no acknowledgement is repeated unless something
    /// came.
    pub fn is_duplicate(&mut self, segment: &Segment, since: Duration) -> bool {
        if segment.id.is_some_and(|id| id != 0) {
            return since <= duplicates::IDENTIFIED;
        }
        if segment.has(flag::SYN) {
            let copied = since <= duplicates::HANDSHAKE;
            self.copied_after = self.copied_after.max(if copied { since } else { Duration::ZERO });
            return copied;
        }
        let most = duplicates::AT_ONCE.max(self.copied_after * duplicates::TIMES);
        let other = usize::from(segment.from == self.ends[0]);
        let answer = segment.space() == 0 && segment.at.since(self.lasts[other]) < since;
        since <= most && !answer
    }

    /// Takes a segment of either end.
    #[inline]
    pub fn take(&mut self, segment: &Segment) {
        let from = usize::from(segment.from != self.ends[0]);
        // Clocks of captures go back now and then: time stands still meanwhile.
        self.last = self.last.max(segment.at);
        let segment = &Segment { at: self.last, ..*segment };
        self.lasts[from] = self.last;
        self.halves[from].count(segment);
        if segment.has(flag::SYN) || !self.handshake.done {
            self.shake(segment, from);
        }
        let scale = self.halves[from].scale().filter(|_| !segment.has(flag::SYN));
        // Windows are scaled only if both ends said how.
        let scale = scale.filter(|_| self.halves[1 - from].scale().is_some());
        self.halves[from].sent(segment);
        self.halves[1 - from].answered(segment, scale);
        self.fins[from] |= segment.has(flag::FIN);
        self.reset |= segment.has(flag::RST);
    }

    fn shake(&mut self, segment: &Segment, from: usize) {
        let now = segment.at;
        let shake = &mut self.handshake;
        match (segment.has(flag::SYN), segment.has(flag::ACK)) {
            (true, false) => match &mut shake.syn {
                None => shake.syn = Some((from, segment.seq, now, now)),
                Some((_, _, _, last)) => {
                    let began = std::mem::replace(last, now);
                    shake.again = true;
                    self.sent_again(What::Syn, began, now);
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
                        self.halves[from].rtt.sample(now, now.since(first), Source::Handshake);
                    }
                }
                Some((_, last)) => {
                    let began = std::mem::replace(last, now);
                    shake.again = true;
                    // A SYN that came again was answered again.
                    if shake.syn.is_none_or(|(_, _, _, syn)| syn <= began) {
                        self.sent_again(What::SynAck, began, now);
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
                    self.halves[from].rtt.sample(now, now.since(first), Source::Handshake);
                }
            }
        }
    }

    fn sent_again(&mut self, what: What, began: Time, ended: Time) {
        let events = &mut self.handshake.events;
        if events.len() == MOST_HANDSHAKES {
            return;
        }
        let again = events.iter().any(|event| event.what == what);
        let gap = ended.since(began);
        events.push(Event {
            began,
            ended,
            rtt: Duration::ZERO,
            variation: Duration::ZERO,
            lasting: Duration::ZERO,
            queued: Duration::ZERO,
            linux: Timer::default(),
            delay: Duration::ZERO,
            held: false,
            waited: gap,
            asked: false,
            repeated: false,
            pushed: true,
            written: false,
            idle: gap,
            probe: Probe::No,
            missing: None,
            new: false,
            twice: false,
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

    /// Whether both ends have said that they are done, or one that it won't have it.
    pub fn is_over(&self) -> bool {
        self.reset || self.fins == [true; 2]
    }

    /// What was found; `end` where the packets do not say it.
    pub fn finish(mut self, end: End) -> Summary {
        self.halves.iter_mut().for_each(Half::end);
        let server = self.server();
        let rtt = |half: &Half| half.rtt.is_known().then_some(half.rtt.min.0 as f64);
        let (far, near) = (rtt(&self.halves[server]), rtt(&self.halves[1 - server]));
        let position = far.zip(near).and_then(|(far, near)| {
            let both = far + near;
            (both > 0.0).then(|| far / both)
        });
        // What the sender measures has the way from here to the other end besides.
        let beyond = self.halves[1 - server].rtt.min;
        for event in &mut self.halves[server].events {
            event.delay = event.delay.max(beyond);
        }
        let client_opened = self.handshake.syn.map(|(by, ..)| by != server);
        let [a, b] = self.halves.map(Half::into_kept);
        Summary {
            client: self.ends[1 - server],
            server: self.ends[server],
            client_opened,
            halves: if server == 1 { [a, b] } else { [b, a] },
            began: self.began,
            shaken: self.handshake.syn_ack.map_or(self.began, |(_, last)| last),
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

    /// The end that is farther away if that is clear, else the one that sent more.
    fn server(&self) -> usize {
        let [a, b] = &self.halves;
        if a.rtt.is_known() && b.rtt.is_known() {
            let clearly = |far: &Half, near: &Half| far.rtt.min > near.rtt.min * CLEARLY;
            if clearly(a, b) {
                return 0;
            }
            if clearly(b, a) {
                return 1;
            }
        }
        // Who opened it is near, and it is not known how far the other is: its answer to the SYN came late.
        if let Some((by, ..)) = self.handshake.syn
            && self.halves[by].rtt.is_known()
            && !self.halves[1 - by].rtt.is_known()
        {
            return 1 - by;
        }
        usize::from(b.counts.bytes > a.counts.bytes)
    }
}
