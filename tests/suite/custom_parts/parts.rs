//! Custom parts: a controller that backs off in response to queueing delay, a queue that marks
//! packets, a meter with its header, its echo and a sender that obeys it, and an application that
//! writes objects on one connection, each after the previous one has arrived.
//!
//! Routers with the meter write the wanted change of the window, as XCP's efficiency controller
//! does (Katabi, Handley, Rohrs 2002, § 3.5.1), and every packet gets the same share.

use std::collections::VecDeque;

use cwnd_apps::{Actions, Application};
use cwnd_aqm::{Backlog, Context, Meter, Packet, Qdisc, Reason, congested};
use cwnd_cc::{
    AckSample, Cause, Controller, GrowthPermission, OutgoingData, Path, Request, Signal, Start,
    Window,
};
use cwnd_packet::{Ability, CongestionHeader, Contract, Echo, HasContract};
use cwnd_quantity::{Duration, Rate, Rng, Time};
use cwnd_tcp::{EchoPolicy, Segment};

/// Controller with additive increase; it asks for a reduction when the queueing delay exceeds
/// `max_delay`, and then keeps minRTT / RTT of the window, at least two segments.
#[derive(Clone, Debug)]
pub struct DelayBackoff {
    cwnd: u64,
    max: u64,
    max_delay: Duration,
    waited_too_long: u64,
}

impl DelayBackoff {
    pub fn new(start: &Start, max_delay: Duration) -> Self {
        Self { cwnd: start.initial_window, max: start.max_window, max_delay, waited_too_long: 0 }
    }
}

impl HasContract for DelayBackoff {
    fn contract(&self) -> Contract {
        Contract::new().needs(Ability::Timestamps, "measures retransmissions, too")
    }
}

impl Controller for DelayBackoff {
    fn on_ack(&mut self, path: &Path, ack: &AckSample) -> Request {
        if ack.grow == GrowthPermission::Yes {
            self.cwnd += (ack.acked_bytes * u64::from(path.mss)).div_ceil(self.cwnd);
            self.cwnd = self.cwnd.min(self.max);
        }
        let waited = ack.rtt.zip(path.min_rtt).map(|(rtt, least)| rtt - least);
        if waited.is_some_and(|waited| waited > self.max_delay) {
            self.waited_too_long += 1;
            return Request::Reduce(Cause::Delay);
        }
        Request::Nothing
    }

    fn on_signal(&mut self, path: &Path, signal: Signal) {
        let least = 2 * u64::from(path.mss);
        match signal {
            Signal::Reduce(Cause::Delay) => {
                let (rtt, min) = (path.rtt.unwrap_or_default(), path.min_rtt.unwrap_or_default());
                let keep = u128::from(self.cwnd) * u128::from(min.0) / u128::from(rtt.0.max(1));
                self.cwnd = (keep as u64).clamp(least, self.cwnd.max(least));
            }
            Signal::Reduce(_) => self.cwnd = (self.cwnd / 2).max(least),
            Signal::Timeout { .. } => self.cwnd = u64::from(path.mss),
            _ => {}
        }
    }

    fn window(&self) -> Window {
        Window { cwnd: self.cwnd, ssthresh: u64::MAX }
    }

    fn count(&self, each: &mut dyn FnMut(&'static str, u64)) {
        each("shy_waited_too_long", self.waited_too_long);
    }
}

const NTH: Reason = Reason::named("toy_nth");

/// Drop-tail queue that marks each packet whose number is a multiple of `n`, or drops it if it is
/// not ECN-capable.
#[derive(Debug)]
pub struct MarkEveryNth<P> {
    n: u64,
    capacity: u64,
    arrived: u64,
    waiting: VecDeque<(P, Time)>,
    bytes: u64,
}

impl<P> MarkEveryNth<P> {
    pub const fn new(n: u64, capacity: u64) -> Self {
        Self { n, capacity, arrived: 0, waiting: VecDeque::new(), bytes: 0 }
    }
}

impl<P> HasContract for MarkEveryNth<P> {
    fn contract(&self) -> Contract {
        Contract::new().provides(Ability::Marks)
    }
}

impl<P: Packet> Qdisc<P> for MarkEveryNth<P> {
    fn enqueue(&mut self, now: Time, mut packet: P, context: &mut impl Context<P>) {
        self.arrived += 1;
        if self.waiting.len() as u64 >= self.capacity {
            return context.dropped(now, &packet, Reason::OVERLIMIT);
        }
        if self.arrived.is_multiple_of(self.n) && !congested(now, &mut packet, true, NTH, context) {
            return;
        }
        self.bytes += u64::from(packet.wire_bytes());
        self.waiting.push_back((packet, now));
    }

