//! Player of a script on a host with a sender and a receiver, in virtual time; system calls of the
//! application and their results.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use cwnd_packet::{Echo, Ecn};
use cwnd_quantity::{Duration, Time};
use cwnd_tcp::{
    Body, Config, Flags, Handshake, MAX_SACK_BLOCKS, Receiver, SackBlock, SackBlocks, Segment,
    Sender,
};

use super::code::{Names, TcpInfoFields, Verdict};
use super::language::{Call, Event, Packet, Script, What, When};
use super::session::{Role, Session};
use super::settings::{READS, WRITES, flags};

/// First difference between a script and the endpoint.
#[derive(Debug, PartialEq)]
pub struct Divergence {
    pub line: usize,
    pub expected: String,
    pub seen: String,
}

/// Numbers of comparisons of a script that passes.
#[derive(Debug, Default, PartialEq)]
pub struct Compared {
    /// Lines of sent segments, and assertions and results of calls that held.
    pub segments: usize,
    pub held: usize,
    /// Number of comparisons left out, by the name that the endpoint does not know.
    pub unknown: BTreeMap<String, usize>,
}

/// Plays a script to its end, or to the first difference.
pub fn play(script: &Script, session: &Session) -> Result<Compared, Divergence> {
    let mut player = Player::new(session);
    for event in &script.events[..session.played] {
        player.event(event).map_err(|(expected, seen)| Divergence {
            line: event.line,
            expected,
            seen,
        })?;
    }
    Ok(player.compared)
}

/// Expected and seen, as text.
type Differs = (String, String);

/// A segment that the host sent, with the script's sequence numbers.
#[derive(Clone, Debug)]
struct SentSegment {
    at: Time,
    kind: Kind,
    /// Acknowledgement number.
    ack: u64,
    ecn: Ecn,
    ece: bool,
}

#[derive(Clone, Debug)]
enum Kind {
    Syn,
    SynAck,
    Data { bytes: Range<u64>, cwr: bool },
    Ack { sack: Vec<Range<u64>>, echo: Time },
}

struct Player<'a> {
    session: &'a Session,
    sender: Sender,
    receiver: Receiver,
    now: Time,
    out: VecDeque<SentSegment>,
    /// Send time of the server's SYN-ACK, or of the client's SYN and then of its ACK of the
    /// SYN-ACK.
    syn_sent: Time,
    open: bool,
    written: u64,
    /// Bytes that the application read.
    read: u64,
    /// Byte range of each segment of new data, and of each data segment sent with its time.
    segments: Vec<Range<u64>>,
    sent: Vec<(Time, Range<u64>)>,
    /// TSvals that the script expects, and the times of their segments.
    stamps: Vec<(u64, Time)>,
    /// TSvals of segments that the script sends, and the endpoint's times for them.
    theirs: Vec<(u64, Time)>,
    names: Names,
    compared: Compared,
}

/// Longest wait for a segment whose time a script leaves open.
const LONGEST_WAIT: Duration = Duration::from_secs(600);

impl<'a> Player<'a> {
    fn new(session: &'a Session) -> Self {
        let config = Arc::new(Config::new(session.params.clone(), session.controller.clone()));
        Self {
            session,
            sender: Sender::new(config.clone()),
            receiver: Receiver::new(config),
            now: Time::ZERO,
            out: VecDeque::new(),
            syn_sent: Time::ZERO,
            open: false,
            written: 0,
            read: 0,
            segments: Vec::new(),
            sent: Vec::new(),
            stamps: Vec::new(),
            theirs: Vec::new(),
            names: Names::default(),
            compared: Compared::default(),
        }
    }

