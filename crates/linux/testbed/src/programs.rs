//! Controllers of `cwnd-kernel`: the one that a group requires, and its command-line options.
//! Parameters of an endpoint that Linux takes from a setting or from a program of `cwnd-kernel`,
//! for studies of behaviour that Linux lacks.

use std::path::Path;

use cwnd_cc::{ControllerParams, Mechanism, c};
use cwnd_quantity::{Duration, parse_duration};
use cwnd_scenario::{FlowGroup, Scenario};
use cwnd_schema::{ParamsChoice as _, Value, key};
use cwnd_tcp::{EchoKind, Params, RttFrom, TsoParams, TsoSizing};

/// A controller that `cwnd-kernel` loads.
#[derive(Debug, PartialEq, Eq)]
pub struct Program {
    /// Mechanism that it implements.
    pub mechanism: &'static str,
    name: Name,
    options: &'static [OptionSpec],
    /// Source of its facts about the path, besides ACKs.
    pub feedback: FeedbackSource,
    /// `true` if it uses round-trip times: the minimum of its connection, which Linux reports for
    /// each socket, and samples chosen by `--rtt-from`.
    pub uses_rtt: bool,
    /// Names of its counters, as in the simulator's controller.
    pub counters: &'static [&'static str],
}

/// Name of the controller on the command line.
#[derive(Debug, PartialEq, Eq)]
enum Name {
    /// Prefix, followed by `_` and the name of the kernel's controller of the same kind.
    Before(&'static str),
    /// Name of the kind with `_` for `-`.
    Kind(&'static str),
}

/// Parameter of the controller, command-line option that sets it, and form of the value.
#[derive(Debug, PartialEq, Eq)]
struct OptionSpec(&'static str, &'static str, ValueForm);

/// Form of a parameter's value on the command line.
#[derive(Debug, PartialEq, Eq)]
enum ValueForm {
    /// Form used in scenarios.
    Plain,
    /// Number of milliseconds.
    Ms,
    /// Word for each value.
    Words(&'static [(&'static str, &'static str)]),
}

/// Source of a controller's facts about the path, besides ACKs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeedbackSource {
    /// No other source.
    Acks,
    /// Messages of routers, read at the sender's interface.
    Interface,
    /// Data packets, read at the receiver, which reports them according to the endpoint's `echo`.
    Receiver,
}

/// Value of a time without limit, ms: no round trip is longer.
const LONGEST_MS: f64 = 60_000.0;

const PROGRAMS: [Program; 5] = [
    Program {
        mechanism: "ABE",
        name: Name::Before("abe"),
        options: &[
            OptionSpec("beta_ecn", "--beta-ecn", ValueForm::Plain),
            OptionSpec(
                "ecn_in_slow_start",
                "--mode",
                ValueForm::Words(&[("beta", "avoidance"), ("beta-ecn", "always")]),
            ),
        ],
        feedback: FeedbackSource::Acks,
        uses_rtt: false,
        counters: &[],
    },
    Program {
        mechanism: "BECN",
        name: Name::Before("becn"),
        options: &[
            OptionSpec("beta_quench", "--beta-quench", ValueForm::Plain),
            OptionSpec("rest_after_quench", "--rest", ValueForm::Plain),
        ],
        feedback: FeedbackSource::Interface,
        uses_rtt: false,
        counters: &[],
    },
    Program {
        mechanism: "adaptive backoff",
        name: Name::Before("adaptive"),
        options: &[OptionSpec("adaptive_delta", "--delta", ValueForm::Plain)],
        feedback: FeedbackSource::Acks,
        uses_rtt: true,
        counters: &[],
    },
    Program {
        mechanism: "backoff for delay",
        name: Name::Kind("delay_aimd"),
        options: &[
            OptionSpec("threshold", "--threshold", ValueForm::Ms),
            OptionSpec("delta", "--delta", ValueForm::Plain),
            OptionSpec("least_window", "--least-window", ValueForm::Plain),
        ],
        feedback: FeedbackSource::Acks,
        uses_rtt: true,
        counters: &[],
    },
    Program {
        mechanism: "load factors",
        name: Name::Kind("bmcc"),
        options: &[
            OptionSpec("interval", "--interval", ValueForm::Ms),
            OptionSpec("mi_step", "--mi-step", ValueForm::Plain),
            OptionSpec("alpha", "--alpha", ValueForm::Plain),
            OptionSpec("beta_most", "--beta-most", ValueForm::Plain),
            OptionSpec("beta_least", "--beta-least", ValueForm::Plain),
            OptionSpec("least", "--least", ValueForm::Plain),
            OptionSpec("high", "--high", ValueForm::Plain),
            OptionSpec("most", "--most", ValueForm::Plain),
            OptionSpec("multiplies_first", "--multiplies-first", ValueForm::Plain),
            OptionSpec("rests", "--rests", ValueForm::Plain),
            OptionSpec("mi_rtt_most", "--mi-rtt-most", ValueForm::Ms),
            OptionSpec("on_loss", "--on-loss", ValueForm::Plain),
            OptionSpec("paced", "--paced", ValueForm::Plain),
        ],
        feedback: FeedbackSource::Receiver,
        uses_rtt: false,
        counters: &[
            "load_acks_heard",
            "load_acks_multiplied",
            "load_acks_added",
            "load_acks_rested",
            "load_decreases",
            "losses_only_repaired",
        ],
    },
];

/// Returns the programs for a kind of controller, with any parameters.
pub fn of_kind(controller: &ControllerParams) -> impl Iterator<Item = &'static Program> {
    PROGRAMS.iter().filter(|program| {
        let names = |m: &Mechanism| m.name == program.mechanism;
        let is_of_kind = match program.name {
            Name::Before(_) => controller.info().linux_name().is_some(),
            Name::Kind(name) => controller.kind().replace('-', "_") == name,
        };
        is_of_kind && controller.info().mechanisms().iter().any(names)
    })
}

/// Returns the programs for the mechanisms that a controller uses; Linux runs the first.
pub fn required(controller: &ControllerParams) -> impl Iterator<Item = &'static Program> {
    of_kind(controller)
        .filter(|program| controller.asked_for().any(|m| m.name == program.mechanism))
}

