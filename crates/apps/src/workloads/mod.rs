//! Workloads of flows: a file for each kind.

use std::sync::Arc;

use cwnd_quantity::{Bytes, Rng, Time};

use crate::application::{Actions, Application, Facts, Volume, Workload};
use crate::users::Habits;

/// Defines the registry of workloads, and an enum over their applications.
macro_rules! workloads {
    ($( $kind:ident($module:ident), )+ ; loaded $( $own:ident($own_module:ident), )+) => {
        cwnd_schema::registry! {
            /// Kinds of workloads, each with its parameters.
            #[each(each_kind)]
            pub enum WorkloadParams {
                $( $kind($module), )+
                ; loaded $( $own($own_module), )+
            }
        }

        /// Application of a flow, as a variant for each kind: a branch instead of a virtual call.
        #[derive(Debug)]
        pub enum AnyApplication {
            $(
                #[doc = concat!("[`", stringify!($module), "`].")]
                $kind(<$module::Params as Workload>::App),
            )+
            /// An application outside the registry, or of the user's code.
            Boxed(Box<dyn Application>),
        }

        impl WorkloadParams {
            /// Creates the application of a flow with a recorded size; `None` if this kind takes no
            /// recorded size (all but `bytes`).
            #[must_use]
            pub fn of_size(&self, size: Bytes) -> Option<AnyApplication> {
                match self { $(
                    Self::$kind(_) => {
                        <$module::Params as Workload>::of_size(size).map(AnyApplication::$kind)
                    }
                )+ $( Self::$own(_) => None, )+ }
            }

            /// Returns a constructor of the applications of a group.
            #[must_use]
            pub fn maker(&self) -> Maker {
                match self { $( Self::$kind(params) => {
                    let shared = Arc::new(params.clone());
                    Box::new(move || AnyApplication::$kind(Workload::application(&shared)))
                } )+ $( Self::$own(params) => {
                    let shared = Arc::new(params.clone());
                    Box::new(move || AnyApplication::Boxed(Workload::application(&shared)))
                } )+ }
            }
        }

        /// Calls a method of an application of any kind.
        macro_rules! each_application {
            ($self:expr, $app:ident => $call:expr) => {
                match $self {
                    $( AnyApplication::$kind($app) => $call, )+
                    AnyApplication::Boxed($app) => $call,
                }
            };
        }
    };
}

workloads! {
    Bulk(bulk),
    Bytes(bytes),
    OnOff(on_off),
    Poisson(poisson),
    Udp(udp),
    Web(web),
    ; loaded
    Python(python),
}

/// Constructor of the applications of a group's flows.
pub type Maker = Box<dyn Fn() -> AnyApplication + Send>;

impl WorkloadParams {
    /// Facts about the kind.
    #[must_use]
    pub fn facts(&self) -> Facts {
        each_kind!(self, params => params.facts())
    }

    /// Mean volume of a flow, or of all flows of a user or session, in segments of `segment` bytes;
    /// `None` if it is not known beforehand.
    #[must_use]
    pub fn volume(&self, segment: Bytes) -> Option<Volume> {
        each_kind!(self, params => params.volume(segment))
    }

    /// Habits of each user; `None` if a user is one connection.
    #[must_use]
    pub fn habits(&self) -> Option<Habits> {
        each_kind!(self, params => params.habits())
    }
}

impl Application for AnyApplication {
    fn start(&mut self, now: Time, rng: &mut Rng) -> Actions {
        each_application!(self, app => app.start(now, rng))
    }

    fn on_delivered(&mut self, now: Time, total: u64, rng: &mut Rng) -> Actions {
        each_application!(self, app => app.on_delivered(now, total, rng))
    }

    fn on_request(&mut self, now: Time, total: u64, rng: &mut Rng) -> Actions {
        each_application!(self, app => app.on_request(now, total, rng))
    }

    fn on_acked(&mut self, now: Time, total: u64, rng: &mut Rng) -> Actions {
        each_application!(self, app => app.on_acked(now, total, rng))
    }

    fn on_timer(&mut self, now: Time, rng: &mut Rng) -> Actions {
        each_application!(self, app => app.on_timer(now, rng))
    }

    fn count(&self, each: &mut dyn FnMut(&'static str, u64)) {
        each_application!(self, app => app.count(each));
    }
}
