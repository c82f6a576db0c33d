//! Registry of queue disciplines.

/// Defines the registry of queue disciplines, and an enum over the disciplines themselves.
macro_rules! queues {
    ($( $variant:ident($module:ident), )+) => {
        cwnd_schema::registry! {
            /// The queue disciplines, each with its parameters.
            #[each(each_kind)]
            pub enum QueueParams { $( $variant($module), )+ }
        }

        /// Any queue discipline; all but boxed ones are dispatched by a branch instead of a vtable.
        #[derive(Debug)]
        pub enum AnyQdisc<P> {
            $(
                #[doc = concat!("[`", stringify!($module), "`].")]
                $variant(<$module::Params as QueueInfo>::Queue<P>),
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
                )+ }
            }
        }

        /// Calls a method of whichever discipline it is.
        macro_rules! each_queue {
            ($self:expr, $queue:ident => $call:expr) => {
                match $self {
                    $( AnyQdisc::$variant($queue) => $call, )+
                    AnyQdisc::Boxed($queue) => $call,
                }
            };
        }
    };
}
