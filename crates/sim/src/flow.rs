//! A connection's two ends and its application.

use core::mem::offset_of;
use std::sync::Arc;

use cwnd_apps::{AnyApplication, Do, Heard, Session, Then};
use cwnd_quantity::{Duration, Rng, Time};
use cwnd_tables::Histogram;
use cwnd_tcp::{Config, GaveUp, Receiver, ReceiverCounters, Sender, SenderCounters};

use crate::event::FlowId;
use crate::network::Route;
use crate::requests::Requests;
use crate::timeouts::{Fate, Told};

/// Who a flow is and which way it goes.
#[derive(Clone, Copy, Debug)]
pub struct Identity {
    /// Its slot and generation.
    pub id: FlowId,
    /// Number in results: in order of creation.
    pub number: u32,
    /// Index of its group.
    pub group: u32,
    /// Which of its group's ways it goes.
    pub way: u32,
    /// Where its packets enter the network.
    pub route: Route,
    /// Propagation round-trip time.
    pub base_rtt: Duration,
    /// Whether the receiver of the data opens it and asks.
    pub client_opens: bool,
    /// When it is told to stop; `Time::NEVER` if it is not.
    pub stop: Time,
}

/// What the ends of a flow had counted.
#[derive(Clone, Copy, Debug, Default)]
pub struct WarmupCounters {
    /// At the sender of the data.
    pub sender: SenderCounters,
    /// At its receiver.
    pub receiver: ReceiverCounters,
    /// At the sender of requests, if there is one.
    pub client: SenderCounters,
}

/// A flow: sender, receiver, what the application wants, and what was measured.
///
/// In order of use: packets of many flows follow each other, so that what a packet reads of its flow is in no near cache, and is fetched
/// line by line. Each event reads the line that begins with the session's interest and ends with the sender's first fields; then data
/// reads two of the receiver, what is sent three to five of the sender, an ACK these and two of the histogram.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Flow {
    /// Propagation round-trip time.
    pub base_rtt: Duration,
    /// When it opened; `Time::NEVER` before.
    pub started: Time,
    /// Its application.
    pub session: Session,
    /// Its slot and generation.
    pub id: FlowId,
    /// Number in results: in order of creation.
    pub number: u32,
    /// Where its packets enter the network.
    pub route: Route,
    /// Index of its group.
    pub group: u32,
    /// When the pending [`SenderTimer`](crate::event::Event::SenderTimer) fires; `Time::NEVER` if none is pending.
    pub sender_timer: Time,
    /// When the pending [`ReceiverTimer`](crate::event::Event::ReceiverTimer) fires.
    pub receiver_timer: Time,
    /// The sending end.
    pub sender: Sender,
    /// RTTs measured after the warm-up.
    pub rtt: Histogram,
    /// When the last byte of the transfer was delivered; `Time::NEVER` before, and without end.
    pub finished: Time,
    /// When all that it had sent was acknowledged, after its application was told to stop; `Time::NEVER` before.
    pub stopped: Time,
    /// From when on its application sends nothing more; `Time::NEVER` if it goes on.
    pub stop: Time,
    /// What had been counted when the warm-up ended.
    pub before: Option<Box<WarmupCounters>>,
    /// The truth about its timeouts; `None` before the first.
    pub told: Option<Box<Told>>,
    /// The receiving end.
    pub receiver: Receiver,
    /// What its client asks, if it is the client who opens it.
    pub requests: Option<Box<Requests>>,
    /// Which of its group's ways it goes.
    pub way: u32,
}

const LINE: usize = 64;
const _: () = {
    // What is read together must not straddle lines.
    assert!((offset_of!(Flow, session) + Session::READ_FROM).is_multiple_of(LINE));
    assert!((offset_of!(Flow, sender) + Sender::READ_FROM).is_multiple_of(LINE));
    // A line and a half.
    assert!((offset_of!(Flow, receiver) + Receiver::READ_FROM) % LINE <= LINE / 2);
};

impl Flow {
    /// A flow that has not started.
    pub fn new(identity: Identity, config: &Arc<Config>, app: AnyApplication, rng: Rng) -> Self {
        let Identity { id, number, group, way, route, base_rtt, client_opens, stop } = identity;
        Self {
            id,
            number,
            group,
            way,
            route,
            base_rtt,
            sender: Sender::new(Arc::clone(config)),
            receiver: Receiver::new(Arc::clone(config)),
            sender_timer: Time::NEVER,
            receiver_timer: Time::NEVER,
            started: Time::NEVER,
            stop,
            session: Session::new(app, rng),
            finished: Time::NEVER,
            stopped: Time::NEVER,
            rtt: Histogram::default(),
            before: None,
            told: None,
            requests: client_opens.then(|| Box::new(Requests::new(config))),
        }
    }

