//! Senders that routers guide, for scenarios drawn at random: they need meters and echoes of their own.

use cwnd_cc::ControllerParams;
use cwnd_units::ParamsChoice as _;
use proptest::prelude::*;
use proptest::sample::select;

/// Routers that tell senders what to do, both ways, and what senders and receivers make of it.
#[derive(Clone, Copy, Debug)]
pub struct Guide {
    meter: &'static str,
    /// The kind of its senders.
    pub controller: &'static str,
    echo: &'static str,
}

pub const GUIDES: [Guide; 8] = [
    Guide { meter: "xcp", controller: "xcp", echo: "sum" },
    Guide { meter: "rcp", controller: "rcp", echo: "last" },
    Guide { meter: "vcp", controller: "vcp", echo: "changes" },
    Guide { meter: "mlcp", controller: "mlcp", echo: "level" },
    Guide { meter: "adpm", controller: "bmcc", echo: "load" },
    Guide { meter: "adpm", controller: "bmcc", echo: "load-changed" },
    Guide { meter: "adpm", controller: "bmcc", echo: "load-every" },
    Guide { meter: "step", controller: "dctcp", echo: "changes" },
];

/// A guide, and what varies of its senders.
#[derive(Clone, Copy, Debug)]
pub struct Guided {
    guide: Guide,
    preset: Option<&'static str>,
    handshake: bool,
}

/// Mostly none.
pub fn guided() -> impl Strategy<Value = Option<Guided>> {
    let some = select(GUIDES.to_vec()).prop_flat_map(|guide| {
        let kind = ControllerParams::of_kind(guide.controller).expect("it is registered");
        let mut presets = vec![None];
        presets.extend(kind.params().presets().iter().map(|preset| Some(preset.name)));
        (select(presets), any::<bool>()).prop_map(move |(preset, handshake)| Guided {
            guide,
            preset,
            handshake,
        })
    });
    prop_oneof![3 => Just(None), 2 => some.prop_map(Some)]
}

impl Guided {
    /// What stands beside both queues.
    pub fn beside(&self) -> String {
        format!("meter = \"{0}\"\nreverse_meter = \"{0}\"\n", self.guide.meter)
    }

    /// Senders and receivers, with a timer of the endpoint's keys.
    pub fn sender(&self, timer: &str) -> String {
        let Self { guide: Guide { controller, echo, .. }, preset, handshake } = self;
        let preset = preset.map_or_else(String::new, |name| format!(", preset = \"{name}\""));
        format!(
            "controller = {{ kind = \"{controller}\"{preset} }}\n\
             endpoint = {{ ecn = true, echo = \"{echo}\", receive_window = \"150 kB\", handshake = {handshake}, {timer} }}\n"
        )
    }
}
