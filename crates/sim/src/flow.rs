//! A connection's two ends and its application.

use core::iter;
use core::mem::offset_of;
use std::sync::Arc;

use cwnd_apps::{AnyApplication, Do, Heard, Session, Then};
use cwnd_cc::AnyController;
use cwnd_quantity::{Duration, Rng, Time};
use cwnd_tables::Histogram;
use cwnd_tcp::{Config, GaveUp, Receiver, quic};

use crate::event::FlowId;
use crate::half_connection::{HalfConnection, WarmupCounters};
use crate::network::Route;
use crate::quic_ends::QuicEnds;
use crate::requests::Requests;

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
    /// Its data, and the server and client that send and receive it.
    pub data: HalfConnection,
    /// RTTs measured after the warm-up.
    pub rtt: Histogram,
    /// From when on its application sends nothing more; `Time::NEVER` if it goes on.
    pub stop: Time,
    /// Time at which all that it had sent was acknowledged, after its application had stopped;
    /// `Time::NEVER` before.
    pub stopped: Time,
    /// What its client asks, if it is the client who opens it.
    pub requests: Option<Box<Requests>>,
    /// Which of its group's ways it goes.
    pub way: u32,
    /// Its ends if they are QUIC's: those of `data` stay closed then. Its packets and timers have
    /// the id of a stream of requests, so that those of TCP flows ask for nothing.
    pub quic: Option<Box<QuicEnds>>,
}

const LINE: usize = 64;
const _: () = {
    // What is read together must not straddle lines.
    assert!((offset_of!(Flow, session) + Session::READ_FROM).is_multiple_of(LINE));
    let data = offset_of!(Flow, data);
    assert!((data + HalfConnection::SENDER_READ_FROM).is_multiple_of(LINE));
    assert!((data + HalfConnection::RECEIVER_READ_FROM).is_multiple_of(LINE));
    assert!(Receiver::READ_BYTES == 2 * LINE);
    assert!(offset_of!(Flow, rtt).is_multiple_of(LINE));
};

impl Flow {
    /// A flow that has not started, of TCP or with ends of QUIC.
    pub fn new(
        identity: Identity,
        (config, quic): (&Arc<Config>, Option<&quic::Config>),
        app: AnyApplication,
        rng: Rng,
    ) -> Self {
        let Identity { id, number, group, way, route, base_rtt, client_opens, stop } = identity;
        Self {
            id,
            number,
            group,
            way,
            route,
            base_rtt,
            data: HalfConnection::new(config),
            started: Time::NEVER,
            stop,
            session: Session::new(app, rng),
            stopped: Time::NEVER,
            rtt: Histogram::default(),
            requests: client_opens.then(|| Box::new(Requests::new(config))),
            quic: quic.map(|config| Box::new(QuicEnds::new(config))),
        }
    }

    /// Another configuration for both ends, before the start.
    pub fn configure(&mut self, config: &Arc<Config>, quic: Option<&quic::Config>) {
        self.quic = quic.map(|config| Box::new(QuicEnds::new(config)));
        self.data = HalfConnection::new(config);
        if let Some(requests) = &mut self.requests {
            **requests = Requests::new(config);
        }
    }

    /// Most of what a packet needs at its host will be read soon.
    #[inline]
    pub fn soon(&self, data: bool) {
        cwnd_memory::line_soon(&self.id);
        if data {
            self.data.receiver.lines_soon();
        } else {
            self.data.sender.lines_soon();
        }
    }

    /// The rest of it will be read soon, too.
    #[inline]
    pub fn rest_soon(&self, data: bool) {
        if !data {
            self.data.sender.rest_soon();
            cwnd_memory::soon(&self.rtt);
        }
    }

    /// What it points to, once it is in the cache itself.
    #[inline]
    pub fn targets_soon(&self, data: bool) {
        if data {
            self.data.receiver.soon();
        } else {
            self.data.sender.soon();
            self.rtt.soon();
        }
    }

