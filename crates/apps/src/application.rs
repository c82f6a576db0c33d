use core::fmt;
use std::sync::Arc;

use cwnd_quantity::{Bytes, Rate, Rng, SizeDist, Time};
use cwnd_schema::Params;

use crate::arrivals::PoissonArrivals;
use crate::users::Habits;

/// Decisions of an application on when its flow sends and how much.
///
/// Methods are called only for events that it waits for, never for each packet. On a connection,
/// `total` counts the bytes of its stream. Decisions on a delivery take effect at the sender at
/// once, as if both ends shared all knowledge.
pub trait Application: fmt::Debug + Send {
    /// Handles the start of the flow, when its connection begins to open.
    fn start(&mut self, now: Time, rng: &mut Rng) -> Actions;

    /// Handles the delivery of as many bytes as it waits for; `total`, all bytes delivered, may be
    /// more.
    fn on_delivered(&mut self, now: Time, total: u64, rng: &mut Rng) -> Actions {
        let _ = (now, total, rng);
        Actions::NOTHING
    }

    /// Handles the arrival of a whole request at the server; `total` counts the bytes of all
    /// requests.
    ///
    /// Called only if the client opens the connection ([`Facts::client_opens`]).
    fn on_request(&mut self, now: Time, total: u64, rng: &mut Rng) -> Actions {
        let _ = (now, total, rng);
        Actions::NOTHING
    }

    /// Handles the acknowledgement of all written bytes, `total`. Datagrams have no
    /// acknowledgements.
    fn on_acked(&mut self, now: Time, total: u64, rng: &mut Rng) -> Actions {
        let _ = (now, total, rng);
        Actions::NOTHING
    }

    /// Handles the expiry of its timer ([`Actions::wake`]).
    fn on_timer(&mut self, now: Time, rng: &mut Rng) -> Actions {
        let _ = (now, rng);
        Actions::NOTHING
    }

    /// Passes name and value of each of its counters to `each`, for the activity.
    fn count(&self, each: &mut dyn FnMut(&'static str, u64)) {
        let _ = each;
    }
}

/// Actions of an application, and the events that it waits for next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Actions {
    /// Payload to send, in bytes: more of a connection's stream, or one datagram.
    pub write: u64,
    /// Bytes of the client's next request, after the response to the last one; ignored unless the
    /// client opens the connection. [`Application::on_request`] follows when the server has them.
    pub request: u64,
    /// Continuation after the write.
    pub then: Continuation,
    /// Time of the call of [`Application::on_timer`]; it replaces an earlier one.
    pub wake: Option<Time>,
    /// Total bytes at whose delivery [`Application::on_delivered`] is called; it replaces an
    /// earlier number.
    pub delivered: Option<u64>,
    /// `true` to call [`Application::on_acked`] when all written bytes are acknowledged.
    pub acked: bool,
}

/// Continuation of a flow after a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Continuation {
    /// More writes may follow.
    More,
    /// The write was the last one: the flow is a transfer, which finishes with its delivery.
    Last,
    /// The flow stops: data not sent yet is discarded.
    Stop,
}

impl Actions {
    /// No action.
    pub const NOTHING: Self = Self {
        write: 0,
        request: 0,
        then: Continuation::More,
        wake: None,
        delivered: None,
        acked: false,
    };

    /// Writes `bytes` bytes.
    pub const fn write(bytes: u64) -> Self {
        Self { write: bytes, ..Self::NOTHING }
    }

    /// Sends a request of `bytes` bytes.
    pub const fn request(bytes: u64) -> Self {
        Self { request: bytes, ..Self::NOTHING }
    }

    /// Stops sending.
    pub const fn stop() -> Self {
        Self { then: Continuation::Stop, ..Self::NOTHING }
    }

    /// Only sets the timer to `at`.
    pub const fn wake(at: Time) -> Self {
        Self { wake: Some(at), ..Self::NOTHING }
    }

    /// Also makes the write the last one.
    pub const fn and_finish(self) -> Self {
        Self { then: Continuation::Last, ..self }
    }