impl Program {
    /// Returns the names of the parameters that it supports.
    pub fn parameters(&self) -> impl Iterator<Item = &'static str> {
        self.options.iter().map(|OptionSpec(key, ..)| *key)
    }

    /// Returns its name and options on the command line of `cwnd-kernel`.
    pub fn words(&self, controller: &ControllerParams) -> Vec<String> {
        let name = match (&self.name, controller.info().linux_name()) {
            (Name::Before(mechanism), Some(own)) => format!("{mechanism}_{own}"),
            (Name::Before(name) | Name::Kind(name), _) => (*name).to_owned(),
        };
        let options = self.options.iter().filter_map(|OptionSpec(key, option, form)| {
            let value = written(controller.params().get(key)?, form);
            Some([(*option).to_owned(), value])
        });
        [name].into_iter().chain(options.flatten()).collect()
    }
}

fn written(value: Value, form: &ValueForm) -> String {
    let text = match value {
        Value::Text(text) => text,
        Value::Bool(yes) => yes.to_string(),
        Value::Integer(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
    };
    match form {
        ValueForm::Plain => text,
        ValueForm::Ms => {
            parse_duration(&text).map_or(LONGEST_MS, |t| t.as_secs_f64() * 1e3).to_string()
        }
        ValueForm::Words(words) => {
            words.iter().find(|(of, _)| *of == text).map_or(text, |(_, word)| (*word).to_owned())
        }
    }
}

/// Returns those of the parameters for laboratories (RTT source, timestamps of cheating receivers,
/// TSO) that Linux can provide as this group's endpoint gives them.
pub fn settable(scenario: &Scenario, group: &FlowGroup) -> Vec<&'static str> {
    let endpoint = &group.endpoint;
    let mut settable = Vec::new();
    let uses_rtt = required(&group.controller).any(|program| program.uses_rtt);
    match (endpoint.timing.rtt_from, endpoint.rtt.rtt_from_notes) {
        // The kernel passes this RTT to controllers.
        (RttFrom::Sack, true) => settable.push(key!(Params: timing.rtt_from)),
        (RttFrom::Oldest, true) if uses_rtt => settable.push(key!(Params: timing.rtt_from)),
        (RttFrom::Timer, _) if uses_rtt => settable.push(key!(Params: rtt.rtt_from_notes)),
        _ => {}
    }
    if subtracted_ms(endpoint).is_some() {
        settable.push(key!(Params: cheat.cheat_timestamps));
    }
    // TSO settings apply to a whole host.
    let tso = &endpoint.tso;
    if scenario.connections().all(|other| other.endpoint.tso == *tso) {
        settable.push(key!(Params: tso.tso_win_divisor));
        match (tso.tso, tso.tso_sizing, tso.tso_defer) {
            (Some(_), TsoSizing::Full, Some(TSO_DEFER_LIMIT))
                if min_segments(endpoint).is_some() =>
            {
                settable.extend([key!(Params: tso.tso), key!(Params: tso.tso_defer)]);
            }
            // This is the kernel's own behaviour.
            (Some(_), TsoSizing::Unpaced, None) => {
                settable.extend([key!(Params: tso.tso), key!(Params: tso.tso_sizing)])
            }
            _ => {}
        }
    }
    settable
}

