//! A connection: both ends, its application and its measurements.

use core::iter;
use core::mem::offset_of;
use std::sync::Arc;

use cwnd_apps::{Actions, AnyApplication, Continuation, Delivery, Session};
use cwnd_cc::AnyController;
use cwnd_quantity::{Duration, Rng, Time};
use cwnd_tables::Histogram;
use cwnd_tcp::{Config, GaveUp, Receiver, quic};

use crate::connection_ends::{HalfConnection, HalfCounters, QuicEnds, Requests};
use crate::endpoint::Endpoints;
use crate::event::FlowId;
use crate::network::Route;
use crate::qlog::{AnySender, LoggedSender};

/// Identifiers and path of a flow or a source of datagrams.
#[derive(Clone, Copy, Debug)]
pub struct Identity {
    /// Slot and generation.
    pub id: FlowId,
    /// Number in results, in order of creation.
    pub number: u32,
    /// Index of its group.
    pub group: u32,
    /// Index of its path in the group.
    pub path: u32,
    /// Entry points of its packets into the network.
    pub route: Route,
    /// Propagation round-trip time.
    pub base_rtt: Duration,
    /// `true` if the receiver of the data opens the connection and sends requests.
    pub client_opens: bool,
    /// Time at which its application must stop; `Time::NEVER` without one.
    pub stop: Time,
}

/// A connection: sender, receiver, application and measurements.
///
/// Fields are in order of use. Packets of many flows interleave, so what a packet reads is in no
/// near cache and is fetched line by line. Each event reads the first line, and that from the
/// session's threshold to the sender's first fields. Data then reads two lines of the receiver.
/// Sending reads three to five lines of the sender. An ACK reads these and two of the histogram.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Flow {
    /// Propagation round-trip time.
    pub base_rtt: Duration,
    /// Time at which its application started; `Time::NEVER` before.
    pub started: Time,
    /// Its application.
    pub session: Session,
    /// Slot and generation.
    pub id: FlowId,
    /// Number in results, in order of creation.
    pub number: u32,
    /// Entry points of its packets into the network.
    pub route: Route,
    /// Index of its group.
    pub group: u32,
    /// Direction of the data, with its sender and receiver.
    pub data: HalfConnection,
    /// RTT samples of the data's sender after the warm-up.
    pub rtt: Histogram,
    /// Time from which its application sends nothing more; `Time::NEVER` without one.
    pub stop: Time,
    /// Time at which all sent data was acknowledged, or the connection given up, after its
    /// application had stopped; `Time::NEVER` before.
    pub stopped: Time,
    /// Direction of the requests, if the client opens the connection.
    pub requests: Option<Box<Requests>>,
    /// Index of its path in the group.
    pub path: u32,
    /// Ends of a QUIC connection; those in `data` then stay closed. Its packets and timers have the
    /// identifier of a stream of requests, so that those of TCP flows need no check.
    pub quic: Option<Box<QuicEnds>>,
    /// Endpoints from outside, from the start of the flow; its other ends then stay closed.
    pub endpoints: Option<Box<Endpoints>>,
}

const LINE: usize = 64;
const _: () = if cfg!(target_pointer_width = "64") {
    // Fields that are read together must not straddle lines.
    assert!((offset_of!(Flow, session) + Session::READ_FROM).is_multiple_of(LINE));
    let data = offset_of!(Flow, data);
    assert!((data + HalfConnection::SENDER_READ_FROM).is_multiple_of(LINE));
    assert!((data + HalfConnection::RECEIVER_READ_FROM).is_multiple_of(LINE));
    assert!(Receiver::READ_BYTES == 2 * LINE);
    assert!(offset_of!(Flow, rtt).is_multiple_of(LINE));
};

impl Flow {
    /// Creates a flow that has not started, with ends of TCP or QUIC.
    pub fn new(
        identity: Identity,
        (config, quic): (&Arc<Config>, Option<&quic::Config>),
        app: AnyApplication,
        rng: Rng,
    ) -> Self {
        let Identity { id, number, group, path, route, base_rtt, client_opens, stop } = identity;
        Self {
            id,
            number,
            group,
            path,
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
            endpoints: None,
        }
    }

    /// Replaces the configuration of both ends, before the start.
    pub fn configure(&mut self, config: &Arc<Config>, quic: Option<&quic::Config>) {
        self.quic = quic.map(|config| Box::new(QuicEnds::new(config)));
        self.data = HalfConnection::new(config);
        if let Some(requests) = &mut self.requests {
            **requests = Requests::new(config);
        }
    }

    /// Prefetches most of what a packet reads at its host: the receiver for data, the sender for an
    /// ACK.
    #[inline]
    pub fn prefetch_end(&self, data: bool) {
        cwnd_memory::prefetch_line(&self.id);
        if data {
            self.data.receiver.prefetch_lines();
        } else {
            self.data.sender.prefetch_lines();
        }
    }

    /// Prefetches the rest of the sender, and the histogram, for an ACK.
    #[inline]
    pub fn prefetch_rest(&self, data: bool) {
        if !data {
            self.data.sender.prefetch_rest();
            cwnd_memory::prefetch(&self.rtt);
        }
    }