    /// The application starts the flow, or is woken as it wanted; nothing if it did not want to be.
    pub fn wake(&mut self, now: Time) -> Option<Do> {
        if self.started != Time::NEVER {
            return self.session.timer(now);
        }
        self.started = now;
        match (&mut self.requests, &self.quic) {
            (Some(requests), _) => requests.half.sender.open(),
            (None, None) => self.data.sender.open(),
            (None, Some(_)) => {}
        }
        Some(self.session.start(now))
    }

    /// Does what the application says, its timer apart; true if there may be something to send.
    pub fn carry_out(&mut self, now: Time, what: Do) -> bool {
        match &mut self.quic {
            Some(quic) => quic.sender.write(what.write),
            None => self.data.sender.write(what.write),
        }
        match what.then {
            Then::More | Then::Last => {}
            Then::Stop => self.stop_sending(now),
        }
        what.write > 0 || what.then == Then::Stop
    }

    /// What was not sent yet never will be.
    pub fn stop_sending(&mut self, now: Time) {
        self.stop = self.stop.min(now);
        match &mut self.quic {
            Some(quic) => quic.sender.stop_writing(),
            None => self.data.sender.stop_writing(),
        }
        if let Some(requests) = &mut self.requests {
            requests.half.sender.stop_writing();
        }
    }

    /// Whether so much has arrived that somebody wants to hear of it.
    #[inline]
    pub fn is_of_interest(&self) -> bool {
        self.session.is_of_interest(self.data.delivered_bytes())
    }

    /// Tells the application of it, and notes the delivery of the transfer's last byte.
    #[cold]
    pub fn hear_delivered(&mut self, now: Time) -> Heard {
        let heard = self.session.delivered(now, self.delivered_bytes());
        if heard.finished {
            self.data.finished = self.data.finished.min(now);
        }
        heard
    }

    /// Where it was given up, by either end.
    pub fn gave_up(&self) -> Option<GaveUp> {
        let by_client =
            || self.requests.as_ref().and_then(|requests| requests.half.sender.gave_up());
        self.data.sender.gave_up().or_else(by_client)
    }

    /// Whether it was given up, at whichever end.
    pub fn has_failed(&self) -> bool {
        self.data.sender.has_failed()
            || self.requests.as_ref().is_some_and(|r| r.half.sender.has_failed())
    }

    /// Whether the transfer, if it has an end, is over for both ends, or was given up.
    #[inline]
    pub fn is_over(&self) -> bool {
        let is_drained = || match &self.quic {
            Some(quic) => quic.sender.is_drained(),
            None => self.data.sender.is_drained(),
        };
        (self.data.finished != Time::NEVER && is_drained()) || self.has_failed()
    }

    /// Bytes delivered in order, of TCP or QUIC.
    pub fn delivered_bytes(&self) -> u64 {
        match &self.quic {
            Some(quic) => quic.receiver.delivered(),
            None => self.data.delivered_bytes(),
        }
    }

    /// The controller, of TCP or QUIC.
    pub fn controller(&self) -> &AnyController {
        match &self.quic {
            Some(quic) => quic.sender.recovery().congestion().controller(),
            None => self.data.sender.controller(),
        }
    }

    /// Counters of both ends, of TCP or QUIC.
    pub fn counters(&self) -> WarmupCounters {
        let HalfConnection { sender, receiver, .. } = &self.data;
        match &self.quic {
            Some(quic) => quic.counters(),
            None => WarmupCounters { sender: *sender.counters(), receiver: *receiver.counters() },
        }
    }

    /// The same at the end of the warm-up.
    pub fn counters_before(&self) -> WarmupCounters {
        match &self.quic {
            Some(quic) => quic.before.counters,
            None => self.data.before.as_deref().copied().unwrap_or_default(),
        }
    }

    /// The halves that it has: that of its data, and that of its requests.
    pub fn halves(&self) -> impl Iterator<Item = &HalfConnection> {
        iter::once(&self.data).chain(self.requests.as_deref().map(|requests| &requests.half))
    }

    /// Counting begins.
    pub fn end_warmup(&mut self) {
        self.rtt.clear();
        self.data.end_warmup();
        if let Some(requests) = &mut self.requests {
            requests.half.end_warmup();
        }
        if let Some(quic) = &mut self.quic {
            quic.end_warmup();
        }
    }
}
