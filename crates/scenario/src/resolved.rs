//! The resolved scenario file: a scenario written out with its defaults.

use core::fmt::Write as _;

use cwnd_cc::ControllerParams;
use cwnd_quantity::Duration;
use cwnd_schema::file::{DESCRIPTION, Resolved, WrittenValue, key, toml};
use cwnd_schema::{Param, Params, ParamsChoice, Value};

use crate::file::ScenarioFile;
use crate::flow_keys::{DumbbellFlowKeys, FlowKeys, GraphFlowKeys};
use crate::links::{DumbbellKeys, LinkKeys};
use crate::model::{FlowGroup, Scenario, Stack};
use crate::run::Noise;
use crate::stack;
use crate::value_forms::SCHEMAS;

/// Returns the resolved file and its id. Reading the file gives an equal scenario, which resolves
/// to the same text.
pub(crate) fn resolved(scenario: &Scenario, dumbbell: bool) -> (String, String) {
    let has_idle = scenario.schema == SCHEMAS[0];
    let mut out = Writer { text: String::new(), hash: ContentHash::NEW, has_idle };
    let all = |_: &str| true;
    out.keys(&[], &ScenarioFile::of(scenario, dumbbell), all);
    // Ids are hashes of this text: without noise, files of schema 1 keep the ids from before the
    // key existed.
    let has_noise = scenario.schema > SCHEMAS[0] || scenario.run.noise != Noise::None;
    out.keys(&["run"], &scenario.run, |name| has_noise || name != "noise");
    out.keys(&["record"], &scenario.record, all);
    match scenario.links.as_slice() {
        [forward, reverse] if dumbbell => {
            let edge_rate = scenario.flows.first().and_then(|g| g.edge_rate);
            let keys = DumbbellKeys::of(forward, reverse, edge_rate);
            out.keys(&["dumbbell"], &keys, |name| forward.acks_first || name != "acks_first");
        }
        links => links.iter().for_each(|link| {
            let keys = LinkKeys::of(link, &scenario.nodes);
            let is_wanted = |name: &str| link.acks_first || name != "acks_first";
            out.keys(&["link", &link.name], &keys, is_wanted);
        }),
    }
    for (name, place) in scenario.nodes.iter().zip(&scenario.node_positions) {
        if let Some(place) = place {
            out.keys(&["node", name], place, all);
        }
    }
    for group in &scenario.flows {
        out.group(group, scenario, dumbbell);
    }
    (out.text, out.hash.digits())
}

/// FNV-1a of a text, 128 bits.
struct ContentHash(u128);

impl ContentHash {
    /// Offset basis that the authors of FNV give for 128 bits.
    const NEW: Self = Self(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d);
    /// Prime that the authors of FNV give for 128 bits.
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;

    fn add(&mut self, text: &str) {
        let add = |hash: u128, byte: u8| (hash ^ u128::from(byte)).wrapping_mul(Self::PRIME);
        self.0 = text.bytes().fold(self.0, add);
    }

    /// Returns the hash in hexadecimal digits.
    fn digits(&self) -> String {
        format!("{:032x}", self.0)
    }
}

struct Writer {
    text: String,
    /// Hash of the text, in which renamed parameters have their former names, and later ones only
    /// stand if they differ from their defaults: ids stay.
    hash: ContentHash,
    /// `true` if keys without effect are written as well, as in files of schema 1.
    has_idle: bool,
}

impl Writer {
    fn section(&mut self, path: &[&str]) {
        let parts: Vec<String> = path.iter().map(|part| key(part)).collect();
        self.line(format_args!("\n[{}]", parts.join(".")));
    }

    fn key(&mut self, name: &str, value: &Value) {
        self.line(format_args!("{name} = {}", toml(value)));
    }

    fn line(&mut self, text: core::fmt::Arguments<'_>) {
        let from = self.text.len();
        // Writing to a string can't fail.
        let _ = writeln!(self.text, "{text}");
        self.hash.add(&self.text[from..]);
    }

    /// Writes a section: its keys accepted by `is_wanted`, then its parts.
    fn keys(&mut self, path: &[&str], of: &impl Resolved, is_wanted: impl Fn(&str) -> bool) {
        if !path.is_empty() {
            self.section(path);
        }
        let mut written = of.written();
        written.retain(|(name, _)| is_wanted(name));
        for (moved, after) in MOVED {
            let place = |name| written.iter().position(|(key, _)| *key == name);
            if let (Some(from), Some(to)) = (place(*moved), place(*after))
                && from < to
            {
                written[from..=to].rotate_left(1);
            }
        }
        for (name, value) in &written {
            if let WrittenValue::Line(value) = value {
                self.line(format_args!("{name} = {value}"));
            }
        }
        for (name, value) in &written {
            if let WrittenValue::Part(kind, params) = value {
                self.part(&[path, &[name]].concat(), kind, *params);
            }
        }
    }

