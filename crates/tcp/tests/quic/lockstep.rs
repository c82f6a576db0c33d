//! quinn's client and the recovery under test on the same random path: both see the same packets,
//! ACK frames and timers at the same instants. After each event their losses, smoothed RTTs,
//! windows and timers are compared. Both use the same controller, so that equal windows mean equal
//! events.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;
use std::time::Instant;

use bytes::BytesMut;
use cwnd_quantity::{Duration, Time};
use cwnd_tcp::quic::{AckFrame, Params, Recovery, SentPacket};
use quinn_proto::EcnCodepoint;

use super::path::{self, BYTES, Family, Fate, PACKETS, Path};
use super::plain::{Space, Written};
use super::quinn::{Ack, Datagram, Frames, Peer};
use super::{Adapter, MDS, new_reno};

/// Largest difference of two timers that counts as equal: quinn multiplies by 9/8 in single
/// precision.
const TOLERANCE: Duration = Duration::from_micros(1);

/// Quantity in which quinn and the recovery under test differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Difference {
    Lost,
    Rtt,
    Timer,
    Window,
    /// A packet sent regardless of the window.
    Probe,
}

/// Clause of RFC 9002 to which a difference is traced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clause {
    /// § 5.2: after persistent congestion min_rtt SHOULD be the newest sample. quinn keeps the
    /// least sample, and so subtracts an ACK delay that is not subtracted here.
    MinRtt,
    /// § 7.6.2: no packet sent between two lost ones may be acknowledged. quinn sometimes skips a
    /// number, and counts the skipped number as acknowledged.
    SkippedNumber,
}

/// Result of the comparison over one pattern.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// The first difference, and its clause, if it is traced to one.
    pub difference: Option<(Difference, String, Option<Clause>)>,
    /// Time from the first packet to the last ACK.
    pub took: Duration,
    pub events: u64,
    /// Events after which quinn's timer for pacing or ACKs came before that for losses.
    pub hidden: u64,
    pub lost: u64,
    pub probe_timeouts: u64,
    /// Times that quinn established persistent congestion, and that it saw marks.
    pub persistent: u64,
    pub marks: u64,
}

/// Datagrams in transit, by their destination.
enum Arrival {
    AtServer(BytesMut, Option<EcnCodepoint>),
    AtClient(BytesMut, Vec<Written>),
}

/// Both ends, the path and the recovery under test.
struct Lockstep {
    client: Peer,
    server: Peer,
    adapter: Adapter,
    own: Recovery,
    /// Send times of the handshake's packets that are not acknowledged.
    handshake: BTreeMap<(u8, u64), Time>,
    arrivals: BinaryHeap<Reverse<(Time, u64)>>,
    on_the_way: BTreeMap<u64, Arrival>,
    /// Datagrams sent so far.
    sent: u64,
    /// Path with the pattern; before it begins each datagram arrives.
    path: Option<Path>,
    delay: Duration,
    /// Packets and bytes lost, and the send time of the last that was in flight.
    lost: (u64, u64, Time),
    /// Packets and bytes that quinn had lost when the comparison began.
    before: (u64, u64),
    /// Newest number sent, and those that quinn skipped.
    number: u64,
    skipped: Vec<u64>,
    /// ACK Delay of the newest ACK.
    ack_delay: Duration,
    outcome: Outcome,
}

/// Runs one pattern.
#[expect(clippy::disallowed_methods, reason = "quinn has no instant but those after a real one")]
pub fn run(family: Family, seed: u64, params: &Params) -> Outcome {
    let base = Instant::now();
    let adapter = Adapter::new(base);
    let mut lockstep = Lockstep {
        client: Peer::client(base, seed, &adapter),
        server: Peer::server(base, seed),
        own: Recovery::new(params, new_reno(MDS), MDS),
        adapter,
        handshake: BTreeMap::new(),
        arrivals: BinaryHeap::new(),
        on_the_way: BTreeMap::new(),
        sent: 0,
        path: None,
        delay: Path::new(family, seed, Time::ZERO, PACKETS).delay(),
        lost: (0, 0, Time::ZERO),
        before: (0, 0),
        number: 0,
        skipped: Vec::new(),
        ack_delay: Duration::ZERO,
        outcome: Outcome::default(),
    };
    // The handshake and the exchanges after it have no losses.
    let start = Time(3_000_000_000);
    lockstep.send(Time::ZERO);
    while lockstep.next() < start {
        let now = lockstep.next();
        lockstep.step(now);
    }
    lockstep.transfer(family, seed, start);
    lockstep.outcome
}

