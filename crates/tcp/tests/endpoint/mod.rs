//! Tests of the TCP endpoint: segments in, segments out. [`Hand`] passes it one segment at a time;
//! [`World`] runs a whole connection over a path with scripted losses, marks and delays.

mod ecn;
mod figures;
mod invariants;
mod receiver;
mod recovery;
mod requests;
mod timer;
mod windows;

use std::collections::BTreeMap;
use std::sync::Arc;

use cwnd_cc::ControllerParams;
use cwnd_packet::{Echo, Ecn};
use cwnd_quantity::{Bytes, Duration, Time};
use cwnd_schema::{Params as _, ParamsChoice, Value};
use cwnd_tcp::{
    Body, Config, Flags, Params, Receiver, Recovery, SackBlock, SackBlocks, Segment, Sender,
};

/// Segment size, bytes; round numbers are easy to read.
pub const MSS: u64 = 1000;

pub const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

pub const fn at_ms(ms: u64) -> Time {
    Time(ms * 1_000_000)
}

/// Default parameters with round sizes, no handshake, an exact clock and an ACK for each segment.
pub fn simple() -> Params {
    Params::default().with(|p| {
        p.packets.mss = Bytes(MSS);
        p.packets.header = Bytes(40);
        p.packets.ack_size = Bytes(40);
        p.connection.handshake = false;
        p.rtt.clock = Duration(1);
        p.acks.ack_every = 1;
    })
}

pub fn preset(name: &str) -> Params {
    let mut params = Params::default();
    assert!(params.apply_preset(name));
    params
}

/// NewReno with settings by key, as in a scenario.
pub fn newreno(settings: &[(&str, Value)]) -> ControllerParams {
    let mut controller = ControllerParams::of_kind("newreno").unwrap();
    for (name, value) in settings {
        controller.params_mut().set(name, value).unwrap();
    }
    controller
}

pub fn config(params: Params) -> Arc<Config> {
    params.check().unwrap();
    Arc::new(Config::new(params, newreno(&[])))
}

/// Number of a segment: its first byte in units of [`MSS`].
pub fn number(segment: &Segment) -> u64 {
    segment.seq / MSS
}

/// Builds a data segment.
pub fn data(seq: u64, len: u64, ts: Time) -> Segment {
    Segment {
        seq,
        ts,
        len: len as u32,
        wire: len as u16 + 40,
        flags: Flags::default(),
        ecn: Ecn::NotEct,
        body: Body::DATA,
    }
}

/// A sender whose ACKs the test writes, with numbers in segments.
pub struct Hand {
    pub sender: Sender,
    pub now: Time,
    /// Age of the timestamp that ACKs echo.
    pub rtt: Duration,
    /// Segments sent after the last event.
    pub last: Vec<Segment>,
    pub params: Params,
    window: u32,
    has_sack: bool,
}

impl Hand {
    /// Creates an open sender with unlimited data.
    pub fn new(params: Params) -> Self {
        Self::with(config(params), 1 << 40)
    }

    /// Creates an open sender with `segments` segments of data.
    pub fn with(config: Arc<Config>, segments: u64) -> Self {
        let window = u32::try_from(config.params.windows.receive_window.0).unwrap();
        let has_sack = config.params.recovery.recovery == Recovery::Sack;
        let params = config.params.clone();
        let mut sender = Sender::new(config);
        sender.write(segments * MSS);
        sender.open();
        Self { sender, now: at_ms(1000), rtt: ms(100), last: Vec::new(), params, window, has_sack }
    }

    /// Sends all that may be sent now; returns the numbers of the segments.
    pub fn sends(&mut self) -> Vec<u64> {
        self.last = core::iter::from_fn(|| self.sender.poll_transmit(self.now)).collect();
        self.last.iter().map(number).collect()
    }

    pub fn wait(&mut self, span: Duration) {
        self.now += span;
    }