    fn event(&mut self, event: &Event) -> Result<(), Differs> {
        let Event { when, what, .. } = event;
        let (from, to) = match *when {
            When::Any => (self.now, self.now),
            When::At(from, to) => (Time(from), Time(to)),
            When::After(from, to) => (self.now + Duration(from), self.now + Duration(to)),
        };
        if let What::Out(packet) = what {
            // As in packetdrill: the tolerance of a time is the script's, or an eighth of the pause
            // if that is more.
            let slack = self.session.tolerance.max(from.since(self.now.min(from)).0 / 8);
            let (earliest, latest) = match when {
                When::Any => (Time::ZERO, self.now + LONGEST_WAIT),
                _ => (Time(from.0.saturating_sub(slack)), Time(to.0 + slack)),
            };
            self.expect(packet, earliest, latest)?;
            self.compared.segments += 1;
            return Ok(());
        }
        self.run_until(from);
        self.now = self.now.max(from);
        match what {
            What::Call(call) => self.call(call, event.blocks)?,
            What::In(packet) => self.arrive(packet),
            What::Code(code) => self.check(code)?,
            What::Command(_) | What::Other(_) | What::Out(_) => {}
        }
        self.transmit();
        Ok(())
    }

    fn not_checked(&mut self, what: &str) {
        *self.compared.unknown.entry(what.to_owned()).or_default() += 1;
    }