impl Lockstep {
    /// Transfers data over the drawn path until all is acknowledged.
    fn transfer(&mut self, family: Family, seed: u64, start: Time) {
        self.path = Some(Path::new(family, seed, start, PACKETS));
        self.adapter.shared().reset(self.own.congestion().clone());
        let path = self.client.connection().stats().path;
        self.before = (path.lost_packets, path.lost_bytes);
        // Packets with ACKs alone are never acknowledged, and are declared lost once later packets
        // are acknowledged.
        self.lost = (0, 0, Time::ZERO);
        assert_eq!(self.own.bytes_in_flight(), 0, "the handshake is over");
        let stream = self.client.write(BYTES as usize);
        self.send(start);
        while !self.client.has_finished(stream) {
            let now = self.next();
            self.outcome.took = now.since(start);
            assert!(now < start + Duration::from_secs(3600), "the transfer ends");
            self.step(now);
        }
    }

    /// Returns the time of the next event. Timers of both sides that differ by at most the
    /// tolerance count as one.
    fn next(&mut self) -> Time {
        let arrival = self.arrivals.peek().map_or(Time::NEVER, |Reverse((at, _))| *at);
        let (theirs, own) = (self.client.next_timer(), self.own.next_timer());
        let timer = if own.since(theirs) <= TOLERANCE { theirs.max(own) } else { theirs };
        arrival.min(timer).min(self.server.next_timer())
    }

    fn step(&mut self, now: Time) {
        self.outcome.events += 1;
        if let Some(&Reverse((at, number))) = self.arrivals.peek()
            && at <= now
        {
            self.arrivals.pop();
            match self.on_the_way.remove(&number).expect("it was sent") {
                Arrival::AtServer(bytes, ecn) => self.server.receive(now, bytes, ecn),
                Arrival::AtClient(bytes, packets) => self.receive(now, bytes, &packets),
            }
        } else if self.server.next_timer() <= now {
            self.server.on_timer(now);
        } else {
            self.client.on_timer(now);
            let timeouts = self.own.probe_timeouts();
            self.own.on_timer(now);
            self.outcome.probe_timeouts += u64::from(self.own.probe_timeouts() > timeouts);
            self.count_lost();
        }
        if self.path.is_some() {
            self.compare_state();
        }
        self.send(now);
        if self.path.is_some() {
            self.compare_timers();
        }
    }

    /// Passes a datagram to the client and its ACKs to the recovery under test, and compares both.
    fn receive(&mut self, now: Time, bytes: BytesMut, packets: &[Written]) {
        self.client.receive(now, bytes, None);
        self.adapter.shared().end_of_frame();
        let limited = self.adapter.shared().limited;
        for packet in packets {
            let Some(ack) = Frames::read(&packet.frames).ack else { continue };
            if packet.space != Space::Data {
                self.measure_handshake(now, packet.space, &ack);
                continue;
            }
            self.ack_delay = ack.delay;
            let frame = AckFrame { ranges: &ack.ranges, delay: ack.delay, ce: ack.ce };
            self.own.on_ack(now, &frame, limited);
            self.count_lost();
        }
    }

    /// Adds an RTT sample of the handshake's packet number spaces (RFC 9002 § 5).
    fn measure_handshake(&mut self, now: Time, space: Space, ack: &Ack) {
        let largest = self.handshake.remove(&(space as u8, ack.ranges[0].last));
        if let Some(sent) = largest {
            self.own.on_handshake_rtt(now, now.since(sent));
        }
    }

    fn count_lost(&mut self) {
        for packet in self.own.lost() {
            let (packets, bytes, last) = self.lost;
            let last = if packet.bytes > 0 { packet.at } else { last };
            self.lost = (packets + 1, bytes + u64::from(packet.bytes), last);
        }
    }

