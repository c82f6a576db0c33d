//! Controllers of `cwnd-kernel`: the one that a group requires, and its command-line options.

use cwnd_cc::{ControllerParams, Mechanism};
use cwnd_quantity::parse_duration;
use cwnd_schema::{ParamsChoice as _, Value};

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