    fn group(&mut self, group: &FlowGroup, scenario: &Scenario, dumbbell: bool) {
        let connects = group.connects();
        let is_wanted = |name: &str| match name {
            "stack" => group.stack.is_some(),
            "attacker" => connects,
            // Files without it keep their ids from before the key existed.
            "rtt_step" => group.rtt_step > Duration::ZERO,
            "ends" => !group.has_route(),
            "controller" | "peers" => false,
            _ => true,
        };
        let path = ["flow", &group.name];
        let all = FlowKeys::of(group);
        if dumbbell {
            self.keys(&path, &(all, DumbbellFlowKeys::of(group, scenario)), is_wanted);
        } else {
            self.keys(&path, &(all, GraphFlowKeys::of(group, scenario)), is_wanted);
        }
        if connects {
            self.tcp(group);
        }
    }

    /// Writes controller and endpoint. If a stack is named, its presets are written, and comments
    /// mark the values that differ from them.
    fn tcp(&mut self, group: &FlowGroup) {
        let FlowGroup { name, controller, endpoint, quic, .. } = group;
        self.section(&["flow", name, "controller"]);
        self.key("kind", &controller.kind().to_owned().write());
        if let Some(description) = controller.description() {
            self.key(DESCRIPTION, &description.text.write());
        }
        if let Some(Stack { parts, controller: preset, .. }) = &group.stack
            && let Some(mut plain) = ControllerParams::of_kind(controller.kind())
        {
            let of_stack = stack::controller_preset(parts.base, plain.params());
            self.preset(*preset, of_stack, plain.params_mut());
            self.params(controller.params(), Some(plain.params()));
        } else {
            self.params(controller.params(), None);
        }
        self.section(&["flow", name, "endpoint"]);
        if let (Some(quic), Some(stack)) = (quic, &group.stack) {
            let mut plain = cwnd_tcp::quic::Params::default();
            self.preset(Some(stack.endpoint), Some(stack.parts.base), &mut plain);
            self.params(quic, Some(&plain));
        } else if let Some(Stack { parts, endpoint: preset, .. }) = &group.stack {
            let mut plain = cwnd_tcp::Params::default();
            self.preset(Some(*preset), Some(parts.base), &mut plain);
            parts.change(&mut plain);
            self.params(endpoint, Some(&plain));
        } else {
            self.params(endpoint, None);
        }
    }

    /// Writes the preset in force with a comment on its origin, and applies it to `plain`.
    fn preset(&mut self, preset: Option<&str>, of_stack: Option<&str>, plain: &mut dyn Params) {
        let Some(preset) = preset else { return };
        plain.apply_preset(preset);
        let origin = if Some(preset) == of_stack { "of the stack" } else { NOT_OF_STACK };
        self.line(format_args!("preset = {}  # {origin}", toml(&preset.to_owned().write())));
    }

    /// Writes parameters; a comment marks those that differ from `plain`, the preset or the
    /// defaults.
    fn params(&mut self, params: &dyn Params, plain: Option<&dyn Params>) {
        let idle = self.idle(params);
        for field in params.fields().iter().filter(|field| !idle.contains(&field.name)) {
            let Some(value) = params.get(field.name) else { continue };
            let origin = match plain {
                Some(plain) if plain.get(field.name).as_ref() != Some(&value) => {
                    format!("  # {NOT_OF_PRESET}")
                }
                _ => String::new(),
            };
            let rest = format!(" = {}{origin}\n", toml(&value));
            self.text += field.name;
            self.text += &rest;
            if !field.later || !params.is_default(field.name) {
                self.hash.add(field.was.unwrap_or(field.name));
                self.hash.add(&rest);
            }
        }
        for (name, value) in params.arguments().into_iter().flatten() {
            self.line(format_args!("{} = {}", key(name), toml(value)));
        }
    }

    /// Returns the keys without effect, to be left out: schema 2 refuses a file that has them.
    fn idle(&self, params: &dyn Params) -> Vec<&'static str> {
        if self.has_idle { Vec::new() } else { params.idle().iter().map(|idle| idle.key).collect() }
    }

    fn part(&mut self, path: &[&str], kind: &str, params: &dyn Params) {
        self.section(path);
        self.key("kind", &kind.to_owned().write());
        self.params(params, None);
    }
}

/// Keys written later than in the reference, each after the key beside it. The order is kept
/// because ids are hashes of the text.
const MOVED: &[(&str, &str)] = &[
    ("device_queue", "reverse_rate"),
    ("device_queue", "duplex"),
    ("bdp_rtt", "option_damage"),
    ("start", "direction"),
    ("start", "edge_rate"),
    ("spacing", "start"),
    ("stop", "spacing"),
];
/// Comment at a preset that differs from the stack's.
const NOT_OF_STACK: &str = "in place of the stack's";
/// Comment at a value that differs from the preset's.
const NOT_OF_PRESET: &str = "in place of the preset's";

#[cfg(test)]
mod tests {
    use super::*;

    /// Test vectors of the FNV authors for FNV-1a, 128 bits.
    #[test]
    fn the_content_hash_is_fnv_1a() {
        let mut hash = ContentHash::NEW;
        assert_eq!(hash.digits(), "6c62272e07bb014262b821756295c58d");
        hash.add("a");
        assert_eq!(hash.digits(), "d228cb696f1a8caf78912b704e4a8964");
    }
}
