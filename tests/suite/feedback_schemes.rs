//! Controllers with explicit feedback, for random scenarios: they need certain meters and echoes.

pub mod table;

use cwnd_cc::ControllerParams;
use cwnd_schema::ParamsChoice as _;
use proptest::prelude::*;
use proptest::sample::select;

pub use table::{GUIDES, Guide};

/// A guide with the choices that vary from scenario to scenario.
#[derive(Clone, Copy, Debug)]
pub struct Guided {
    guide: Guide,
    preset: Option<&'static str>,
    handshake: bool,
}

/// Generates a guide in some scenarios; in most there is none.
pub fn guided() -> impl Strategy<Value = Option<Guided>> {
    let some = select(GUIDES.clone()).prop_flat_map(|guide| {
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
    /// Returns the meter keys of a dumbbell.
    pub fn beside(&self) -> String {
        format!("meter = \"{0}\"\nreverse_meter = \"{0}\"\n", self.guide.meter)
    }

    /// Returns the keys of senders and receivers; `timer` has the timer's keys of the endpoint.
    pub fn sender(&self, timer: &str) -> String {
        let Self { guide: Guide { controller, echo, .. }, preset, handshake } = self;
        let preset = preset.map_or_else(String::new, |name| format!(", preset = \"{name}\""));
        format!(
            "controller = {{ kind = \"{controller}\"{preset} }}\n\
             endpoint = {{ ecn = true, echo = \"{echo}\", receive_window = \"150 kB\", \
             handshake = {handshake}, {timer} }}\n"
        )
    }
}

/// A controller with one of its presets, and the guide that it needs, if any.
#[derive(Clone, Copy, Debug)]
pub struct Pair {
    kind: &'static str,
    preset: Option<&'static str>,
    guide: Option<Guide>,
}

/// Returns each controller with each of its presets.
pub fn pairs() -> Vec<Pair> {
    let mut all = Vec::new();
    for kind in ControllerParams::KINDS.iter().map(|kind| kind.name) {
        let params = ControllerParams::of_kind(kind).expect("it is registered");
        let guide = GUIDES.iter().copied().find(|guide| guide.controller == kind);
        let presets: Vec<_> = params.params().presets().iter().map(|p| Some(p.name)).collect();
        let presets = if presets.is_empty() { vec![None] } else { presets };
        all.extend(presets.into_iter().map(|preset| Pair { kind, preset, guide }));
    }
    all
}

impl Pair {
    /// Returns the names of controller and preset, such as `copa mvfst`.
    pub fn name(&self) -> String {
        let words = [Some(self.kind), self.preset];
        words.into_iter().flatten().collect::<Vec<_>>().join(" ")
    }

    /// Returns the kind of the controller.
    pub const fn kind(&self) -> &'static str {
        self.kind
    }

    /// `true` if the controller needs explicit feedback.
    pub fn is_guided(&self) -> bool {
        self.guide.is_some()
    }

    /// Returns the meter keys of a dumbbell; empty without a guide.
    pub fn beside(&self) -> String {
        self.guide.map_or_else(String::new, |guide| {
            format!("meter = \"{0}\"\nreverse_meter = \"{0}\"\n", guide.meter)
        })
    }

    /// Returns controller and endpoint of a group; `endpoint` has further keys of the endpoint.
    pub fn sender(&self, endpoint: &str) -> String {
        let preset = self.preset.map_or_else(String::new, |name| format!(", preset = \"{name}\""));
        let told = self
            .guide
            .map_or_else(String::new, |guide| format!(", ecn = true, echo = \"{}\"", guide.echo));
        format!(
            "controller = {{ kind = \"{}\"{preset} }}\nendpoint = {{ {endpoint}{told} }}\n",
            self.kind
        )
    }
}

#[test]
fn every_controller_that_routers_guide_has_a_meter_and_an_echo() {
    let guides: Vec<_> = GUIDES.iter().map(|g| (g.controller, g.meter, g.echo)).collect();
    assert!(guides.contains(&("xcp", "xcp", "sum")), "{guides:?}");
    assert!(guides.contains(&("bmcc", "adpm", "load-every")), "{guides:?}");
    assert!(guides.contains(&("dctcp", "step", "changes")), "{guides:?}");
}
