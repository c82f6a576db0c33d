use core::fmt;
use std::sync::Arc;

use cwnd_quantity::{Bytes, Rng, SizeDist, Time};
use cwnd_schema::Params;

use crate::arrivals::PoissonArrivals;
use crate::users::Habits;

/// What decides when a flow sends and how much.
///
/// A call is made only for what was asked for: nothing is called for a packet. On a connection `total` counts the bytes of
/// its stream. What is decided on hearing of a delivery is done at the sender at once, as if both ends knew the same.
pub trait Application: fmt::Debug + Send {
    /// The flow starts; its connection opens.
    fn start(&mut self, now: Time, rng: &mut Rng) -> Do;

    /// As many bytes have been delivered as it wanted to hear of; `total` may be more.
    fn on_delivered(&mut self, now: Time, total: u64, rng: &mut Rng) -> Do {
        let _ = (now, total, rng);
        Do::NOTHING
    }

    /// The whole request is at the server; `total` counts the bytes of all requests. Only where the client opens the
    /// connection ([`Facts::client_opens`]).
    fn on_request(&mut self, now: Time, total: u64, rng: &mut Rng) -> Do {
        let _ = (now, total, rng);
        Do::NOTHING
    }

    /// All that was written is acknowledged. Datagrams have no acknowledgements.
    fn on_acked(&mut self, now: Time, total: u64, rng: &mut Rng) -> Do {
        let _ = (now, total, rng);
        Do::NOTHING
    }

    /// The time has come that it wanted to be woken at.
    fn on_timer(&mut self, now: Time, rng: &mut Rng) -> Do {
        let _ = (now, rng);
        Do::NOTHING
    }

    /// Tells what it counted, each by a name that is its own; the activity has them as they are.
    fn count(&self, each: &mut dyn FnMut(&'static str, u64)) {
        let _ = each;
    }
}

/// What an application does, and what it wants to hear of next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Do {
    /// Payload to send, in bytes: more of a connection's stream, or one datagram.
    pub write: u64,
    /// Bytes that the client sends as its next request, once it has the response to the last; nothing where no client opened
    /// the connection. [`Application::on_request`] follows when the server has them.
    pub request: u64,
    /// What follows after that.
    pub then: Then,
    /// When to call [`Application::on_timer`]; it takes the place of an earlier time that is still to come.
    pub wake: Option<Time>,
    /// With how many bytes in all to call [`Application::on_delivered`]; it takes the place of an earlier number.
    pub delivered: Option<u64>,
    /// Whether to call [`Application::on_acked`] when all that was written is acknowledged.
    pub acked: bool,
}

/// What follows after what an application wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// It may write more.
    More,
    /// It was the last: the flow is a transfer, which is finished when all of it is delivered.
    Last,
    /// It stops: what has not been sent yet never will be.
    Stop,
}

impl Do {
    /// Nothing.
    pub const NOTHING: Self =
        Self { write: 0, request: 0, then: Then::More, wake: None, delivered: None, acked: false };

    /// Sends so many bytes.
    pub const fn write(bytes: u64) -> Self {
        Self { write: bytes, ..Self::NOTHING }
    }

    /// Asks for something, in so many bytes.
    pub const fn request(bytes: u64) -> Self {
        Self { request: bytes, ..Self::NOTHING }
    }

    /// Sends nothing more.
    pub const fn stop() -> Self {
        Self { then: Then::Stop, ..Self::NOTHING }
    }

    /// Waits until then.
    pub const fn wake(at: Time) -> Self {
        Self { wake: Some(at), ..Self::NOTHING }
    }

    /// And it was the last.
    pub const fn and_finish(self) -> Self {
        Self { then: Then::Last, ..self }
    }

    /// And wants to be woken.
    pub const fn and_wake(self, at: Time) -> Self {
        Self { wake: Some(at), ..self }
    }

    /// And wants to hear when so many bytes of the flow are delivered.
    pub const fn and_hear_delivered(self, total: u64) -> Self {
        Self { delivered: Some(total), ..self }
    }

    /// And wants to hear when everything is acknowledged.
    pub const fn and_hear_acked(self) -> Self {
        Self { acked: true, ..self }
    }
}

/// A kind of workload: its parameters, what it states of itself, and the applications that it makes.
pub trait Workload: Params {
    /// What each of its flows has.
    type App: Application;

    /// What others must know of it.
    fn facts(&self) -> Facts;

    /// The application of one more flow; all of a group have the same parameters.
    fn application(shared: &Arc<Self>) -> Self::App;

    /// The application of a flow whose size was recorded; `None` where flows have no one size.
    fn of_size(size: Bytes) -> Option<Self::App> {
        let _ = size;
        None
    }

    /// What each of its users does, if a user is more than one connection; each connection is then one object.
    fn habits(&self) -> Option<Habits> {
        None
    }

    /// What a flow, or all flows of a user, transfer in the mean, in segments of so many bytes; `None` where that is not known beforehand.
    fn volume(&self, segment: Bytes) -> Option<Volume> {
        let _ = segment;
        None
    }
}

/// What is to be known of a kind of workload where it is of no interest which it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Facts {
    /// What carries it.
    pub transport: Transport,
    /// How its flows come while the run goes on; `None` are there from the beginning.
    pub arrivals: Option<PoissonArrivals>,
    /// Whether who receives the data opens the connection and asks for it: the first thing that goes is then a SYN from the
    /// client, and a request follows.
    pub client_opens: bool,
    /// Whether its flows go on until they are told to stop, rather than end with their transfers.
    pub can_be_stopped: bool,
    /// Whether its flows are long-lived ones that are to share alike: what ends a run that lasts until they do.
    pub shares: bool,
}

/// What a flow transfers in the mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Volume {
    /// Payload in bytes; infinite where it has no mean.
    pub bytes: f64,
    /// Segments of data.
    pub segments: f64,
    /// Connections.
    pub connections: f64,
}

impl Volume {
    /// That of one transfer.
    #[must_use]
    pub fn of(size: &SizeDist, segment: Bytes) -> Self {
        Self { bytes: size.mean(), segments: size.mean_parts(segment), connections: 1.0 }
    }

    /// So many of them.
    #[must_use]
    pub fn times(self, count: f64) -> Self {
        let Self { bytes, segments, connections } = self;
        Self { bytes: count * bytes, segments: count * segments, connections: count * connections }
    }
}

/// What carries a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// A TCP connection.
    Connection,
    /// Datagrams, which nothing answers: there is no controller and no endpoint.
    Datagrams {
        /// How much of each on the wire is headers.
        header: Bytes,
    },
}

impl<A: Application + ?Sized> Application for Box<A> {
    fn start(&mut self, now: Time, rng: &mut Rng) -> Do {
        (**self).start(now, rng)
    }
    fn on_delivered(&mut self, now: Time, total: u64, rng: &mut Rng) -> Do {
        (**self).on_delivered(now, total, rng)
    }
    fn on_request(&mut self, now: Time, total: u64, rng: &mut Rng) -> Do {
        (**self).on_request(now, total, rng)
    }
    fn on_acked(&mut self, now: Time, total: u64, rng: &mut Rng) -> Do {
        (**self).on_acked(now, total, rng)
    }
    fn on_timer(&mut self, now: Time, rng: &mut Rng) -> Do {
        (**self).on_timer(now, rng)
    }
    fn count(&self, each: &mut dyn FnMut(&'static str, u64)) {
        (**self).count(each);
    }
}