/// Returns the arguments of `cwnd-kernel` for a controller in C, from its compiled object.
pub fn code_arguments(params: &c::Params, object: &Path) -> Vec<String> {
    let mut words = ["hold", "--object", &object.to_string_lossy()].map(str::to_owned).to_vec();
    words.extend(params.name.iter().flat_map(|name| ["--table".to_owned(), name.clone()]));
    for (name, value) in &params.loaded.arguments {
        let value = written(value.clone(), &ValueForm::Plain);
        words.extend(["--set".to_owned(), format!("{name}={value}")]);
    }
    words
}

/// `true` if the group's controller in C echoes marks, so that its receivers have it as well.
pub fn echoes_by_code(group: &FlowGroup) -> bool {
    let is_code = matches!(group.controller, ControllerParams::C(_));
    is_code && group.endpoint.acks.echo == EchoKind::Changes
}

/// Returns additional arguments of `cwnd-kernel` for a controller with another RTT than the
/// kernel's.
pub fn rtt_arguments(endpoint: &Params) -> Vec<String> {
    let from = match (endpoint.timing.rtt_from, endpoint.rtt.rtt_from_notes) {
        (RttFrom::Oldest, _) => Some("oldest"),
        // Only the controller's RTT comes from timestamps: Linux's timer keeps its send times.
        (RttFrom::Timer, false) => Some("timestamps"),
        _ => None,
    };
    from.into_iter().flat_map(|word| ["--rtt-from", word]).map(str::to_owned).collect()
}

/// Returns the arguments of `cwnd-kernel` for misbehaving receivers; `None` without
/// [`subtracted_ms`].
pub fn misbehaviour_arguments(endpoint: &Params) -> Option<Vec<String>> {
    let ms = subtracted_ms(endpoint)?.to_string();
    Some(["hold", "cheat_stamps", "--subtract", &ms].map(str::to_owned).to_vec())
}

/// Returns the hosts' sysctls for TSO that the first group's endpoint requires.
pub fn tso_sysctls(scenario: &Scenario) -> Vec<(&'static str, String)> {
    let Some(group) = scenario.connections().next() else { return Vec::new() };
    let tso = &group.endpoint.tso;
    let mut settings = Vec::new();
    if tso.tso_win_divisor != TsoParams::default().tso_win_divisor {
        settings.push(("net.ipv4.tcp_tso_win_divisor", tso.tso_win_divisor.to_string()));
    }
    if let Some(segments) = min_segments(&group.endpoint) {
        settings.push(("net.ipv4.tcp_min_tso_segs", segments.to_string()));
    }
    settings
}

