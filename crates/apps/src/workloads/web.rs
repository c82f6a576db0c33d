//! Clients that request pages of objects from servers.

use std::sync::Arc;

use cwnd_quantity::dist::Width;
use cwnd_quantity::{Bytes, CountDist, Duration, DurationDist, Rng, Shape, SizeDist, Time};
use cwnd_schema::{Choice, PresetOf, Presets, RegistryEntry, Schema};

use crate::application::{Actions, Application, Facts, Transport, Volume, Workload};
use crate::arrivals::PoissonArrivals;
use crate::users::Habits;

/// Traffic that one connection carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum Connections {
    /// A session: one object after the other (persistent connections, RFC 9112 § 9.3).
    #[name("session")]
    Session,
    /// One object, and a session opens a connection for each (HTTP/1.0, RFC 1945 § 1.3).
    #[name("object")]
    Object,
}

/// Name and description in scenarios.
pub const ENTRY: RegistryEntry =
    RegistryEntry::new("web", "Clients who open connections and ask for pages of objects.");

/// Sessions of clients, each of which asks for objects, page by page.
#[derive(Clone, Debug, PartialEq, Schema)]
#[schema(presets)]
pub struct Params {
    /// Mean time between sessions, which arrive independently of each other. Without it each of
    /// `count` has one, from its start on.
    #[default(None, "none")]
    #[bounds(above Duration::ZERO; "sessions with no time between them would have no end")]
    pub interval: Option<Duration>,
    /// Pages in a session; `none` for sessions without end.
    #[default(Some(CountDist::constant(1)), "cwnd: a request for one object is the least")]
    #[bounds(from 1; "a session has a page")]
    pub pages: Option<CountDist>,
    /// Objects of a page, each with a request of its own.
    #[default(CountDist::constant(1), "cwnd: a request for one object is the least")]
    #[bounds(from 1; "a page has an object")]
    pub objects: CountDist,
    /// Traffic that one connection carries: a session, or an object.
    #[default(Connections::Session, "RFC 9112 § 9.3: connections persist")]
    pub connections: Connections,
    /// Maximum number of connections that a session has open at a time, if each object has its own;
    /// none is no limit.
    #[default(
        Some(1),
        "cwnd: one after the other; RFC 2616 § 8.1.4 had two, browsers of today have six"
    )]
    #[bounds(from 1; "nothing is asked for over no connection")]
    pub parallel: Option<u32>,
    /// Size of each object: the response to its request.
    #[required("none")]
    pub size: SizeDist,
    /// Size of each request.
    #[default(SizeDist(Shape::Constant(350)), "cwnd: a GET with a few headers")]
    pub request: SizeDist,
    /// Time from the last byte of a request at the server to the first byte of its response.
    #[default(DurationDist::default(), "cwnd: the network alone")]
    pub server_time: DurationDist,
    /// Time from the last byte of an object to the request for the next object of the page. Where
    /// each object has a connection, time from when another connection is possible: after the last
    /// one opened if fewer than `parallel` are open, otherwise after the end of one.
    #[default(DurationDist::default(), "cwnd: the network alone")]
    pub object_gap: DurationDist,
    /// Time from the last byte of a page to the first request for the next page; where each object
    /// has a connection, from the end of the last connection.
    #[default(DurationDist::default(), "cwnd: the network alone")]
    pub reading: DurationDist,
}

impl Presets for Params {
    const PRESETS: &'static [PresetOf<Self>] = &[PresetOf::new(
        "becn-table-1",
        "The users of Table I of the BECN paper (Akujobi, Lambadaris, Makkar, Seddigh & \
             Nandy): sessions every 0.5 s, 10 pages, Pareto II objects of 12 packets of 1000 B in \
             the mean.",
        || Self {
            interval: Some(Duration::from_millis(500)),
            pages: Some(CountDist::constant(10)),
            objects: CountDist(Shape::Lomax(1.5, Width::Mean(3_000_000))),
            connections: Connections::Object,
            parallel: None,
            size: SizeDist(Shape::Lomax(1.2, Width::Mean(12_000))),
            request: SizeDist(Shape::Constant(1000)),
            object_gap: DurationDist(Shape::Lomax(1.5, Width::Mean(100_000_000))),
            reading: DurationDist(Shape::Lomax(2.0, Width::Mean(10_000_000_000))),
            ..Self::default()
        },
    )];
}

/// Server and client of a session, or of one object.
#[derive(Debug)]
pub struct Session {
    params: Arc<Params>,
    /// Pages to come after this one; `None` without end.
    pages: Option<u64>,
    /// Objects of this page that the client does not have.
    objects: u64,
    /// Bytes of all responses written.
    responded: u64,
    /// `true` while the server has a request and waits for its server time.
    at_server: bool,
}

