//! Reader of a group's key `endpoint`: a preset, or a table of parameters on top of one.

use cwnd_schema::file::{
    At, Context, Table, TableDescription, inline, list, named_preset, parameters, table_preset,
    with_current_names,
};
use cwnd_schema::{Field, Params as _, key};
use cwnd_tcp::{PARTS, Params, Part, quic};

use crate::stack::{StackParts, current_name};
use crate::value_forms::SCHEMAS;

/// Reads the name of a preset, or a table such as `{ preset = "linux", ecn = true }`; without a
/// name the preset is `base`. `change` modifies the preset before the parameters apply. Also
/// returns the name of the preset in force.
pub(crate) fn read(
    at: At<'_>,
    base: &'static str,
    change: &dyn Fn(&mut Params),
    cx: &mut Context<'_>,
) -> Option<(Params, &'static str)> {
    let mut params = Params::default();
    params.apply_preset(base);
    let Some(table) = at.node.table() else {
        let named = named_preset(&mut params, "endpoint", current_name, (at, cx))?;
        return Some((of_stack(named, change, cx), named));
    };
    let table = &*with_current_names(&params, table, at.path, cx);
    let shape = TableDescription { title: "endpoint", besides: &[], elsewhere: &quic_key_hint };
    let written = table_preset(&mut params, table, "endpoint", current_name, (at, cx));
    let named = written.flatten().unwrap_or(base);
    change(&mut params);
    let stack = params.clone();
    // Without short-circuit: both report their errors.
    let is_good = parameters(&mut params, table, &shape, at, cx)
        & is_of_stack(table, (&params, &stack), named, at, cx);
    (is_good && written.is_some()).then_some((params, named))
}

/// Returns the endpoint of a stack after `change`.
pub(crate) fn of_stack(base: &str, change: &dyn Fn(&mut Params), cx: &Context<'_>) -> Params {
    let mut params = Params::default();
    params.apply_preset(base);
    change(&mut params);
    cx.reset_idle(&mut params);
    params
}

/// Reads the endpoint of a QUIC group: the name of the stack, or a table of parameters.
pub(crate) fn read_quic(at: At<'_>, cx: &mut Context<'_>) -> Option<quic::Params> {
    let mut params = quic::Params::default();
    let Some(table) = at.node.table() else {
        named_preset(&mut params, "endpoint", current_name, (at, cx))?;
        return Some(params);
    };
    let table = &*with_current_names(&params, table, at.path, cx);
    let shape = TableDescription { title: "endpoint", besides: &[], elsewhere: &tcp_key_hint };
    let written = table_preset(&mut params, table, "endpoint", current_name, (at, cx));
    let is_good = parameters(&mut params, table, &shape, at, cx);
    (is_good && written.is_some()).then_some(params)
}

/// Returns a hint for a key that QUIC has and TCP lacks.
fn quic_key_hint(key: &str) -> Option<String> {
    let found = quic::Params::FIELDS.iter().any(|field| field.name == key);
    let stack = quic::Params::default().presets()[0].name;
    found.then(|| format!("it is a key of the stack `{stack}`, and this is one of TCP"))
}

/// Returns a hint for a key that TCP has and QUIC lacks.
fn tcp_key_hint(key: &str) -> Option<String> {
    let found = Params::FIELDS.iter().any(|field| field.name == key);
    let in_place = QUIC_EQUIVALENTS.iter().find(|(of_tcp, ..)| *of_tcp == key);
    let remedy = match in_place {
        Some((_, of_quic, value)) => format!("write `{of_quic}` in its place, {value}"),
        None => "remove it, or take a stack of TCP".to_owned(),
    };
    found.then(|| format!("it is a key of TCP; {remedy}"))
}

/// Keys of TCP, the corresponding keys of QUIC, and their value relative to TCP's.
const QUIC_EQUIVALENTS: &[(&str, &str, &str)] = &[
    (key!(Params: packets.mss), key!(quic::Params: max_datagram_size), "33 B more"),
    (key!(Params: detection.dup_thresh), key!(quic::Params: packet_threshold), "the same"),
    // The first PTO is three times the initial RTT: the RTT plus four times its half (RFC 9002 §
    // 6.2.1).
    (key!(Params: rto.rto_initial), key!(quic::Params: initial_rtt), "a third of it"),
    (key!(Params: acks.ack_every), key!(quic::Params: ack_eliciting_threshold), "one less"),
    (key!(Params: acks.ack_delay), key!(quic::Params: max_ack_delay), "the same"),
];