    const fn facts(&self) -> TcpInfoFields<'_> {
        TcpInfoFields {
            sender: &self.sender,
            receiver: &self.receiver,
            written: self.written,
            segments: self.segments.as_slice(),
        }
    }

    /// Lets all timers expire that are due before `then`.
    fn run_until(&mut self, then: Time) {
        while self.next_timer() < then {
            self.expire();
        }
    }

    fn next_timer(&self) -> Time {
        self.sender.next_timer().min(self.receiver.next_timer())
    }

    fn expire(&mut self) {
        self.now = self.now.max(self.next_timer());
        self.sender.on_timer(self.now);
        self.transmit();
        if let Some(ack) = self.receiver.on_timer(self.now) {
            self.acknowledge(&ack);
        }
    }

    fn transmit(&mut self) {
        while let Some(segment) = self.sender.poll_transmit(self.now) {
            let mut left =
                SentSegment { at: self.now, kind: Kind::Syn, ack: 0, ecn: segment.ecn, ece: false };
            if segment.flags.has(Flags::SYN) {
                self.syn_sent = self.now;
            } else {
                let bytes = segment.seq + 1..segment.end() + 1;
                if self.segments.last().is_none_or(|last| last.end <= bytes.start) {
                    self.segments.push(bytes.clone());
                }
                self.sent.push((self.now, bytes.clone()));
                left.ack = self.receiver.piggyback_ack(u64::MAX).seq + 1;
                left.kind = Kind::Data { bytes, cwr: segment.flags.has(Flags::CWR) };
                self.receiver.on_piggybacked();
            }
            self.out.push_back(left);
        }
    }

    /// Queues the receiver's ACK as sent.
    fn acknowledge(&mut self, ack: &Segment) {
        let number = ack.seq + 1;
        let blocks = ack.sack().into_iter().filter(|block| block.len > 0);
        let sack = blocks.map(|block| block.start(number)..block.end(number));
        let kind = Kind::Ack { sack: sack.collect(), echo: ack.ts };
        let ece = ack.flags.has(Flags::ECE);
        self.out.push_back(SentSegment { at: self.now, kind, ack: number, ecn: ack.ecn, ece });
    }

    fn arrive(&mut self, packet: &Packet) {
        let now = self.now;
        let ts = packet.timestamps().map_or(now, |(val, _)| self.stamp(val));
        if packet.has('S') {
            let syn = data(0, 0, ts, Flags::SYN, Ecn::NotEct);
            let reply = self.receiver.on_segment(now, &syn);
            let mut left =
                SentSegment { at: now, kind: Kind::SynAck, ack: 1, ecn: Ecn::NotEct, ece: false };
            if self.session.role == Role::Client {
                let ack = self.ack(packet, Flags::SYN, 0);
                self.sender.on_segment(now, &ack);
                self.open = true;
                left.kind = Kind::Ack { sack: Vec::new(), echo: now };
            }
            if reply.is_some() {
                self.syn_sent = now;
                self.out.push_back(left);
            }
            return;
        }
        if !self.open {
            self.open = true;
            self.sender.accept(now, Handshake { syn_acks: 1, last: self.syn_sent });
        }
        let bytes = packet.bytes();
        // RFC 5681 § 2: a segment with data is no duplicate ACK.
        if let Some(number) = packet.ack
            && (bytes == 0 || number > self.sender.acknowledged() + 1 || !packet.sack().is_empty())
        {
            let flags = if packet.has('E') { Flags::ECE } else { Flags::default() };
            let ack = self.ack(packet, flags, self.session.window_scale);
            self.sender.on_segment(now, &ack);
        }
        if bytes == 0 {
            return;
        }
        let mut flags = if packet.has('P') { Flags::PSH } else { Flags::default() };
        if packet.has('W') {
            flags = flags.with(Flags::CWR);
        }
        let segment = data(packet.payload.start.saturating_sub(1), bytes, ts, flags, ecn(packet));
        let ack = self.receiver.on_segment(now, &segment);
        let before = self.out.len();
        self.transmit();
        // Linux sends data first (`tcp_data_snd_check`), which carries the acknowledgement.
        if let Some(ack) = ack
            && (self.out.len() == before || ack.sack()[0].len > 0)
        {
            self.acknowledge(&ack);
        }
    }

    /// Converts a TSval of the script to the endpoint's time. The endpoint assumes equal clocks, so
    /// the first TSval sets the offset.
    fn stamp(&mut self, val: u64) -> Time {
        let (first, at) = self.theirs.first().copied().unwrap_or((val, self.now));
        let (later, earlier) = (val.saturating_sub(first), first.saturating_sub(val));
        let at = Time((at + Duration::from_millis(later)).0.saturating_sub(earlier * 1_000_000));
        let at = at.min(self.now);
        self.theirs.push((val, at));
        at
    }

    /// Builds the ACK for the sender from a packet of the script.
    fn ack(&self, packet: &Packet, flags: Flags, scale: u32) -> Segment {
        let number = packet.ack.unwrap_or(1);
        let mut sack = SackBlocks::default();
        for (slot, block) in sack.iter_mut().zip(packet.sack()) {
            *slot = SackBlock::of(number, block.start, block.end);
        }
        let window = packet.window.unwrap_or(0) << scale;
        let ts = match packet.timestamps() {
            Some((_, ecr)) => self.time_of(ecr),
            None => self.last_sent(number),
        };
        Segment {
            seq: number.saturating_sub(1),
            ts,
            len: 0,
            wire: 40,
            flags,
            ecn: Ecn::NotEct,
            body: Body::Ack { window: window as u32, echo: Echo::None, sack },
        }
    }

    /// Returns the send time of the segment with this TSval. A TSval that no line has shown is
    /// counted in milliseconds from the first one shown.
    fn time_of(&self, val: u64) -> Time {
        if let Some((_, at)) = self.stamps.iter().rev().find(|(shown, _)| *shown == val) {
            return *at;
        }
        let Some((shown, at)) = self.stamps.first() else { return self.syn_sent };
        let ms = val.saturating_sub(*shown);
        (*at + Duration::from_millis(ms)).min(self.now)
    }

    /// Returns the last send time of the data that an ACK newly acknowledges, else of the byte
    /// below its number: the echo it would carry. Without timestamps a sender cannot know that the
    /// original of a retransmission arrived.
    fn last_sent(&self, number: u64) -> Time {
        let first = 1 + self.sender.acknowledged();
        let newly = |bytes: &Range<u64>| bytes.start < number && bytes.end > first;
        if let Some((at, _)) = self.sent.iter().rev().find(|(_, bytes)| newly(bytes)) {
            return *at;
        }
        let covers = |bytes: &Range<u64>| bytes.start < number && number <= bytes.end;
        self.sent.iter().rev().find(|(_, bytes)| covers(bytes)).map_or(self.syn_sent, |(at, _)| *at)
    }

    /// Expects the next segment sent to be this one; a line may cover several segments of data.
    fn expect(&mut self, packet: &Packet, earliest: Time, latest: Time) -> Result<(), Differs> {
        let mut wanted = packet.payload.clone();
        loop {
            while self.out.is_empty() && self.next_timer() <= latest {
                self.expire();
            }
            let Some(left) = self.out.pop_front() else {
                let sender = self.sender.next_timer();
                let next = if sender == Time::NEVER {
                    "no timer runs".to_owned()
                } else {
                    format!("the timer is due at {sender}")
                };
                return Err((told(packet, earliest, latest), format!("nothing; {next}")));
            };
            let differs = |seen: String| Err((told(packet, earliest, latest), seen));
            if left.at < earliest || left.at > latest {
                return differs(format!("at {}: {}", left.at, shown(&left)));
            }
            self.now = self.now.max(left.at);
            if !self.is_as(packet, &left) {
                return differs(shown(&left));
            }
            if packet.sack().len() > MAX_SACK_BLOCKS {
                self.not_checked("the fourth SACK block");
            }
            if let Some((val, _)) = packet.timestamps() {
                self.stamps.push((val, left.at));
            }
            let Kind::Data { bytes, cwr } = &left.kind else { return Ok(()) };
            if bytes.start != wanted.start {
                return differs(shown(&left));
            }
            if bytes.end > wanted.end {
                // The rest of the segment is left for the next line.
                let kind = Kind::Data { bytes: wanted.end..bytes.end, cwr: *cwr };
                self.out.push_front(SentSegment { kind, ..left });
                return Ok(());
            }
            wanted.start = bytes.end;
            if wanted.is_empty() {
                return Ok(());
            }
        }
    }

    /// `true` if a sent segment matches the script, apart from bytes and time. PSH and windows are
    /// not compared: the endpoint does not know where writes end, and fills no buffer. Nor is ECE
    /// on data. E and W of a handshake are set by the session.
    fn is_as(&self, packet: &Packet, left: &SentSegment) -> bool {
        let ecn_is = packet.ecn.as_ref().is_none_or(|_| left.ecn == ecn(packet));
        let acks = packet.ack.is_none_or(|number| number == left.ack);
        match &left.kind {
            Kind::Syn => packet.has('S') && !packet.has('.'),
            Kind::SynAck => packet.has('S') && packet.has('.'),
            Kind::Data { bytes, cwr } => {
                let flags = packet.has('W') == *cwr && !packet.has('S');
                // A window probe may have no bytes.
                (packet.bytes() > 0) != bytes.is_empty() && flags && acks && ecn_is
            }
            Kind::Ack { sack, echo } => {
                let bare = packet.bytes() == 0 && !packet.has('S');
                // Four blocks fit without timestamps; the endpoint reports as many as fit beside
                // them.
                let told = &packet.sack()[..packet.sack().len().min(MAX_SACK_BLOCKS)];
                let blocks = packet.options.is_none() || told == sack.as_slice();
                let stands_for =
                    |ecr| self.theirs.iter().rev().find(|(val, _)| *val == ecr).map(|(_, at)| *at);
                let echoes =
                    packet.timestamps().is_none_or(|(_, ecr)| stands_for(ecr) == Some(*echo));
                // The ACK of the handshake echoes the SYN-ACK, whose TSval the endpoint does not
                // use.
                let echoes = echoes || left.ack == 1;
                bare && acks && ecn_is && blocks && echoes && packet.has('E') == left.ece
            }
        }
    }

    fn check(&mut self, code: &str) -> Result<(), Differs> {
        let mut names = core::mem::take(&mut self.names);
        let verdicts = names.run(code, |name| self.facts().of(name));
        self.names = names;
        for verdict in verdicts {
            match verdict {
                Verdict::Holds => self.compared.held += 1,
                Verdict::Fails(expected, seen) => return Err((expected, seen)),
                Verdict::Unknown(what) => self.not_checked(&what),
            }
        }
        Ok(())
    }
}