impl Workload for Params {
    // Boxed: it is larger than the other applications, so they need no room for it.
    type App = Box<Session>;

    fn facts(&self) -> Facts {
        Facts {
            transport: Transport::Connection,
            arrivals: self.interval.map(|mean| PoissonArrivals { mean }),
            client_opens: true,
            can_be_stopped: self.pages.is_none() && self.interval.is_none(),
            shares: false,
        }
    }

    fn habits(&self) -> Option<Habits> {
        let Self { pages, objects, parallel, object_gap, reading, .. } = self.clone();
        let each = self.connections == Connections::Object;
        each.then_some(Habits { pages, objects, parallel, object_gap, reading })
    }

    /// Mean volume of all responses of a session; `None` for a session without end. It has one
    /// connection, or one for each object.
    fn volume(&self, segment: Bytes) -> Option<Volume> {
        let responses = self.pages.as_ref()?.mean() * self.objects.mean();
        let all = Volume::of(&self.size, segment).times(responses);
        Some(match self.connections {
            Connections::Object => all,
            Connections::Session => Volume { connections: 1.0, ..all },
        })
    }

    fn application(shared: &Arc<Self>) -> Box<Session> {
        let params = Arc::clone(shared);
        Box::new(Session { params, pages: Some(0), objects: 1, responded: 0, at_server: false })
    }
}

impl Session {
    fn ask(&self, rng: &mut Rng) -> Actions {
        Actions::request(self.params.request.sample(rng).0)
    }

    fn respond(&mut self, rng: &mut Rng) -> Actions {
        self.at_server = false;
        let bytes = self.params.size.sample(rng).0;
        self.responded = self.responded.saturating_add(bytes);
        if (self.objects, self.pages) == (1, Some(0)) {
            return Actions::write(bytes).and_finish();
        }
        Actions::write(bytes).and_await_delivered(self.responded)
    }
}

impl Application for Session {
    fn start(&mut self, _now: Time, rng: &mut Rng) -> Actions {
        if self.params.connections == Connections::Session {
            self.pages = self.params.pages.as_ref().map(|pages| pages.sample(rng) - 1);
            self.objects = self.params.objects.sample(rng);
        }
        self.ask(rng)
    }

    fn on_request(&mut self, now: Time, _total: u64, rng: &mut Rng) -> Actions {
        let pause = self.params.server_time.sample(rng);
        if pause == Duration::ZERO {
            return self.respond(rng);
        }
        self.at_server = true;
        Actions::wake(now + pause)
    }

    fn on_delivered(&mut self, now: Time, _total: u64, rng: &mut Rng) -> Actions {
        self.objects = self.objects.saturating_sub(1);
        let pause = if self.objects > 0 {
            self.params.object_gap.sample(rng)
        } else {
            self.pages = self.pages.map(|pages| pages.saturating_sub(1));
            self.objects = self.params.objects.sample(rng);
            self.params.reading.sample(rng)
        };
        if pause == Duration::ZERO { self.ask(rng) } else { Actions::wake(now + pause) }
    }

    fn on_timer(&mut self, _now: Time, rng: &mut Rng) -> Actions {
        if self.at_server { self.respond(rng) } else { self.ask(rng) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_asks_for_all_objects_of_its_pages_and_pauses_between_them() {
        let params = Params {
            pages: Some(CountDist::constant(2)),
            objects: CountDist::constant(2),
            size: SizeDist(Shape::Constant(1000)),
            server_time: DurationDist::constant(Duration(5)),
            reading: DurationDist::constant(Duration(100)),
            ..Params::default()
        };
        let mut rng = Rng::named(1, "web");
        let mut session = Params::application(&Arc::new(params));
        let mut now = Time(0);
        let mut what = session.start(now, &mut rng);
        for object in 1..=4_u64 {
            assert_eq!(what, Actions::request(350));
            what = session.on_request(now, 350 * object, &mut rng);
            assert_eq!(what, Actions::wake(Time(now.0 + 5)), "the server thinks");
            now = Time(now.0 + 5);
            what = session.on_timer(now, &mut rng);
            if object == 4 {
                assert_eq!(what, Actions::write(1000).and_finish());
                return;
            }
            assert_eq!(what, Actions::write(1000).and_await_delivered(1000 * object));
            what = session.on_delivered(now, 1000 * object, &mut rng);
            if object == 2 {
                assert_eq!(what, Actions::wake(Time(now.0 + 100)), "the page is read");
                what = session.on_timer(Time(now.0 + 100), &mut rng);
            }
        }
    }
}