    /// Acknowledges all below segment `k`; returns the numbers of the segments sent then.
    pub fn ack(&mut self, k: u64) -> Vec<u64> {
        self.ack_with(k, &[], Flags::default())
    }

    pub fn ack_ece(&mut self, k: u64) -> Vec<u64> {
        self.ack_with(k, &[], Flags::ECE)
    }

    /// Delivers an ACK with SACK blocks, the most recent first, each from a segment up to another.
    pub fn sack(&mut self, k: u64, blocks: &[(u64, u64)]) -> Vec<u64> {
        self.ack_with(k, blocks, Flags::default())
    }

    /// Delivers the `nth` duplicate ACK for segment `k`; with SACK it reports `nth` segments after
    /// it.
    pub fn duplicate(&mut self, k: u64, nth: u64) -> Vec<u64> {
        if self.has_sack { self.sack(k, &[(k + 1, k + 1 + nth)]) } else { self.ack(k) }
    }

    pub fn ack_with(&mut self, k: u64, blocks: &[(u64, u64)], flags: Flags) -> Vec<u64> {
        let mut sack = SackBlocks::default();
        for (slot, &(from, to)) in sack.iter_mut().zip(blocks) {
            *slot = SackBlock::of(k * MSS, from * MSS, to * MSS);
        }
        let ts = Time(self.now.0 - self.rtt.0);
        let body = Body::Ack { window: self.window, echo: Echo::None, sack };
        let ack = Segment { flags, body, ..data(k * MSS, 0, ts) };
        self.sender.on_segment(self.now, &ack);
        self.sends()
    }

    /// Lets the timer expire; returns the numbers of the segments sent then.
    pub fn expire(&mut self) -> Vec<u64> {
        self.now = self.sender.next_timer();
        assert_ne!(self.now, Time::NEVER, "no timer is armed");
        self.sender.on_timer(self.now);
        self.sends()
    }

    /// Congestion window in segments.
    pub fn cwnd(&self) -> f64 {
        self.sender.window().cwnd as f64 / MSS as f64
    }

    pub fn ssthresh(&self) -> f64 {
        self.sender.window().ssthresh as f64 / MSS as f64
    }
}

/// Fate of a segment on the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Deliver,
    Drop,
    /// Delivered with CE if the segment is ECN-capable.
    Mark,
    /// Delivered with this additional delay.
    Delay(Duration),
    /// Delivered, and a copy this much later.
    Twice(Duration),
}

/// Decides the fate by the number of the segment and the number of its transmission, from 1. An ACK
/// has its ordinal from 0, and 1.
pub type Script = Box<dyn FnMut(u64, u32) -> Fate>;

/// Script that drops these transmissions, given as segment and count from 1.
pub fn drops(which: &[(u64, u32)]) -> Script {
    only(which, Fate::Drop)
}

pub fn marks(which: &[(u64, u32)]) -> Script {
    only(which, Fate::Mark)
}

fn only(which: &[(u64, u32)], fate: Fate) -> Script {
    let which = which.to_vec();
    Box::new(move |k, nth| if which.contains(&(k, nth)) { fate } else { Fate::Deliver })
}

/// One transmission of a data segment or SYN.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    pub at: Time,
    pub k: u64,
    pub segment: Segment,
}

