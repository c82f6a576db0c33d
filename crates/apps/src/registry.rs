use std::sync::Arc;

use cwnd_units::{Bytes, Rng, Time, params_choice};

use crate::application::{Application, Do, Facts, Volume, Workload};
use crate::users::Habits;
use crate::{bulk, bytes, on_off, poisson, udp, web};

/// Makes the applications of a group's flows, one by one.
pub type Maker = Box<dyn Fn() -> AnyApplication + Send>;

/// The registry: a kind is one line of it.
macro_rules! workloads {
    ($( $(#[doc = $doc:literal])+ $kind:ident($module:ident) = $text:literal, )+) => {
        params_choice! {
            /// Which workload, with its parameters.
            pub enum WorkloadParams { $( $(#[doc = $doc])+ $kind($module::Params) = $text, )+ }
        }

        /// The application of a flow of any kind, told apart by a branch instead of a pointer.
        #[derive(Debug)]
        pub enum AnyApplication {
            $( $(#[doc = $doc])+ $kind(<$module::Params as Workload>::App), )+
            /// One that is not among the kinds.
            Own(Box<dyn Application>),
        }

        impl WorkloadParams {
            /// What is to be known of it where it is of no interest which it is.
            #[must_use]
            pub fn facts(&self) -> Facts {
                match self { $( Self::$kind(params) => params.facts(), )+ }
            }

            /// What a flow transfers in the mean, in segments of so many bytes, where that is known beforehand.
            #[must_use]
            pub fn volume(&self, segment: Bytes) -> Option<Volume> {
                match self { $( Self::$kind(params) => params.volume(segment), )+ }
            }

            /// What each of its users does, if a user is more than one connection.
            #[must_use]
            pub fn habits(&self) -> Option<Habits> {
                match self { $( Self::$kind(params) => params.habits(), )+ }
            }

            /// The application of a flow whose size was recorded; `None` where flows have no one size.
            #[must_use]
            pub fn of_size(&self, size: Bytes) -> Option<AnyApplication> {
                match self { $(
                    Self::$kind(_) => <$module::Params as Workload>::of_size(size).map(AnyApplication::$kind),
                )+ }
            }

            /// Makes the applications of a group.
            #[must_use]
            pub fn maker(&self) -> Maker {
                match self { $( Self::$kind(params) => {
                    let shared = Arc::new(params.clone());
                    Box::new(move || AnyApplication::$kind(Workload::application(&shared)))
                } )+ }
            }
        }

        /// Calls a method of whichever application it is.
        macro_rules! each {
            ($self:expr, $app:ident => $call:expr) => {
                match $self { $( AnyApplication::$kind($app) => $call, )+ AnyApplication::Own($app) => $call }
            };
        }
    };
}

workloads! {
    /// As much as it can for as long as it may.
    Bulk(bulk) = "bulk",
    /// One transfer, then the connection closes.
    Bytes(bytes) = "bytes",
    /// Transfers on one connection with pauses between them.
    OnOff(on_off) = "on-off",
    /// New connections arrive at random, each with one transfer.
    Poisson(poisson) = "poisson",
    /// Datagrams at a rate of their own, without a connection: no controller, no endpoint, no way back, no ECN.
    Udp(udp) = "udp",
    /// Clients who open connections and ask for pages of objects.
    Web(web) = "web",
}

impl Application for AnyApplication {
    fn start(&mut self, now: Time, rng: &mut Rng) -> Do {
        each!(self, app => app.start(now, rng))
    }

    fn on_delivered(&mut self, now: Time, total: u64, rng: &mut Rng) -> Do {
        each!(self, app => app.on_delivered(now, total, rng))
    }

    fn on_request(&mut self, now: Time, total: u64, rng: &mut Rng) -> Do {
        each!(self, app => app.on_request(now, total, rng))
    }

    fn on_acked(&mut self, now: Time, total: u64, rng: &mut Rng) -> Do {
        each!(self, app => app.on_acked(now, total, rng))
    }

    fn on_timer(&mut self, now: Time, rng: &mut Rng) -> Do {
        each!(self, app => app.on_timer(now, rng))
    }

    fn count(&self, each: &mut dyn FnMut(&'static str, u64)) {
        each!(self, app => app.count(each));
    }
}