/// Builds a data segment or a SYN.
fn data(seq: u64, len: u64, ts: Time, flags: Flags, ecn: Ecn) -> Segment {
    Segment {
        seq,
        ts,
        len: len as u32,
        wire: (len + 40).min(65_535) as u16,
        flags,
        ecn,
        body: Body::DATA,
    }
}

fn ecn(packet: &Packet) -> Ecn {
    match packet.ecn.as_deref() {
        Some("ect0") => Ecn::Ect0,
        Some("ect1") => Ecn::Ect1,
        Some("ce") => Ecn::Ce,
        _ => Ecn::NotEct,
    }
}

fn told(packet: &Packet, earliest: Time, latest: Time) -> String {
    let Packet { flags, payload, ack, .. } = packet;
    let ack = ack.map_or(String::new(), |number| format!(" ack {number}"));
    let sack = blocks(packet.sack());
    format!("> {flags} {}:{}{ack}{sack} from {earliest} to {latest}", payload.start, payload.end)
}

fn shown(left: &SentSegment) -> String {
    let flags = if left.ece { "E" } else { "" };
    match &left.kind {
        Kind::Syn => "> S".to_owned(),
        Kind::SynAck => "> S.".to_owned(),
        Kind::Data { bytes, cwr } => {
            let flags = if *cwr { "W" } else { flags };
            format!("> {flags}. {}:{} ack {}", bytes.start, bytes.end, left.ack)
        }
        Kind::Ack { sack, .. } => format!("> {flags}. ack {}{}", left.ack, blocks(sack)),
    }
}

