//! Controllers with explicit feedback, for random scenarios: they need certain meters and echoes.

pub mod table;

use cwnd_cc::ControllerParams;
use cwnd_schema::ParamsChoice as _;
use proptest::prelude::*;
use proptest::sample::select;

pub use table::{FEEDBACK_SCHEMES, FeedbackScheme};

/// A scheme of explicit feedback with the choices that vary from scenario to scenario.
#[derive(Clone, Copy, Debug)]
pub struct FeedbackGroup {
    scheme: FeedbackScheme,
    preset: Option<&'static str>,
    handshake: bool,
}

/// Generates explicit feedback in some scenarios; most have none.
pub fn feedback_group() -> impl Strategy<Value = Option<FeedbackGroup>> {
    let some = select(FEEDBACK_SCHEMES.clone()).prop_flat_map(|scheme| {
        let kind = ControllerParams::of_kind(scheme.controller).expect("it is registered");
        let mut presets = vec![None];
        presets.extend(kind.params().presets().iter().map(|preset| Some(preset.name)));
        (select(presets), any::<bool>()).prop_map(move |(preset, handshake)| FeedbackGroup {
            scheme,
            preset,
            handshake,
        })
    });
    prop_oneof![3 => Just(None), 2 => some.prop_map(Some)]
}

impl FeedbackGroup {
    /// Returns the meter keys of a dumbbell.
    pub fn beside(&self) -> String {
        format!("meter = \"{0}\"\nreverse_meter = \"{0}\"\n", self.scheme.meter)
    }

    /// Returns the keys of senders and receivers; `timer` has the timer's keys of the endpoint.
    pub fn sender(&self, timer: &str) -> String {
        let Self { scheme: FeedbackScheme { controller, echo, .. }, preset, handshake } = self;
        let preset = preset.map_or_else(String::new, |name| format!(", preset = \"{name}\""));
        format!(
            "controller = {{ kind = \"{controller}\"{preset} }}\n\
             endpoint = {{ ecn = true, echo = \"{echo}\", receive_window = \"150 kB\", \
             handshake = {handshake}, {timer} }}\n"
        )
    }
}

/// A controller with one of its presets, and the feedback that it needs, if any.
#[derive(Clone, Copy, Debug)]
pub struct ControllerPreset {
    kind: &'static str,
    preset: Option<&'static str>,
    scheme: Option<FeedbackScheme>,
}

/// Returns each controller with each of its presets; one without presets, alone.
pub fn controller_presets() -> Vec<ControllerPreset> {
    let mut all = Vec::new();
    for kind in ControllerParams::KINDS.iter().map(|kind| kind.name) {
        let params = ControllerParams::of_kind(kind).expect("it is registered");
        let scheme = FEEDBACK_SCHEMES.iter().copied().find(|scheme| scheme.controller == kind);
        let presets: Vec<_> = params.params().presets().iter().map(|p| Some(p.name)).collect();
        let presets = if presets.is_empty() { vec![None] } else { presets };
        all.extend(presets.into_iter().map(|preset| ControllerPreset { kind, preset, scheme }));
    }
    all
}

impl ControllerPreset {
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
    pub fn needs_feedback(&self) -> bool {
        self.scheme.is_some()
    }

    /// Returns the meter keys of a dumbbell; empty without explicit feedback.
    pub fn beside(&self) -> String {
        self.scheme.map_or_else(String::new, |scheme| {
            format!("meter = \"{0}\"\nreverse_meter = \"{0}\"\n", scheme.meter)
        })
    }

    /// Returns controller and endpoint of a group; `endpoint` has further keys of the endpoint.
    pub fn sender(&self, endpoint: &str) -> String {
        let preset = self.preset.map_or_else(String::new, |name| format!(", preset = \"{name}\""));
        let feedback = self
            .scheme
            .map_or_else(String::new, |scheme| format!(", ecn = true, echo = \"{}\"", scheme.echo));
        format!(
            "controller = {{ kind = \"{}\"{preset} }}\nendpoint = {{ {endpoint}{feedback} }}\n",
            self.kind
        )
    }
}

#[test]
fn every_controller_with_explicit_feedback_has_a_meter_and_an_echo() {
    let schemes: Vec<_> =
        FEEDBACK_SCHEMES.iter().map(|g| (g.controller, g.meter, g.echo)).collect();
    assert!(schemes.contains(&("xcp", "xcp", "sum")), "{schemes:?}");
    assert!(schemes.contains(&("bmcc", "adpm", "load-every")), "{schemes:?}");
    assert!(schemes.contains(&("dctcp", "step", "changes")), "{schemes:?}");
}