    /// Sends all datagrams that both ends send now.
    fn send(&mut self, now: Time) {
        while let Some(datagram) = self.client.transmit(now) {
            for packet in &datagram.packets {
                self.on_sent(now, packet);
            }
            let fate = match &mut self.path {
                Some(path) => path.data(now),
                None => Fate { arrives: Some(now + self.delay), marked: false },
            };
            let ecn = if fate.marked { Some(EcnCodepoint::Ce) } else { datagram.ecn };
            self.put(fate, Arrival::AtServer(datagram.bytes, ecn));
        }
        while let Some(Datagram { bytes, packets, .. }) = self.server.transmit(now) {
            let fate = match &mut self.path {
                Some(path) => path.ack(now),
                None => Fate { arrives: Some(now + self.delay), marked: false },
            };
            self.put(fate, Arrival::AtClient(bytes, packets));
        }
    }

    fn put(&mut self, fate: Fate, arrival: Arrival) {
        self.sent += 1;
        if let Some(at) = fate.arrives {
            self.arrivals.push(Reverse((at, self.sent)));
            self.on_the_way.insert(self.sent, arrival);
        }
    }

    /// Records a packet that the client sent.
    fn on_sent(&mut self, now: Time, packet: &Written) {
        let frames = Frames::read(&packet.frames);
        if packet.space != Space::Data {
            // With its first Handshake packet a client gives up Initial keys (RFC 9001 § 4.9.1).
            if packet.space == Space::Handshake {
                self.handshake.retain(|&(space, _), _| space != Space::Initial as u8);
            }
            if frames.ack_eliciting {
                self.handshake.insert((packet.space as u8, packet.number), now);
            }
            return;
        }
        self.skipped.extend(self.number + 1..packet.number);
        self.number = packet.number;
        // RFC 9002 § 2: a packet is in flight if it elicits an ACK or is padded.
        let counts = frames.ack_eliciting || frames.padded;
        if self.path.is_some() && frames.ack_eliciting {
            let (in_flight, window) = (self.own.bytes_in_flight(), self.own.congestion().window());
            let probes = self.own.probes() > 0;
            let is_probe = in_flight + u64::from(MDS) >= window;
            self.check(Difference::Probe, is_probe, probes, |theirs, own| *own || !theirs);
        }
        self.own.on_sent(SentPacket {
            number: packet.number,
            at: now,
            bytes: if counts { packet.size as u32 } else { 0 },
            ack_eliciting: frames.ack_eliciting,
            start: 0,
            len: 0,
        });
    }

    /// Compares both sides after an event, before they send.
    fn compare_state(&mut self) {
        let path = self.client.connection().stats().path;
        let (packets, bytes) = self.before;
        let last = self.adapter.shared().lost_last;
        let theirs = (path.lost_packets - packets, path.lost_bytes - bytes, last);
        self.check(Difference::Lost, theirs, self.lost, |theirs, own| theirs == own);

        let theirs = Duration(self.client.connection().rtt().as_nanos() as u64);
        let own = self.own.smoothed_rtt().unwrap_or_default();
        self.check(Difference::Rtt, theirs, own, |theirs, own| theirs == own);

        let theirs = self.adapter.shared().congestion.window();
        let own = self.own.congestion().window();
        self.check(Difference::Window, theirs, own, |theirs, own| theirs == own);

        let shared = self.adapter.shared();
        (self.outcome.lost, self.outcome.persistent) = (self.lost.0, shared.persistent);
        self.outcome.marks = shared.marks;
    }

    /// Compares the timers of both sides, after they have sent.
    fn compare_timers(&mut self) {
        let (theirs, own) = (self.client.next_timer(), self.own.next_timer());
        self.outcome.hidden += u64::from(own.since(theirs) > TOLERANCE);
        let close = |theirs: &Time, own: &Time| theirs.since(*own) <= TOLERANCE;
        self.check(Difference::Timer, theirs, own, close);
    }

    fn check<T: core::fmt::Debug>(
        &mut self,
        what: Difference,
        theirs: T,
        own: T,
        equal: impl FnOnce(&T, &T) -> bool,
    ) {
        if self.outcome.difference.is_none() && !equal(&theirs, &own) {
            let values = format!("quinn has {theirs:?}, own is {own:?}");
            self.outcome.difference = Some((what, values, self.clause(what)));
        }
    }