/// A connection over a path of fixed delay.
pub struct World {
    pub sender: Sender,
    pub receiver: Receiver,
    pub now: Time,
    /// Every data segment and SYN sent.
    pub sent: Vec<Sent>,
    /// Every ACK sent.
    pub acks: Vec<(Time, Segment)>,
    /// Time at which the last byte in order was delivered.
    pub finished: Time,
    pub data_fate: Script,
    pub ack_fate: Script,
    /// Receive windows that ACKs advertise, in place of the receiver's; such ACKs carry no echo.
    pub ack_windows: Option<Box<dyn FnMut() -> u32>>,
    /// Source quenches that arrive before an ACK, given the first outstanding byte.
    pub quenches: Option<Box<dyn FnMut(u64) -> Vec<Segment>>>,
    /// End of the data sent before the last reduction for a quench.
    reduced: u64,
    /// Serialisation time of each data segment on the link.
    pub spacing: Duration,
    one_way: Duration,
    line_free: Time,
    flying: BTreeMap<(Time, u64), Segment>,
    order: u64,
    transmissions: BTreeMap<u64, u32>,
    high: u64,
    receive_window: u64,
    /// Bytes that arrived, and the length of the prefix without a gap: counted independently of the
    /// receiver.
    arrived: Vec<bool>,
    contiguous: usize,
}

impl World {
    /// Creates a connection with `bytes` bytes to send.
    pub fn new(config: Arc<Config>, bytes: u64, rtt: Duration) -> Self {
        let mut sender = Sender::new(Arc::clone(&config));
        sender.write(bytes);
        sender.open();
        Self {
            sender,
            receive_window: config.params.windows.receive_window.0,
            receiver: Receiver::new(config),
            now: Time::ZERO,
            sent: Vec::new(),
            acks: Vec::new(),
            finished: Time::ZERO,
            data_fate: Box::new(|_, _| Fate::Deliver),
            ack_fate: Box::new(|_, _| Fate::Deliver),
            ack_windows: None,
            quenches: None,
            reduced: 0,
            spacing: Duration::ZERO,
            one_way: rtt / 2,
            line_free: Time::ZERO,
            flying: BTreeMap::new(),
            order: 0,
            transmissions: BTreeMap::new(),
            high: 0,
            arrived: vec![false; bytes as usize],
            contiguous: 0,
        }
    }

    pub fn segments(params: Params, segments: u64, rtt: Duration) -> Self {
        Self::new(config(params), segments * MSS, rtt)
    }

    /// Runs until no event is left.
    pub fn run(&mut self) {
        self.run_until(Time(Time::NEVER.0 - 1));
    }

    /// Runs up to and including the time `end`.
    pub fn run_until(&mut self, end: Time) {
        if self.sent.is_empty() {
            self.transmit();
        }
        for _ in 0..MOST_STEPS {
            let landing = self.flying.first_key_value().map_or(Time::NEVER, |(&(at, _), _)| at);
            let timer = self.sender.next_timer();
            let next = landing.min(timer).min(self.receiver.next_timer());
            if next > end {
                return;
            }
            assert!(next >= self.now, "a timer in the past");
            self.now = next;
            if landing == next {
                let (_, segment) = self.flying.pop_first().unwrap();
                self.land(&segment);
            } else if timer == next {
                self.sender.on_timer(next);
                self.transmit();
            } else if let Some(ack) = self.receiver.on_timer(next) {
                self.send_ack(ack);
            }
        }
        panic!("no end after {MOST_STEPS} steps, at {}", self.now);
    }

    fn land(&mut self, segment: &Segment) {
        if segment.is_ack() {
            self.quench();
            self.sender.on_segment(self.now, segment);
            self.transmit();
            return;
        }
        let (start, end) = (segment.seq as usize, segment.end() as usize);
        self.arrived[start..end].fill(true);
        while self.arrived.get(self.contiguous) == Some(&true) {
            self.contiguous += 1;
            self.finished = self.now;
        }
        if let Some(ack) = self.receiver.on_segment(self.now, segment) {
            self.send_ack(ack);
        }
        assert_eq!(self.receiver.counters().delivered_bytes, self.contiguous as u64);
    }

