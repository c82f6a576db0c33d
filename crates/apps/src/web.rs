//! Clients who ask servers for pages of objects.

use std::sync::Arc;

use cwnd_units::{Bytes, Duration, DurationDist, Rng, Shape, SizeDist, Time, params};

use crate::application::{Application, Do, Facts, PoissonArrivals, Transport, Volume, Workload};

params! {
    /// Sessions of clients: each opens a connection and asks for one object after the other.
    pub struct Params {
        /// Mean time between sessions, which arrive independently of each other. Without it each of `count` has one, from its
        /// start on.
        #[source("none")]
        #[bounds(above Duration::ZERO; "sessions with no time between them would have no end")]
        pub interval: Option<Duration> = None,
        /// Pages in a session; none is without end.
        #[source("cwnd: a request for one object is the least")]
        #[bounds(from 1; "a session has a page")]
        pub pages: Option<u32> = Some(1),
        /// Objects of a page, each with a request of its own.
        #[source("cwnd: a request for one object is the least")]
        #[bounds(from 1; "a page has an object")]
        pub objects: u32 = 1,
        /// How large each object is: the response to its request.
        #[source("none")]
        pub size: SizeDist,
        /// How large each request is.
        #[source("cwnd: a GET with a few headers")]
        pub request: SizeDist = SizeDist(Shape::Constant(350)),
        /// From the last byte of a request at the server to the first of its response.
        #[source("cwnd: the network alone")]
        pub server_time: DurationDist = DurationDist::default(),
        /// From the last byte of an object to the request for the next of the same page.
        #[source("cwnd: the network alone")]
        pub object_gap: DurationDist = DurationDist::default(),
        /// From the last byte of a page to the first request for the next.
        #[source("cwnd: the network alone")]
        pub reading: DurationDist = DurationDist::default(),
    }
}

/// A session.
#[derive(Debug)]
pub struct Session {
    params: Arc<Params>,
    /// Pages that are over.
    pages: u32,
    /// Objects of this page that the client has.
    objects: u32,
    /// Bytes of all responses until now.
    responded: u64,
    /// Whether the server has a request and thinks about it.
    at_server: bool,
}

impl Workload for Params {
    // Larger than the others: they need not make room for it.
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

    /// All responses of a session; nothing of one without end.
    fn volume(&self, segment: Bytes) -> Option<Volume> {
        let responses = f64::from(self.pages?) * f64::from(self.objects);
        let Volume { bytes, segments } = Volume::of(&self.size, segment);
        Some(Volume { bytes: responses * bytes, segments: responses * segments })
    }

    fn application(shared: &Arc<Self>) -> Box<Session> {
        let params = Arc::clone(shared);
        Box::new(Session { params, pages: 0, objects: 0, responded: 0, at_server: false })
    }
}

impl Session {
    fn ask(&self, rng: &mut Rng) -> Do {
        Do::request(self.params.request.sample(rng).0)
    }

    fn respond(&mut self, rng: &mut Rng) -> Do {
        self.at_server = false;
        let bytes = self.params.size.sample(rng).0;
        self.responded = self.responded.saturating_add(bytes);
        let last_object = self.objects + 1 == self.params.objects;
        if last_object && self.params.pages == Some(self.pages + 1) {
            return Do::write(bytes).and_finish();
        }
        Do::write(bytes).and_hear_delivered(self.responded)
    }
}

impl Application for Session {
    fn start(&mut self, _now: Time, rng: &mut Rng) -> Do {
        self.ask(rng)
    }

    fn on_request(&mut self, now: Time, _total: u64, rng: &mut Rng) -> Do {
        let pause = self.params.server_time.sample(rng);
        if pause == Duration::ZERO {
            return self.respond(rng);
        }
        self.at_server = true;
        Do::wake(now + pause)
    }

    fn on_delivered(&mut self, now: Time, _total: u64, rng: &mut Rng) -> Do {
        self.objects += 1;
        let pause = if self.objects < self.params.objects {
            self.params.object_gap.sample(rng)
        } else {
            (self.objects, self.pages) = (0, self.pages.wrapping_add(1));
            self.params.reading.sample(rng)
        };
        if pause == Duration::ZERO { self.ask(rng) } else { Do::wake(now + pause) }
    }

    fn on_timer(&mut self, _now: Time, rng: &mut Rng) -> Do {
        if self.at_server { self.respond(rng) } else { self.ask(rng) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_asks_for_all_objects_of_its_pages_and_pauses_between_them() {
        let params = Params {
            pages: Some(2),
            objects: 2,
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
            assert_eq!(what, Do::request(350));
            what = session.on_request(now, 350 * object, &mut rng);
            assert_eq!(what, Do::wake(Time(now.0 + 5)), "the server thinks");
            now = Time(now.0 + 5);
            what = session.on_timer(now, &mut rng);
            if object == 4 {
                assert_eq!(what, Do::write(1000).and_finish());
                return;
            }
            assert_eq!(what, Do::write(1000).and_hear_delivered(1000 * object));
            what = session.on_delivered(now, 1000 * object, &mut rng);
            if object == 2 {
                assert_eq!(what, Do::wake(Time(now.0 + 100)), "the page is read");
                what = session.on_timer(Time(now.0 + 100), &mut rng);
            }
        }
    }
}
