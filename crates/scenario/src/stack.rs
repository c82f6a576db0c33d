//! Stacks: the endpoint and the controller of one implementation, under one name.

use cwnd_cc::ControllerParams;
use cwnd_schema::{Params, ParamsChoice as _, Preset};

use crate::diagnostics::{Sink, Span};
use crate::reader::{Context, Section, preset, unknown_name};

/// All stacks: each endpoint preset is one.
pub(crate) fn stacks() -> &'static [Preset] {
    cwnd_tcp::Params::default().presets()
}

/// The stack that a group names, or that it has by default.
pub(crate) fn read(section: &Section<'_>, cx: &mut Context<'_>) -> Option<&'static str> {
    section.read("stack", cx, |at, cx| {
        let named = at.node.text().map(|name| cx.preset_name(name));
        let found = stacks().iter().find(|stack| Some(stack.name) == named);
        if found.is_none() {
            let names: Vec<&str> = stacks().iter().map(|stack| stack.name).collect();
            unknown_name(at, "stack", &names, cx);
        }
        found.map(|stack| stack.name)
    })
}

/// The preset that a controller has for a stack.
pub(crate) fn controller_preset(stack: &str, params: &dyn Params) -> Option<&'static str> {
    let shared = SHARED.iter().find(|(name, _)| *name == stack);
    let other = shared.and_then(|(_, other)| preset(params, other));
    other.or_else(|| preset(params, stack))
}

/// Stacks whose controllers have a preset of another name, if they have it.
const SHARED: &[(&str, &str)] = &[
    ("rfc", "rfc9406"),
    ("rfc6675", "rfc"),
    // sys/netinet/cc: both stacks load the same modules.
    ("freebsd-rack", "freebsd"),
    // RFC 1016 replaces the window's reduction, which is the endpoint's part.
    ("squid", "becn"),
];

/// Stacks of specifications, for which a controller's own defaults stand.
const STANDARDS: &[&str] = &["rfc", "rfc6675"];

/// Notes that a stack is not all that its name says: the controller has no preset for this
/// implementation, or its preset is none of the kernel's own controllers.
pub(crate) fn note(stack: &str, kind: &str, (span, path): (Span, String), sink: &mut Sink) {
    let Some(mut plain) = ControllerParams::of_kind(kind) else { return };
    match controller_preset(stack, plain.params()) {
        None if STANDARDS.contains(&stack) => {}
        None => {
            let message = format!(
                "`{kind}` has no preset for the stack `{stack}`: it keeps its own defaults"
            );
            let problem = sink.note(span, path, message);
            problem.help("name a `preset` of the controller for other values");
        }
        Some(preset) => {
            plain.params_mut().apply_preset(preset);
            if stack == "linux" && plain.info().linux_name().is_none() {
                let message = format!(
                    "Linux has no `{kind}`: its preset `{preset}` is the controller of \
                    `cwnd-kernel`"
                );
                sink.note(span, path, message);
            }
        }
    }
}
