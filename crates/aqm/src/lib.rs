//! Queue disciplines, markers, meters and messengers of routers. They decide which packet waits, is
//! marked or is dropped, what is written into packets, and which sources get a message.
//!
//! One file each. A discipline is generic over its packet, so the same code serves structs in the
//! simulator and bytes in a router. Time and randomness are arguments. Every drop and every mark is
//! reported once, with its reason, to a [`Context`].
//!
//! - Queues hold small handles. The owner of the packets passes the [`Context`], through which
//!   queues and meters read and write ECN fields and headers.
//! - [`congested`] alone chooses between mark and drop. Captures and messengers read the verdicts
//!   from a ring, each at its own position.
//! - A meter wraps its queue ([`AnyQdisc::with_meter`]); lines without a meter have no overhead.
//! - A mechanism names its counters ([`Reason`]). Counters of zero change no digest.
//!
//! The crate is `no_std` with `alloc`. A queue has no clock and no I/O:
//! ```
//! use cwnd_aqm::{Context, Packet, Qdisc as _, QueueParams, Reason, codel};
//! use cwnd_packet::Ecn;
//! use cwnd_quantity::{Duration, LinkProperties, Rate, Rng, Time};
//!
//! struct Frame(Ecn);
//! impl Packet for Frame {
//!     fn wire_bytes(&self) -> u32 {
//!         1500
//!     }
//!     fn flow_hash(&self) -> u64 {
//!         0
//!     }
//! }
//!
//! /// Access to the ECN fields of frames, and the times of marks.
//! #[derive(Default)]
//! struct Router(Vec<Time>);
//! impl Context<Frame> for Router {
//!     fn ecn(&self, frame: &Frame) -> Ecn {
//!         frame.0
//!     }
//!     fn set_ecn(&mut self, frame: &mut Frame, ecn: Ecn) {
//!         frame.0 = ecn;
//!     }
//!     fn dropped(&mut self, _: Time, _: &Frame, _: Reason) {}
//!     fn marked(&mut self, now: Time, _: &Frame, reason: Reason, _: bool) {
//!         assert_eq!(reason, codel::REASON);
//!         self.0.push(now);
//!     }
//! }
//!
//! let link = LinkProperties { rate: Rate::from_mbit(12), bdp_rtt: Duration::from_millis(40) };
//! let params = QueueParams::CoDel(codel::Params::default());
//! let mut queue = params.build(&link, Rng::named(1, "queue"));
//! let mut router = Router::default();
//! // Two frames arrive and one leaves each millisecond, so that the delay is half of the time.
//! for now in (0..150).map(|ms| Time::ZERO + Duration::from_millis(ms)) {
//!     queue.enqueue(now, Frame(Ecn::Ect0), &mut router);
//!     queue.enqueue(now, Frame(Ecn::Ect0), &mut router);
//!     assert!(queue.dequeue(now, &mut router).is_some());
//! }
//! // It is at the target, 5 ms, from 9 ms on, and has been there for the interval 100 ms later.
//! assert_eq!(router.0, [Time(109_000_000)]);
//! ```
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

#[macro_use]
extern crate alloc;

use alloc::boxed::Box;

use cwnd_packet::{Contract, HasContract};
use cwnd_quantity::{LinkProperties, Rng};

/// Defines the registry of queue disciplines, and an enum over the disciplines themselves.
macro_rules! queues {
    ($( $variant:ident($module:ident), )+ ; loaded $( $own:ident($own_module:ident), )+) => {
        cwnd_schema::registry! {
            /// The queue disciplines, each with its parameters.
            #[each(each_kind)]
            pub enum QueueParams {
                $( $variant($module), )+
                ; loaded $( $own($own_module), )+
            }
        }

        /// Any queue discipline; all but boxed ones are dispatched by a branch instead of a vtable.
        #[derive(Debug)]
        pub enum AnyQdisc<P> {
            $(
                #[doc = concat!("[`", stringify!($module), "`].")]
                $variant(<$module::Params as QueueInfo>::Queue<P>),
            )+
            $(
                #[doc = concat!("[`", stringify!($own_module), "`].")]
                $own(<$own_module::Params as QueueInfo>::Queue<P>),
            )+
            /// One that is not among the kinds, or one of them with a meter.
            Boxed(Box<dyn DynQdisc<P>>),
        }

        impl QueueParams {
            /// Builds an empty queue with these parameters before a link; `rng` serves those that
            /// draw.
            #[must_use]
            pub fn build<P: Packet>(&self, link: &LinkProperties, rng: Rng) -> AnyQdisc<P> {
                match self { $(
                    Self::$variant(params) => AnyQdisc::$variant(params.build(link, rng)),
                )+ $(
                    Self::$own(params) => AnyQdisc::$own(params.build(link, rng)),
                )+ }
            }
        }

        /// Calls a method of whichever discipline it is.
        macro_rules! each_queue {
            ($self:expr, $queue:ident => $call:expr) => {
                match $self {
                    $( AnyQdisc::$variant($queue) => $call, )+
                    $( AnyQdisc::$own($queue) => $call, )+
                    AnyQdisc::Boxed($queue) => $call,
                }
            };
        }
    };
}

queues! {
    Fifo(fifo),
    Red(red),
    CoDel(codel),
    Pie(pie),
    FqCoDel(fq_codel),
    ; loaded
    Python(python),
}

mod any;
mod departure;
pub mod load;
pub mod messengers;
pub mod meters;
mod qdisc;

pub use messengers::{Messenger, MessengerInfo, MessengerParams, Outcome, Verdict};
pub use meters::{Meter, MeterInfo, MeterParams};
pub use qdisc::{Backlog, Context, DynQdisc, Packet, Qdisc, QueueInfo, Reason, congested, mark};

impl QueueParams {
    /// `true` if the queue reads the flow hash of packets.
    #[must_use]
    pub fn reads_flow_hash(&self) -> bool {
        each_kind!(self, params => params.reads_flow_hash())
    }
}

impl HasContract for QueueParams {
    fn contract(&self) -> Contract {
        each_kind!(self, params => params.contract())
    }
}