    fn dequeue(&mut self, _: Time, _: &mut impl Context<P>) -> Option<(P, Time)> {
        let (packet, since) = self.waiting.pop_front()?;
        self.bytes -= u64::from(packet.wire_bytes());
        Some((packet, since))
    }

    fn backlog(&self) -> Backlog {
        Backlog { packets: self.waiting.len() as u64, bytes: self.bytes }
    }

    fn count(&self, each: &mut dyn FnMut(&'static str, u64)) {
        each("toy_nth_came", self.arrived);
    }
}

/// § 3.5.1: φ = α · d · S − β · Q, with α = 0.4 and β = 0.226 in the paper; d is the control
/// interval.
const ALPHA: f64 = 0.4;
const BETA: f64 = 0.226;

/// Meter that distributes the spare capacity of the link over its packets.
#[derive(Debug)]
pub struct FairShareMeter {
    interval: Duration,
    next: Time,
    bytes_s: f64,
    input: u64,
    packets: u64,
    least_queue: u64,
    per_packet: f64,
    left: f64,
    carry: f64,
    filled: u64,
}

impl FairShareMeter {
    pub fn new(interval: Duration) -> Self {
        Self {
            interval,
            next: Time::ZERO + interval,
            bytes_s: 0.0,
            input: 0,
            packets: 0,
            least_queue: 0,
            per_packet: 0.0,
            left: 0.0,
            carry: 0.0,
            filled: 0,
        }
    }
}

impl HasContract for FairShareMeter {
    fn contract(&self) -> Contract {
        Contract::new().needs(Ability::SendsXcp, "has nobody to tell").provides(Ability::WritesXcp)
    }
}

impl<P: Packet> Meter<P> for FairShareMeter {
    fn arrives(&mut self, _: Time, packet: &mut P, backlog: Backlog, _: &mut dyn Context<P>) {
        self.input += u64::from(packet.wire_bytes());
        self.packets += 1;
        self.least_queue = self.least_queue.min(backlog.bytes);
    }

    fn leaves(&mut self, _: Time, packet: &mut P, _: Backlog, context: &mut dyn Context<P>) {
        if let Some(CongestionHeader::Xcp { delta, .. }) = context.header(packet) {
            // If more packets come than in the last interval, their total stays the same. The
            // header holds whole bytes.
            let share =
                if self.left.abs() >= self.per_packet.abs() { self.per_packet } else { 0.0 };
            self.left -= share;
            self.carry += share;
            let share = self.carry.trunc();
            self.carry -= share;
            *delta = (*delta).min(share as i32);
            self.filled += 1;
        }
    }

    fn on_rate(&mut self, _: Time, rate: Rate) {
        self.bytes_s = rate.0 as f64 / 8.0;
    }

    fn next_timer(&self) -> Option<Time> {
        Some(self.next)
    }

    fn on_timer(&mut self, now: Time, backlog: Backlog) {
        let d = self.interval.as_secs_f64();
        let spare = self.bytes_s * d - self.input as f64;
        let phi = ALPHA * spare - BETA * self.least_queue as f64;
        self.per_packet = phi / (self.packets.max(1)) as f64;
        self.left = phi;
        (self.input, self.packets, self.least_queue) = (0, 0, backlog.bytes);
        self.next = now + self.interval;
    }

