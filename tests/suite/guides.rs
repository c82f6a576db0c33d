//! Senders that routers guide, for scenarios drawn at random: they need meters and echoes of their own.

use proptest::prelude::*;
use proptest::sample::select;

/// Routers that tell of their load both ways, and what senders and receivers make of it.
#[derive(Clone, Copy, Debug)]
pub struct Guide {
    meter: &'static str,
    /// The kind of its senders.
    pub controller: &'static str,
    echo: &'static str,
}

pub const GUIDES: [Guide; 4] = [
    Guide { meter: "vcp", controller: "vcp", echo: "changes" },
    Guide { meter: "adpm", controller: "bmcc", echo: "load" },
    Guide { meter: "adpm", controller: "bmcc", echo: "load-changed" },
    Guide { meter: "adpm", controller: "bmcc", echo: "load-every" },
];

/// Mostly none.
pub fn guided() -> impl Strategy<Value = Option<Guide>> {
    prop_oneof![4 => Just(None), 1 => select(GUIDES.to_vec()).prop_map(Some)]
}

impl Guide {
    /// What stands beside both queues.
    pub fn beside(&self) -> String {
        format!("meter = \"{0}\"\nreverse_meter = \"{0}\"\n", self.meter)
    }

    /// Senders and receivers.
    pub fn sender(&self) -> String {
        let Self { controller, echo, .. } = self;
        format!("controller = \"{controller}\"\nendpoint = {{ ecn = true, echo = \"{echo}\" }}\n")
    }
}