/// Reports parameters that only parts of a stack may set; `true` if there are none. Values equal to
/// the stack's are accepted, as resolved files have them. In schema 1 other values are accepted,
/// too, with a note.
fn is_of_stack(
    table: &Table,
    (params, stack): (&Params, &Params),
    preset: &'static str,
    at: At<'_>,
    cx: &mut Context<'_>,
) -> bool {
    let differs = |name: &str| table.get(name).is_some() && params.get(name) != stack.get(name);
    let found = Params::FIELDS.iter().filter(|field| differs(field.name));
    let found: Vec<(&str, &'static Part)> =
        found.filter_map(|field| Some((field.name, part_of(field, params, stack)?))).collect();
    if found.is_empty() {
        return true;
    }
    if cx.schema == SCHEMAS[0] {
        let names = list(found.iter().map(|(name, _)| *name));
        let message = format!("schema 2 sets by parts of a stack: {names}");
        let parts: Vec<&Part> = found.iter().map(|(_, part)| *part).collect();
        cx.sink.note(at.node.span, at.path, message).help(remedy(preset, stack, &parts));
        return true;
    }
    for (name, part) in found {
        let Some(entry) = table.get(name) else { continue };
        let message = format!("`{name}` is no key: the part `{}` of a stack sets it", part.name);
        let path = format!("{}.{name}", at.path);
        let help = match stacks_with(name, params) {
            others if !gives(part, name, params, stack) && !others.is_empty() => {
                format!("take a stack with this value: {}", list(others))
            }
            _ => remedy(preset, stack, &[part]),
        };
        cx.sink.error(entry.position(), path, message).help(help);
    }
    false
}

/// Returns the part that gives a parameter the value from the file, or otherwise the part that owns
/// it; `None` for a parameter that is a key.
fn part_of(field: &Field, params: &Params, stack: &Params) -> Option<&'static Part> {
    let own = Part::named(field.part?)?;
    let mut parts = std::iter::once(own).chain(PARTS);
    Some(parts.find(|part| gives(part, field.name, params, stack)).unwrap_or(own))
}

/// `true` if removing this part from the stack, or adding it, gives the parameter its value in
/// `params`.
fn gives(part: &Part, name: &str, params: &Params, stack: &Params) -> bool {
    let mut other = stack.clone();
    if part.is_in(stack) {
        part.take_from(&mut other);
    } else {
        part.add_to(&mut other);
    }
    has_value(&other, name, params)
}

/// Returns the stacks of TCP in which a parameter has an effect and its value in `params`.
fn stacks_with(name: &str, params: &Params) -> Vec<&'static str> {
    let mut stack = Params::default();
    let names = Params::default().presets().iter().map(|preset| preset.name);
    names.filter(|base| stack.apply_preset(base) && has_value(&stack, name, params)).collect()
}

/// `true` if a parameter has an effect and its value in `params`.
fn has_value(stack: &Params, name: &str, params: &Params) -> bool {
    stack.get(name) == params.get(name) && stack.idle().iter().all(|idle| idle.key != name)
}

/// Returns the advice to write a `stack` in which these parts are toggled, or to remove the only
/// one from the `stack` of the file.
fn remedy(preset: &'static str, stack: &Params, parts: &[&Part]) -> String {
    let mut base = Params::default();
    base.apply_preset(preset);
    if let [part] = parts
        && part.is_in(&base) != part.is_in(stack)
    {
        return format!("remove `{}` from the parts of `stack`", part.name);
    }
    let named = |is_in: bool| {
        let parts = PARTS.iter().filter(|part| parts.iter().any(|of| of.name == part.name));
        parts.filter(|part| part.is_in(stack) == is_in).map(|part| part.name).collect()
    };
    let other = StackParts { base: preset, without: named(true), with: named(false) };
    let is_wanted = |key: &str| match key {
        "without" => !other.without.is_empty(),
        "with" => !other.with.is_empty(),
        _ => true,
    };
    format!("write `stack = {}`", inline(&other, is_wanted))
}