    /// Delivers the quenches of routers, or forged ones, before an ACK. Checks that no quench makes
    /// the window larger, or smaller than one segment, and that quenches reduce each window of data
    /// at most once.
    fn quench(&mut self) {
        let una = self.sender.acknowledged();
        let quenches = self.quenches.as_mut().map(|quenches| quenches(una)).unwrap_or_default();
        for quench in quenches {
            let before = (self.sender.window(), self.sender.counters().reductions_for_quenches());
            self.sender.on_segment(self.now, &quench);
            let after = (self.sender.window(), self.sender.counters().reductions_for_quenches());
            assert!(after.0.cwnd >= self.sender.mss(), "a window below one segment");
            assert!(after.0.cwnd <= before.0.cwnd, "a quench that makes a window larger");
            if after.1 > before.1 {
                assert_eq!(after.1, before.1 + 1);
                assert!(una >= self.reduced, "twice in one window of data");
                self.reduced = self.high;
            } else {
                assert_eq!(after.0.cwnd, before.0.cwnd);
            }
            self.transmit();
        }
    }

    fn send_ack(&mut self, mut ack: Segment) {
        if let Some(windows) = &mut self.ack_windows {
            ack.body = Body::Ack { window: windows(), echo: Echo::None, sack: ack.sack() };
        }
        assert_eq!(ack.seq, self.contiguous as u64, "an ACK for what has not arrived");
        self.acks.push((self.now, ack));
        let fate = (self.ack_fate)(self.acks.len() as u64 - 1, 1);
        self.fly(ack, fate, self.now + self.one_way);
    }

    fn transmit(&mut self) {
        let mut burst = 0;
        while let Some(segment) = self.sender.poll_transmit(self.now) {
            burst += 1;
            assert!(burst < MOST_STEPS, "poll_transmit does not end");
            assert!(segment.end() - self.sender.acknowledged() <= self.receive_window);
            self.high = self.high.max(segment.end());
            let k = number(&segment);
            self.sent.push(Sent { at: self.now, k, segment });
            let nth = self.transmissions.entry(k).or_insert(0);
            *nth += 1;
            let fate = (self.data_fate)(k, *nth);
            self.line_free = self.line_free.max(self.now) + self.spacing;
            self.fly(segment, fate, self.line_free + self.one_way);
        }
        self.check();
    }

    fn fly(&mut self, segment: Segment, fate: Fate, at: Time) {
        let mut land = |at: Time, segment: Segment| {
            self.flying.insert((at, self.order), segment);
            self.order += 1;
        };
        match fate {
            Fate::Drop => {}
            Fate::Deliver => land(at, segment),
            Fate::Mark if segment.ecn.is_ect() => land(at, Segment { ecn: Ecn::Ce, ..segment }),
            Fate::Mark => land(at, segment),
            Fate::Delay(late) => land(at + late, segment),
            Fate::Twice(late) => {
                land(at, segment);
                land(at + late, segment);
            }
        }
    }

    /// Checks invariants of the sender after a transmission.
    fn check(&self) {
        let una = self.sender.acknowledged();
        assert!(self.sender.window().cwnd >= self.sender.mss());
        assert!(una <= self.contiguous as u64);
        if self.high > una {
            assert_ne!(self.sender.next_timer(), Time::NEVER, "outstanding data and no timer");
        }
        // Each byte is in the network at most twice: the original, and a retransmission of data
        // that was not lost.
        assert!(self.sender.in_flight() <= 2 * (self.high - una));
    }

    /// Numbers of the segments sent at the time `at`.
    pub fn sent_at(&self, at: Time) -> Vec<u64> {
        self.sent.iter().filter(|s| s.at == at).map(|s| s.k).collect()
    }

    /// Number of segments sent in each of the first round trips, if all of a round trip leave at
    /// once.
    pub fn per_round(&self, rounds: u64) -> Vec<usize> {
        let rtt = self.one_way * 2;
        (0..rounds).map(|r| self.sent_at(Time(r * rtt.0)).len()).collect()
    }

    pub fn timeouts(&self) -> u64 {
        self.sender.counters().timeouts.iter().sum()
    }
}

/// Bound on the steps of a run, far above what any script needs.
const MOST_STEPS: usize = 1_000_000;