    fn count(&self, each: &mut dyn FnMut(&'static str, u64)) {
        each("sharer_filled", self.filled);
    }
}

/// Echo policy that sums the feedback of routers, so that delayed or suppressed ACKs lose none of
/// it.
#[derive(Clone, Debug, Default)]
pub struct SumEcho(i32);

impl HasContract for SumEcho {
    fn contract(&self) -> Contract {
        Contract::new().provides(Ability::EchoesSum)
    }
}

impl EchoPolicy for SumEcho {
    fn on_data(&mut self, _: Time, segment: &Segment) -> bool {
        if let Some(CongestionHeader::Xcp { delta, .. }) = segment.header() {
            self.0 = self.0.saturating_add(delta);
        }
        false
    }

    fn take(&mut self) -> Echo {
        Echo::Delta(core::mem::take(&mut self.0))
    }
}

/// Controller that follows the routers' feedback; otherwise it halves its window at a reduction,
/// and has one segment after a timeout.
#[derive(Clone, Debug)]
pub struct FeedbackSender {
    cwnd: u64,
    max: u64,
}

impl FeedbackSender {
    pub fn new(start: &Start) -> Self {
        Self { cwnd: start.initial_window, max: start.max_window }
    }
}

impl HasContract for FeedbackSender {
    fn contract(&self) -> Contract {
        Contract::new()
            .provides(Ability::SendsXcp)
            .needs(Ability::WritesXcp, "stays at its first window")
            .needs(Ability::EchoesSum, "hears of no share")
    }
}

impl Controller for FeedbackSender {
    fn on_ack(&mut self, path: &Path, ack: &AckSample) -> Request {
        if let Echo::Delta(delta) = ack.echo {
            let least = u64::from(path.mss);
            self.cwnd = self.cwnd.saturating_add_signed(i64::from(delta)).clamp(least, self.max);
        }
        Request::Nothing
    }

    fn on_signal(&mut self, path: &Path, signal: Signal) {
        match signal {
            Signal::Reduce(_) => self.cwnd = (self.cwnd / 2).max(2 * u64::from(path.mss)),
            Signal::Timeout { .. } => self.cwnd = u64::from(path.mss),
            _ => {}
        }
    }

    fn stamp(&mut self, data: &OutgoingData) -> CongestionHeader {
        let rtt_us = data.rtts.srtt().map_or(0, |rtt| (rtt.0 / 1000) as u32);
        let cwnd = u32::try_from(self.cwnd).unwrap_or(u32::MAX);
        // Asks for one segment per packet, as in slow start. A meter writes a lower value; without
        // one, the request comes back as it was sent.
        CongestionHeader::Xcp { cwnd, rtt_us, delta: i32::try_from(data.mss).unwrap_or(i32::MAX) }
    }

    fn window(&self) -> Window {
        Window { cwnd: self.cwnd, ssthresh: u64::MAX }
    }
}

/// Writes the next object a pause after one has arrived; the last one closes the connection.
#[derive(Debug)]
pub struct ObjectSequence {
    left: u64,
    written: u64,
    delivered: u64,
}

/// Size of an object in bytes.
pub const OBJECT: u64 = 20_000;
/// Time from the arrival of an object to the writing of the next.
pub const PAUSE: Duration = Duration::from_millis(100);

impl ObjectSequence {
    /// Creates an application that sends `count` objects, at least one.
    pub fn new(count: u64) -> Self {
        Self { left: count, written: 0, delivered: 0 }
    }

    fn next(&mut self) -> Actions {
        self.left -= 1;
        self.written += OBJECT;
        let what = Actions::write(OBJECT);
        if self.left == 0 { what.and_finish() } else { what.and_await_delivered(self.written) }
    }
}

impl Application for ObjectSequence {
    fn start(&mut self, _now: Time, _rng: &mut Rng) -> Actions {
        self.next()
    }
    fn on_delivered(&mut self, now: Time, total: u64, _rng: &mut Rng) -> Actions {
        assert_eq!(total, self.written, "it hears of whole objects");
        self.delivered += 1;
        Actions::wake(now + PAUSE)
    }
    fn on_timer(&mut self, _now: Time, _rng: &mut Rng) -> Actions {
        self.next()
    }
    fn count(&self, each: &mut dyn FnMut(&'static str, u64)) {
        each("objects", self.written / OBJECT);
        each("objects_heard", self.delivered);
    }
}