    /// Also sets the timer to `at`.
    pub const fn and_wake(self, at: Time) -> Self {
        Self { wake: Some(at), ..self }
    }

    /// Also waits until `total` bytes of the flow are delivered.
    pub const fn and_await_delivered(self, total: u64) -> Self {
        Self { delivered: Some(total), ..self }
    }

    /// Also waits until all written bytes are acknowledged.
    pub const fn and_await_acked(self) -> Self {
        Self { acked: true, ..self }
    }
}

/// A kind of workload: its parameters, its facts, and the applications that it creates.
pub trait Workload: Params {
    /// Type of a flow's application.
    type App: Application;

    /// Facts for code that does not know the kind.
    fn facts(&self) -> Facts;

    /// Creates the application of one flow; all flows of a group share the parameters.
    fn application(shared: &Arc<Self>) -> Self::App;

    /// Creates the application of a flow with a recorded size; `None` if this kind takes no
    /// recorded size.
    fn of_size(size: Bytes) -> Option<Self::App> {
        let _ = size;
        None
    }

    /// Habits of each user, if a user is more than one connection; each connection then carries one
    /// object.
    fn habits(&self) -> Option<Habits> {
        None
    }

    /// Mean volume of a flow, or of all flows of a user, in segments of `segment` bytes; `None` if
    /// it is not known beforehand.
    fn volume(&self, segment: Bytes) -> Option<Volume> {
        let _ = segment;
        None
    }
}

/// Facts about a kind of workload, for code that does not know the kind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Facts {
    /// Transport of its flows.
    pub transport: Transport,
    /// Arrival process of its flows; `None` if they exist from the start, or arrive by `arrivals`
    /// of the group.
    pub arrivals: Option<PoissonArrivals>,
    /// `true` if the receiver of the data opens the connection and requests the data: a SYN of the
    /// client comes first, then a request.
    pub client_opens: bool,
    /// `true` if a scenario may stop its flows at a given time.
    pub can_be_stopped: bool,
    /// `true` if its flows are long-lived and count for the fairness that ends a run early.
    pub shares: bool,
}

/// Mean volume of a flow, or of all flows of a user or session.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Volume {
    /// Payload in bytes; infinite if the mean is.
    pub bytes: f64,
    /// Segments with data.
    pub segments: f64,
    /// Number of connections.
    pub connections: f64,
}

impl Volume {
    /// Volume of one transfer.
    #[must_use]
    pub fn of(size: &SizeDist, segment: Bytes) -> Self {
        Self { bytes: size.mean(), segments: size.mean_parts(segment), connections: 1.0 }
    }

    /// Multiplies the volume by `count`.
    #[must_use]
    pub fn times(self, count: f64) -> Self {
        let Self { bytes, segments, connections } = self;
        Self { bytes: count * bytes, segments: count * segments, connections: count * connections }
    }
}

/// Transport of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// A connection of TCP or QUIC.
    Connection,
    /// Datagrams without feedback, controller or endpoint.
    Datagrams {
        /// Bits on the wire per second while a flow sends.
        rate: Rate,
        /// Size of the largest datagram on the wire.
        size: Bytes,
        /// Bytes of headers in each datagram on the wire.
        header: Bytes,
    },
}

impl<A: Application + ?Sized> Application for Box<A> {
    fn start(&mut self, now: Time, rng: &mut Rng) -> Actions {
        (**self).start(now, rng)
    }
    fn on_delivered(&mut self, now: Time, total: u64, rng: &mut Rng) -> Actions {
        (**self).on_delivered(now, total, rng)
    }
    fn on_request(&mut self, now: Time, total: u64, rng: &mut Rng) -> Actions {
        (**self).on_request(now, total, rng)
    }
    fn on_acked(&mut self, now: Time, total: u64, rng: &mut Rng) -> Actions {
        (**self).on_acked(now, total, rng)
    }
    fn on_timer(&mut self, now: Time, rng: &mut Rng) -> Actions {
        (**self).on_timer(now, rng)
    }
    fn count(&self, each: &mut dyn FnMut(&'static str, u64)) {
        (**self).count(each);
    }
}
