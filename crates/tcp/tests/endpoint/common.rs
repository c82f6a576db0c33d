//! Two ways to drive an endpoint: by hand, one segment after the other, and as a whole connection over a path that
//! does to each segment what a script says.

use std::collections::BTreeMap;
use std::sync::Arc;

use cwnd_cc::ControllerParams;
use cwnd_packet::{Echo, Ecn};
use cwnd_quantity::{Bytes, Duration, Time};
use cwnd_schema::{Params as _, ParamsChoice, Value};
use cwnd_tcp::{
    Body, Config, Flags, Params, Receiver, Recovery, SackBlock, SackBlocks, Segment, Sender,
};

/// Segment size: round numbers read best.
pub const MSS: u64 = 1000;

pub const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

pub const fn at_ms(ms: u64) -> Time {
    Time(ms * 1_000_000)
}

/// The RFCs' endpoint with round sizes, no handshake, an exact clock and an ACK for each segment.
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

/// NewReno, as a scenario would set it.
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

/// The number of the segment that begins at this byte.
pub fn number(segment: &Segment) -> u64 {
    segment.seq / MSS
}

/// A data segment.
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

/// A sender whose ACKs the test writes, in numbers of segments.
pub struct Hand {
    pub sender: Sender,
    pub now: Time,
    /// ACKs echo a timestamp this old.
    pub rtt: Duration,
    /// What the last ACK made it send.
    pub last: Vec<Segment>,
    pub params: Params,
    window: u32,
    has_sack: bool,
}

impl Hand {
    /// A bulk sender, open.
    pub fn new(params: Params) -> Self {
        Self::with(config(params), 1 << 40)
    }

    /// A sender with so many segments to send, open.
    pub fn with(config: Arc<Config>, segments: u64) -> Self {
        let window = u32::try_from(config.params.windows.receive_window.0).unwrap();
        let has_sack = config.params.recovery.recovery == Recovery::Sack;
        let params = config.params.clone();
        let mut sender = Sender::new(config);
        sender.write(segments * MSS);
        sender.open();
        Self { sender, now: at_ms(1000), rtt: ms(100), last: Vec::new(), params, window, has_sack }
    }

    /// The numbers of the segments that may go out now.
    pub fn sends(&mut self) -> Vec<u64> {
        self.last = core::iter::from_fn(|| self.sender.poll_transmit(self.now)).collect();
        self.last.iter().map(number).collect()
    }

    pub fn wait(&mut self, span: Duration) {
        self.now += span;
    }

    /// All below segment `k` is acknowledged; the numbers of what is sent then.
    pub fn ack(&mut self, k: u64) -> Vec<u64> {
        self.ack_with(k, &[], Flags::default())
    }

    pub fn ack_ece(&mut self, k: u64) -> Vec<u64> {
        self.ack_with(k, &[], Flags::ECE)
    }

    /// An ACK with SACK blocks, the most recent first, from one segment up to another.
    pub fn sack(&mut self, k: u64, blocks: &[(u64, u64)]) -> Vec<u64> {
        self.ack_with(k, blocks, Flags::default())
    }

    /// The `nth` duplicate ACK for segment `k`: with SACK it reports the segments after it.
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

    /// Waits for the timer; the numbers of what it makes the sender send.
    pub fn expire(&mut self) -> Vec<u64> {
        self.now = self.sender.next_timer();
        assert_ne!(self.now, Time::NEVER, "no timer is armed");
        self.sender.on_timer(self.now);
        self.sends()
    }

    /// The window in segments.
    pub fn cwnd(&self) -> f64 {
        self.sender.window().cwnd as f64 / MSS as f64
    }

    pub fn ssthresh(&self) -> f64 {
        self.sender.window().ssthresh as f64 / MSS as f64
    }
}

/// What the path does to a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Deliver,
    Drop,
    /// CE, if the segment is ECN-capable.
    Mark,
    /// Arrives so much later than the others.
    Delay(Duration),
    /// Arrives, and so much later once more.
    Twice(Duration),
}

/// Decides by the number of the segment (its ordinal for ACKs) and by how often it was sent, from 1.
pub type Script = Box<dyn FnMut(u64, u32) -> Fate>;

/// Segments lost at these transmissions.
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

/// One transmission of a data segment.
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
    /// Every data segment and SYN that was sent.
    pub sent: Vec<Sent>,
    /// Every ACK that was sent.
    pub acks: Vec<(Time, Segment)>,
    /// When the last byte was handed over.
    pub finished: Time,
    pub data_fate: Script,
    pub ack_fate: Script,
    /// The receive windows that ACKs advertise, instead of the receiver's.
    pub ack_windows: Option<Box<dyn FnMut() -> u32>>,
    /// The quenches that come with an ACK, given the first outstanding byte.
    pub quenches: Option<Box<dyn FnMut(u64) -> Vec<Segment>>>,
    /// All that was sent before the last reduction for a quench.
    reduced: u64,
    /// Time the line takes for each data segment.
    pub spacing: Duration,
    one_way: Duration,
    line_free: Time,
    flying: BTreeMap<(Time, u64), Segment>,
    order: u64,
    transmissions: BTreeMap<u64, u32>,
    high: u64,
    receive_window: u64,
    /// What arrived, byte by byte, and how far it is without a gap: an account apart from the receiver's.
    arrived: Vec<bool>,
    contiguous: usize,
}

impl World {
    /// A connection that has this much to send.
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

    /// Runs until nothing is left to do.
    pub fn run(&mut self) {
        self.run_until(Time(Time::NEVER.0 - 1));
    }

    /// Runs up to and including this instant.
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

    /// What routers, or who poses as one, say before an ACK lands: no window is below one segment, and none of data is reduced twice.
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

    /// What holds whatever happened.
    fn check(&self) {
        let una = self.sender.acknowledged();
        assert!(self.sender.window().cwnd >= self.sender.mss());
        assert!(una <= self.contiguous as u64);
        if self.high > una {
            assert_ne!(self.sender.next_timer(), Time::NEVER, "outstanding data and no timer");
        }
        // Each byte is in the network at most twice: as itself, and retransmitted without having been lost.
        assert!(self.sender.in_flight() <= 2 * (self.high - una));
    }

    /// The numbers of the segments sent at this instant.
    pub fn sent_at(&self, at: Time) -> Vec<u64> {
        self.sent.iter().filter(|s| s.at == at).map(|s| s.k).collect()
    }

    /// How many segments were sent in each of the first round trips, when all of one leave at once.
    pub fn per_round(&self, rounds: u64) -> Vec<usize> {
        let rtt = self.one_way * 2;
        (0..rounds).map(|r| self.sent_at(Time(r * rtt.0)).len()).collect()
    }

    pub fn timeouts(&self) -> u64 {
        self.sender.counters().timeouts.iter().sum()
    }
}

/// Far more than any script needs.
const MOST_STEPS: usize = 1_000_000;
