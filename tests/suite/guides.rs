//! Senders that routers guide, for scenarios drawn at random: they need meters and echoes of their own.

use std::sync::LazyLock;

use cwnd_aqm::MeterParams;
use cwnd_cc::ControllerParams;
use cwnd_packet::{Ability, Contract, Declares as _, Place};
use cwnd_schema::{Param as _, ParamsChoice as _, Value};
use cwnd_tcp::EchoKind;
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

/// A guide for each controller that needs something of routers or receivers: the first meter that
/// provides all that it asks of links, and each echo that provides what it asks of receivers.
pub static GUIDES: LazyLock<Vec<Guide>> = LazyLock::new(|| {
    let mut all = Vec::new();
    for kind in ControllerParams::KINDS {
        let asks = ControllerParams::of_kind(kind.name).expect("it is registered").contract().asks;
        if !asks.iter().any(|ask| ask.needed) {
            continue;
        }
        let of = |receiver: bool| {
            let asks = asks.iter().map(|ask| ask.ability);
            let at = asks.filter(move |asked| match asked.place() {
                Place::Sender => false,
                Place::Receiver => receiver,
                Place::SomeLink | Place::EveryLink => !receiver,
            });
            at.collect::<Vec<_>>()
        };
        let provided = |by: Contract, asked: &[Ability]| {
            asked.iter().all(|ability| by.provides.contains(ability))
        };
        let meter = MeterParams::KINDS.iter().map(|meter| meter.name).find(|name| {
            let meter = MeterParams::of_kind(name).expect("it is registered");
            provided(meter.contract(), &of(false))
        });
        let meter = meter.unwrap_or_else(|| panic!("no meter provides what {} asks", kind.name));
        for &echo in EchoKind::NAMES {
            let read = EchoKind::read(&Value::Text(echo.to_owned())).expect("it is a name");
            if provided(read.contract(), &of(true)) {
                all.push(Guide { meter, controller: kind.name, echo });
            }
        }
    }
    all
});

/// A guide, and what varies of its senders.
#[derive(Clone, Copy, Debug)]
pub struct Guided {
    guide: Guide,
    preset: Option<&'static str>,
    handshake: bool,
}

/// Mostly none.
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
             endpoint = {{ ecn = true, echo = \"{echo}\", receive_window = \"150 kB\", \
             handshake = {handshake}, {timer} }}\n"
        )
    }
}

/// A controller with one of its presets, and what it needs of routers and receivers.
#[derive(Clone, Copy, Debug)]
pub struct Pair {
    kind: &'static str,
    preset: Option<&'static str>,
    guide: Option<Guide>,
}

/// Each controller with each of its presets.
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
    /// Controller and preset: `copa mvfst`.
    pub fn name(&self) -> String {
        let words = [Some(self.kind), self.preset];
        words.into_iter().flatten().collect::<Vec<_>>().join(" ")
    }

    /// The controller's kind.
    pub const fn kind(&self) -> &'static str {
        self.kind
    }

    /// `true` if routers guide it.
    pub fn is_guided(&self) -> bool {
        self.guide.is_some()
    }

    /// Keys of the dumbbell beside its queues.
    pub fn beside(&self) -> String {
        self.guide.map_or_else(String::new, |guide| {
            format!("meter = \"{0}\"\nreverse_meter = \"{0}\"\n", guide.meter)
        })
    }

    /// Controller and endpoint of a group; the endpoint has these keys, too.
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