    /// Prefetches the heap allocations of the ends, once the flow itself is in the cache.
    #[inline]
    pub fn prefetch_heap(&self, data: bool) {
        if data {
            self.data.receiver.prefetch();
        } else {
            self.data.sender.prefetch();
            self.rtt.prefetch();
        }
    }

    /// Starts the application, or wakes it if its timer is due; `None` if it is not.
    pub fn wake(&mut self, now: Time) -> Option<Actions> {
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

    /// Carries out what the application decided, except for its timer; returns `true` if there may
    /// be data to send.
    pub fn carry_out(&mut self, now: Time, what: Actions) -> bool {
        match &mut self.quic {
            Some(quic) => quic.sender.write(what.write),
            None => self.data.sender.write(what.write),
        }
        match what.then {
            Continuation::More | Continuation::Last => {}
            Continuation::Stop => self.stop_sending(now),
        }
        what.write > 0 || what.then == Continuation::Stop
    }

    /// Stops sending: discards all data that was not sent yet.
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

    /// `true` if the bytes delivered reach what the application waits for.
    #[inline]
    pub fn reaches_threshold(&self) -> bool {
        self.session.reaches_threshold(self.data.delivered_bytes())
    }

    /// Reports the bytes delivered to the application, and stores the time of the transfer's last
    /// byte.
    #[cold]
    pub fn notify_delivered(&mut self, now: Time) -> Delivery {
        let delivery = self.session.delivered(now, self.delivered_bytes());
        if delivery.finished {
            self.data.finished = self.data.finished.min(now);
        }
        delivery
    }

    /// Phase in which either end gave up the connection; `None` if neither did.
    pub fn gave_up(&self) -> Option<GaveUp> {
        let by_client =
            || self.requests.as_ref().and_then(|requests| requests.half.sender.gave_up());
        self.data.sender.gave_up().or_else(by_client)
    }

    /// `true` if either end gave up the connection.
    pub fn has_failed(&self) -> bool {
        self.data.sender.has_failed()
            || self.requests.as_ref().is_some_and(|r| r.half.sender.has_failed())
    }

    /// `true` if the transfer has an end and is complete at both ends, or if the connection was
    /// given up.
    #[inline]
    pub fn is_over(&self) -> bool {
        let is_drained = || match (&self.quic, &self.endpoints) {
            (None, None) => self.data.sender.is_drained(),
            (Some(quic), _) => quic.sender.is_drained(),
            (None, Some(endpoints)) => endpoints.are_finished(),
        };
        (self.data.finished != Time::NEVER && is_drained()) || self.has_failed()
    }

    /// Bytes delivered in order, of any kind of connection.
    pub fn delivered_bytes(&self) -> u64 {
        match (&self.quic, &self.endpoints) {
            (None, None) => self.data.delivered_bytes(),
            (Some(quic), _) => quic.receiver.delivered(),
            (None, Some(endpoints)) => endpoints.delivered_bytes(),
        }
    }

    /// The sender of the flow `id`, which the slot has or had last, for its log.
    pub fn logged_sender(&self, id: FlowId) -> LoggedSender<'_> {
        LoggedSender {
            sender: match &self.quic {
                Some(quic) => AnySender::Quic(&quic.sender, quic.params()),
                None => AnySender::Tcp(&self.data.sender),
            },
            is_server: self.requests.is_some(),
            // A flow that is over leaves its state in its slot, under another identifier.
            is_over: self.id != id,
        }
    }

    /// The controller, of TCP or QUIC.
    pub fn controller(&self) -> &AnyController {
        match &self.quic {
            Some(quic) => quic.sender.recovery().congestion().controller(),
            None => self.data.sender.controller(),
        }
    }

    /// Counters of both ends.
    pub fn counters(&self) -> HalfCounters {
        let HalfConnection { sender, receiver, .. } = &self.data;
        match (&self.quic, &self.endpoints) {
            (None, None) => {
                HalfCounters { sender: *sender.counters(), receiver: *receiver.counters() }
            }
            (Some(quic), _) => quic.counters(),
            (None, Some(endpoints)) => endpoints.counters(),
        }
    }

    /// Counters of both ends at the end of the warm-up.
    pub fn counters_at_warmup_end(&self) -> HalfCounters {
        match (&self.quic, &self.endpoints) {
            (None, None) => self.data.at_warmup_end.as_deref().copied().unwrap_or_default(),
            (Some(quic), _) => quic.at_warmup_end.counters,
            (None, Some(endpoints)) => endpoints.at_warmup_end,
        }
    }

    /// Halves of the connection: that of its data, then that of its requests if it has one.
    pub fn halves(&self) -> impl Iterator<Item = &HalfConnection> {
        iter::once(&self.data).chain(self.requests.as_deref().map(|requests| &requests.half))
    }

    /// Starts counting at the end of the warm-up; RTT samples start anew.
    pub fn end_warmup(&mut self) {
        self.rtt.clear();
        self.data.end_warmup();
        if let Some(requests) = &mut self.requests {
            requests.half.end_warmup();
        }
        if let Some(quic) = &mut self.quic {
            quic.end_warmup();
        }
        if let Some(endpoints) = &mut self.endpoints {
            endpoints.at_warmup_end = endpoints.counters();
        }
    }
}
