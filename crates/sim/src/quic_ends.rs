//! Both ends of a QUIC connection.

use std::sync::Arc;

use cwnd_packet::Ecn;
use cwnd_quantity::{Duration, Time};
use cwnd_tcp::Segment;
use cwnd_tcp::quic::{Ack, Config, Packet, Params, Receiver, Sender};

use crate::half_connection::{HalfCounters, arm, take};

/// Sender and receiver of QUIC and their pending timers.
#[derive(Debug)]
pub struct QuicEnds {
    params: Arc<Params>,
    /// The sending end.
    pub sender: Sender,
    /// The receiving end.
    pub receiver: Receiver,
    /// Time of the pending [`SenderTimer`](crate::event::Event::SenderTimer); `Time::NEVER` without
    /// one.
    pub sender_timer: Time,
    /// Time of the pending [`ReceiverTimer`](crate::event::Event::ReceiverTimer); `Time::NEVER`
    /// without one.
    pub receiver_timer: Time,
    /// Counts at the end of the warm-up; zero before it, and if the connection started later.
    pub at_warmup_end: WarmupCounters,
}

/// Counts of a QUIC connection at the end of the warm-up.
#[derive(Clone, Copy, Debug, Default)]
pub struct WarmupCounters {
    /// Counters of sender and receiver.
    pub counters: HalfCounters,
    /// Times that persistent congestion was established.
    pub persistent_congestion: u64,
}

impl QuicEnds {
    /// Creates both ends of a connection after its handshake.
    pub fn new(config: &Config) -> Self {
        Self {
            params: Arc::clone(config.params()),
            sender: Sender::of(config),
            receiver: Receiver::new(Arc::clone(config.params())),
            sender_timer: Time::NEVER,
            receiver_timer: Time::NEVER,
            at_warmup_end: WarmupCounters::default(),
        }
    }

    /// Returns the next packet that the sender may send now.
    pub fn transmit(&mut self, now: Time) -> Option<Segment> {
        let packet = self.sender.poll_transmit(now)?;
        Some(packet.segment(now, &self.params))
    }

    /// Delivers an ACK to the sender; returns its RTT sample.
    pub fn on_ack(&mut self, now: Time, segment: &Segment) -> Option<Duration> {
        let ack = Ack::of(segment)?;
        self.sender.on_ack(now, &ack.frame());
        self.sender.recovery().sample()
    }

    /// Delivers data to the receiver; returns the ACK if it is due at once.
    pub fn on_data(&mut self, now: Time, segment: &Segment) -> Option<Segment> {
        let packet = Packet::of(segment, &self.params)?;
        self.receiver.on_packet(now, &packet, segment.ecn == Ecn::Ce);
        self.acknowledge(now)
    }

    /// Returns an ACK if one is due.
    pub fn acknowledge(&mut self, now: Time) -> Option<Segment> {
        Some(self.receiver.poll_ack(now)?.segment(now, &self.params))
    }

    /// Arms the sender timer: returns the time at which to schedule its event, or `None` if an
    /// event is pending at that time or earlier.
    ///
    /// A time in the past becomes `now` (RFC 9002 § A.8): an ACK may shorten the probe timeout that
    /// far.
    pub fn arm_sender(&mut self, now: Time) -> Option<Time> {
        arm(&mut self.sender_timer, self.sender.next_timer().max(now))
    }

    /// Arms the receiver timer (delayed ACK): returns the time at which to schedule its event, or
    /// `None` if an event is pending at that time or earlier.
    pub fn arm_receiver(&mut self) -> Option<Time> {
        arm(&mut self.receiver_timer, self.receiver.next_timer())
    }

    /// Clears the pending sender timer and returns `true` if it is due at `now`.
    pub fn take_sender_timer(&mut self, now: Time) -> bool {
        take(&mut self.sender_timer, now)
    }

    /// Clears the pending receiver timer and returns `true` if it is due at `now`.
    pub fn take_receiver_timer(&mut self, now: Time) -> bool {
        take(&mut self.receiver_timer, now)
    }

    /// Counters of both ends until now.
    pub fn counters(&self) -> HalfCounters {
        HalfCounters { sender: self.sender.counters(), receiver: self.receiver.counters() }
    }

    /// Stores the counts at the end of the warm-up.
    pub fn end_warmup(&mut self) {
        self.at_warmup_end = WarmupCounters {
            counters: self.counters(),
            persistent_congestion: self.sender.persistent_congestion(),
        };
    }
}
