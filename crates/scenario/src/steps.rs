//! Values that change at given times: lists such as `[{ at = "10 s", rate = "5 Mbit/s" }]`.

use cwnd_quantity::{Duration, Rate, Time};
use cwnd_schema::SectionKeys;
use cwnd_schema::file::{At, Context, Item, Key, Section, SectionKeys};

use crate::data_files::delays;

/// An entry of a rate's `steps`.
#[derive(SectionKeys)]
pub(crate) struct RateStep {
    /// Time at which the rate changes.
    #[required("none")]
    pub at: Duration,
    /// Rate from then on.
    #[required("none")]
    pub rate: Rate,
}

/// An entry of a link's `delay_steps`.
#[derive(SectionKeys)]
pub(crate) struct DelayStep {
    /// Time at which the delay changes.
    #[required("none")]
    pub at: Duration,
    /// Delay beyond the link's `delay` from then on.
    #[required("none")]
    pub added: Duration,
}

/// Reads the rate changes of a link, in order of time.
pub(crate) fn rate_steps(at: At<'_>, cx: &mut Context<'_>) -> Option<Vec<(Time, Rate)>> {
    let example = "{ at = \"10 s\", rate = \"5 Mbit/s\" }";
    steps(at, cx, &[RateStep::KEYS], example, |RateStep { at, rate }| (at, rate))
}

/// Reads the added delays of a link, in order of time.
pub(crate) fn delay_steps(at: At<'_>, cx: &mut Context<'_>) -> Option<Vec<(Time, Duration)>> {
    if let Some(name) = at.node.text() {
        return recorded(at, name, cx);
    }
    let example = "{ at = \"10 s\", added = \"50 ms\" }";
    steps(at, cx, &[DelayStep::KEYS], example, |DelayStep { at, added }| (at, added))
}

/// Reads the steps from a file of recorded delays.
fn recorded(at: At<'_>, name: &str, cx: &mut Context<'_>) -> Option<Vec<(Time, Duration)>> {
    match cx.content(name, "file of delays", delays) {
        Ok(steps) => Some(steps.as_ref().clone()),
        Err(why) => {
            let message = format!("the delays of `{name}` can't be used: {why}");
            let problem = cx.sink.error(at.node.span, at.path, message);
            problem.help("a file has the columns `time_s` and `added_ms`, its times in order");
            None
        }
    }
}

fn steps<S: SectionKeys, T>(
    at: At<'_>,
    cx: &mut Context<'_>,
    keys: &'static [&'static [Key]],
    example: &str,
    parts: impl Fn(S) -> (Duration, T),
) -> Option<Vec<(Time, T)>> {
    let Item::Array(list) = &at.node.item else {
        at.wrong_kind(&format!("a list such as [{example}]"), cx);
        return None;
    };
    let mut changes: Vec<(Time, T)> = Vec::new();
    let mut good = true;
    for (i, node) in list.iter().enumerate() {
        let path = format!("{}[{i}]", at.path);
        let Some(table) = node.table() else {
            At { node, path: &path }.wrong_kind(&format!("a step such as {example}"), cx);
            good = false;
            continue;
        };
        let section = Section::new(table, keys, path, node.span, cx);
        let Some((when, value)) = S::read(&section, cx).map(&parts) else {
            good = false;
            continue;
        };
        let when = Time(when.0);
        if changes.last().is_some_and(|&(earlier, _)| earlier >= when) {
            let message = "a step must come after the one before it";
            cx.sink.error(section.span_of("at"), section.path_of("at"), message);
            good = false;
        }
        changes.push((when, value));
    }
    good.then_some(changes)
}