fn blocks(blocks: &[Range<u64>]) -> String {
    let told = blocks.iter().map(|block| format!(" {}:{}", block.start, block.end));
    if blocks.is_empty() { String::new() } else { format!(" sack{}", told.collect::<String>()) }
}

impl Player<'_> {
    fn call(&mut self, call: &Call, blocks: bool) -> Result<(), Differs> {
        match call.name.as_str() {
            "connect" => self.sender.open(),
            name if WRITES.contains(&name) => {
                // Bytes that the socket accepted; 0 if the call failed.
                let taken = call.moved();
                self.written += taken;
                self.sender.write(taken);
            }
            name if READS.contains(&name) => return self.read(call, blocks),
            "getsockopt" | "ioctl" => return self.ask(call),
            name @ ("epoll_wait" | "poll") => self.not_checked(name),
            _ => {}
        }
        Ok(())
    }

    /// Compares the result of a read with the bytes that arrived in order. Results of blocking
    /// calls and of failures other than EAGAIN are not checked.
    fn read(&mut self, call: &Call, blocks: bool) -> Result<(), Differs> {
        let asked = match call.name.as_str() {
            "read" | "recv" | "recvfrom" => call.arg(2).parse().ok(),
            _ => None,
        };
        let peeks = flags(call).any(|flag| flag == "MSG_PEEK");
        let failed = call.result.starts_with('-') && call.error != "EAGAIN";
        if blocks || failed || flags(call).any(|flag| flag == "MSG_ERRQUEUE") {
            self.not_checked(&call.name);
        } else {
            let there = self.unread();
            let gets = asked.map_or(there.min(call.moved()), |most: u64| most.min(there));
            let waits = call.error == "EAGAIN";
            if gets != call.moved() || waits && there > 0 {
                let wanted = format!("{}() = {} {}", call.name, call.result, call.error);
                return Err((wanted, format!("{there} bytes that arrived in order")));
            }
            self.compared.held += 1;
        }
        if !peeks {
            self.read += call.moved();
        }
        Ok(())
    }

    /// Bytes that arrived in order and are not read.
    fn unread(&self) -> u64 {
        self.receiver.piggyback_ack(u64::MAX).seq.saturating_sub(self.read)
    }

    /// Compares a query of the socket, such as SIOCINQ, with the endpoint's state.
    fn ask(&mut self, call: &Call) -> Result<(), Differs> {
        let unacked = self.written - self.sender.acknowledged();
        let (asked, answer) = match (call.name.as_str(), call.arg(1), call.arg(2)) {
            ("ioctl", "SIOCINQ" | "FIONREAD", told) => (told, Some(self.unread())),
            ("ioctl", "SIOCOUTQ", told) => (told, Some(unacked)),
            ("ioctl", "SIOCOUTQNSD", told) => (told, Some(self.facts().not_sent())),
            (_, _, "TCP_MAXSEG") if self.open => (call.arg(3), Some(self.sender.mss())),
            _ => ("", None),
        };
        let told = asked.trim_matches(['[', ']']).parse::<u64>();
        let (Some(answer), Ok(told)) = (answer, told) else {
            self.not_checked(&format!("{} {}", call.name, call.arg(2)));
            return Ok(());
        };
        if told != answer {
            return Err((format!("{}({})", call.name, call.args.join(", ")), answer.to_string()));
        }
        self.compared.held += 1;
        Ok(())
    }
}