    /// Returns the clause that explains a difference, if there is one.
    fn clause(&mut self, what: Difference) -> Option<Clause> {
        let shared = self.adapter.shared();
        let min = self.client.connection().min_rtt().as_nanos() as u64;
        let lost = self.own.lost();
        match what {
            Difference::Rtt => {
                let theirs = self.client.connection().rtt().as_nanos() as u64;
                let own = self.own.smoothed_rtt()?.0;
                let delay = self.ack_delay.min(Params::default().max_ack_delay).0;
                // The difference of smoothed_rtt that one sample without the ACK delay makes.
                let explained = own.abs_diff(theirs + delay / 8) <= 1;
                let risen = self.own.min_rtt()?.0 > min;
                (shared.persistent > 0 && risen && explained).then_some(Clause::MinRtt)
            }
            Difference::Window => {
                let (first, last) = (lost.first()?.number, lost.last()?.number);
                let skips = self.skipped.iter().any(|number| (first..last).contains(number));
                let established = self.own.is_persistent();
                (established && skips).then_some(Clause::SkippedNumber)
            }
            Difference::Lost | Difference::Timer | Difference::Probe => None,
        }
    }
}

/// Patterns of each family.
const SEEDS: u64 = 45;

/// Patterns with a difference, and its clause; all others are equal to their end.
const DIFFERENT: [(Family, Clause, &[u64]); 3] = [
    (Family::Bursts, Clause::MinRtt, &[1, 5, 6, 9, 15, 20, 29, 33, 36, 38]),
    (Family::Bursts, Clause::SkippedNumber, &[43]),
    (Family::Tail, Clause::MinRtt, &[30, 36, 43]),
];

fn outcomes(params: &Params) -> BTreeMap<(Family, u64), Outcome> {
    let run = |family| {
        let of_seed = move |seed| ((family, seed), run(family, seed, params));
        (0..SEEDS).map(of_seed)
    };
    Family::ALL.into_iter().flat_map(run).collect()
}

#[test]
fn losses_timers_and_windows_are_those_of_quinn_but_for_two_clauses() {
    let mut expected = BTreeMap::new();
    for (family, clause, seeds) in DIFFERENT {
        expected.extend(seeds.iter().map(|&seed| ((family, seed), Some(clause))));
    }
    let outcomes = outcomes(&Params::default());
    let mut found = BTreeMap::new();
    for (&pattern, outcome) in &outcomes {
        if let Some((_, values, clause)) = &outcome.difference {
            // Shown if the test fails.
            println!("{pattern:?}: {values}, {clause:?}");
            found.insert(pattern, *clause);
        }
    }
    assert_eq!(found, expected, "each difference is traced to its clause");
    // The patterns contain enough events, and few timers are hidden by quinn's pacing timer.
    let sum = |of: fn(&Outcome) -> u64| outcomes.values().map(of).sum::<u64>();
    assert!(sum(|of| of.lost) > 8000 && sum(|of| of.marks) > 1000);
    assert!(sum(|of| of.probe_timeouts) > 800 && sum(|of| of.persistent) > 60);
    assert!(sum(|of| of.hidden) * 6 < sum(|of| of.events));
}

#[test]
fn other_thresholds_differ() {
    let default = Params::default();
    for (params, least) in [
        (Params { packet_threshold: 4, ..default.clone() }, 200),
        (Params { time_threshold: 1.2, ..default.clone() }, 100),
        (Params { max_ack_delay: default.max_ack_delay * 2, ..default.clone() }, 140),
    ] {
        let outcomes = outcomes(&params);
        let different = outcomes.values().filter(|outcome| outcome.difference.is_some()).count();
        assert!(different >= least, "{different} with {params:?}");
    }
}

/// Compares the durations of transfers in which each side makes its own decisions, over the same
/// patterns.
///
/// They differ for two reasons. First, quinn stays below its window, which RFC 9002 § 7 allows to
/// fill: of the least window, two datagrams, it uses one. With that rule the sender under test
/// would take 0.96 to 1.02 of quinn's time, but 0.89 (Tail) and 0.85 (Reordering). Second, quinn
/// sends ten packets at once, which are reordered more often than spaced ones.
#[test]
fn transfers_take_about_as_long_as_those_of_quinn() {
    let theirs = outcomes(&Params::default());
    let params = Arc::new(Params::default());
    for family in Family::ALL {
        let mut logarithms = 0.0;
        for seed in 0..SEEDS {
            let own = path::transfer(family, seed, &params);
            let theirs = theirs[&(family, seed)].took;
            logarithms += (own.as_secs_f64() / theirs.as_secs_f64()).ln();
        }
        let ratio = (logarithms / SEEDS as f64).exp();
        assert!((0.65..1.2).contains(&ratio), "{family:?}: {ratio:.3} of quinn's time");
    }
}