    /// Another configuration for both ends, before the start.
    pub fn configure(&mut self, config: &Arc<Config>) {
        self.sender = Sender::new(Arc::clone(config));
        self.receiver = Receiver::new(Arc::clone(config));
        if let Some(requests) = &mut self.requests {
            **requests = Requests::new(config);
        }
    }

    /// Most of what a packet needs at its host will be read soon.
    #[inline]
    pub fn soon(&self, data: bool) {
        cwnd_memory::line_soon(&self.id);
        if data {
            self.receiver.lines_soon();
        } else {
            self.sender.lines_soon();
        }
    }

    /// The rest of it will be read soon, too.
    #[inline]
    pub fn rest_soon(&self, data: bool) {
        if !data {
            self.sender.rest_soon();
            cwnd_memory::soon(&self.rtt);
        }
    }

    /// What it points to, once it is in the cache itself.
    #[inline]
    pub fn targets_soon(&self, data: bool) {
        if data {
            self.receiver.soon();
        } else {
            self.sender.soon();
            self.rtt.soon();
        }
    }

    /// The application starts the flow, or is woken as it wanted; nothing if it did not want to be.
    pub fn wake(&mut self, now: Time) -> Option<Do> {
        if self.started != Time::NEVER {
            return self.session.timer(now);
        }
        self.started = now;
        match &mut self.requests {
            Some(requests) => requests.sender.open(),
            None => self.sender.open(),
        }
        Some(self.session.start(now))
    }

    /// Does what the application says, its timer apart; true if there may be something to send.
    pub fn carry_out(&mut self, now: Time, what: Do) -> bool {
        self.sender.write(what.write);
        match what.then {
            Then::More | Then::Last => {}
            Then::Stop => self.stop_sending(now),
        }
        what.write > 0 || what.then == Then::Stop
    }

    /// What was not sent yet never will be.
    pub fn stop_sending(&mut self, now: Time) {
        self.stop = self.stop.min(now);
        self.sender.stop_writing();
        if let Some(requests) = &mut self.requests {
            requests.sender.stop_writing();
        }
    }

    /// Whether so much has arrived that somebody wants to hear of it.
    #[inline]
    pub fn is_of_interest(&self) -> bool {
        self.session.is_of_interest(self.receiver.counters().delivered_bytes)
    }

    /// Tells the application of it, and notes the delivery of the transfer's last byte.
    #[cold]
    pub fn hear_delivered(&mut self, now: Time) -> Heard {
        let heard = self.session.delivered(now, self.receiver.counters().delivered_bytes);
        if heard.finished {
            self.finished = self.finished.min(now);
        }
        heard
    }

    /// Where it was given up, by either end.
    pub fn gave_up(&self) -> Option<GaveUp> {
        let by_client = || self.requests.as_ref().and_then(|requests| requests.sender.gave_up());
        self.sender.gave_up().or_else(by_client)
    }

    /// Whether it was given up, at whichever end.
    pub fn has_failed(&self) -> bool {
        self.sender.has_failed() || self.requests.as_ref().is_some_and(|r| r.sender.has_failed())
    }

    /// Whether the transfer, if it has an end, is over for both ends, or was given up.
    #[inline]
    pub fn is_over(&self) -> bool {
        (self.finished != Time::NEVER && self.sender.is_drained()) || self.has_failed()
    }

    /// What had become of a segment that a timer of either end expired for.
    #[cold]
    pub fn tell(&mut self, fate: Fate) {
        if fate != Fate::Lost {
            self.told.get_or_insert_default().add(fate);
        }
    }

    /// Counting begins.
    pub fn end_warmup(&mut self) {
        let client = self.requests.as_ref().map(|requests| *requests.sender.counters());
        self.before = Some(Box::new(WarmupCounters {
            sender: *self.sender.counters(),
            receiver: *self.receiver.counters(),
            client: client.unwrap_or_default(),
        }));
        self.rtt.clear();
        self.sender.begin_counting();
        self.receiver.begin_counting();
        if let Some(told) = &mut self.told {
            told.before = told.total;
        }
    }
}