/// Returns how much receivers subtract from timestamps, which count milliseconds in Linux; `None`
/// for zero and for other than whole milliseconds.
fn subtracted_ms(endpoint: &Params) -> Option<u64> {
    let ns = endpoint.cheat.cheat_timestamps.0;
    (ns > 0 && ns.is_multiple_of(NS_PER_MS)).then_some(ns / NS_PER_MS)
}

/// Returns the least segments of a TSO packet, if it is to be as large as `tso` allows and Linux's
/// setting can have the number.
fn min_segments(endpoint: &Params) -> Option<u64> {
    let tso = endpoint.tso.tso.filter(|_| endpoint.tso.tso_sizing == TsoSizing::Full)?;
    let segments = tso.0 / endpoint.packets.mss.0;
    (2..=MAX_MIN_SEGMENTS).contains(&segments).then_some(segments)
}

const NS_PER_MS: u64 = 1_000_000;
/// Limit in `tcp_tso_should_defer` of the time since the last segment, and until an ACK is due.
const TSO_DEFER_LIMIT: Duration = Duration::from_millis(1);
/// Largest value of `tcp_min_tso_segs`, a byte.
const MAX_MIN_SEGMENTS: u64 = 255;

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a kind with the values of one of its presets.
    fn preset(kind: &str, name: &str) -> ControllerParams {
        let mut params = ControllerParams::of_kind(kind).unwrap();
        assert!(params.params_mut().apply_preset(name) || name.is_empty(), "{kind} {name}");
        params
    }

    fn line(controller: &ControllerParams) -> Option<String> {
        Some(required(controller).next()?.words(controller).join(" "))
    }

    #[test]
    fn every_parameter_and_mechanism_of_a_program_is_its_kinds() {
        for program in &PROGRAMS {
            let kinds = ControllerParams::KINDS.iter().filter_map(|kind| {
                let params = ControllerParams::of_kind(kind.name)?;
                let is_for = of_kind(&params).any(|other| other == program);
                is_for.then_some(params)
            });
            let kinds: Vec<_> = kinds.collect();
            assert!(!kinds.is_empty(), "{}", program.mechanism);
            for (kind, key) in kinds.iter().flat_map(|k| program.parameters().map(move |p| (k, p)))
            {
                assert!(kind.params().get(key).is_some(), "{}: no `{key}`", kind.kind());
            }
        }
    }

    #[test]
    fn a_command_line_says_what_the_preset_asks_for() {
        let lines = [
            ("newreno", "linux", None),
            ("newreno", "abe", Some("abe_reno --beta-ecn 0.8 --mode avoidance")),
            ("newreno", "paper", Some("abe_reno --beta-ecn 0.8 --mode always")),
            ("newreno", "adaptive-backoff", Some("adaptive_reno --delta 0.8")),
            ("htcp", "", None),
            (
                "bmcc",
                "",
                Some(
                    "bmcc --interval 200 --mi-step 0.35 --alpha 1 --beta-most 0.875 \
                     --beta-least 0.65 --least 0.15 --high 0.75 --most 1.2 --multiplies-first true \
                     --rests both --mi-rtt-most 500 --on-loss if-overload --paced true",
                ),
            ),
        ];
        for (kind, name, expected) in lines {
            assert_eq!(line(&preset(kind, name)).as_deref(), expected, "{kind} {name}");
        }
        let mut quenched = preset("newreno", "linux");
        quenched.params_mut().set("beta_quench", &Value::Float(0.5)).unwrap();
        assert_eq!(line(&quenched).unwrap(), "becn_reno --beta-quench 0.5 --rest marked");
    }

    #[test]
    fn a_kind_with_presets_for_linux_is_the_kernels_or_a_programs() {
        for kind in ControllerParams::KINDS {
            let params = ControllerParams::of_kind(kind.name).unwrap();
            let linux = params.params().presets().iter().any(|preset| preset.name == "linux");
            let has = params.info().linux_name().is_some() || of_kind(&params).next().is_some();
            assert!(!has || linux, "{}: no preset `linux`", kind.name);
        }
    }
}
