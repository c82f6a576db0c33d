//! Stacks: the endpoint and controller presets of one implementation under one name. Reader of a
//! group's key `endpoint`: a preset, or a table of parameters on top of one.

use cwnd_cc::ControllerParams;
use cwnd_schema::file::{
    At, Context, IdleKey, Item, Node, ReadValue, Section, SectionKeys, Sink, Span, Table,
    TableDescription, WriteValue, WrittenValue, inline, list, named_preset, parameters, preset,
    quoted, table_preset, unknown_name, with_current_names,
};
use cwnd_schema::{Field, Params as _, ParamsChoice as _, Preset, SectionKeys, key};
use cwnd_tcp::{PARTS, Params, Part, Recovery, quic};

use crate::value_forms::{self, Format, SCHEMAS};

/// Iterates over all stacks, one for each endpoint preset, TCP before QUIC.
pub(crate) fn stacks() -> impl Iterator<Item = &'static Preset> {
    Params::default().presets().iter().chain(quic::Params::default().presets())
}

/// Name of the first stack, used if a stack can't be read.
pub(crate) fn first() -> &'static str {
    Params::default().presets()[0].name
}

/// `true` if the stack is one of QUIC.
pub(crate) fn is_quic(name: &str) -> bool {
    quic::Params::default().presets().iter().any(|preset| preset.name == name)
}

/// Returns the current name of a preset: schema 1's `rfc` is now `rfc6675`.
pub(crate) fn current_name(name: &str, schema: u64) -> &str {
    if schema == SCHEMAS[0] && name == "rfc" { "rfc6675" } else { name }
}

/// A stack with some of its parts removed and others added.
#[derive(Clone, Debug, PartialEq, Eq, SectionKeys)]
#[section(check = check)]
pub struct StackParts {
    /// Stack to start from.
    #[entry(value_forms::STACK_NAME)]
    #[by_schema("rfc6675", "linux", "cwnd: the stack of a file that names none")]
    pub base: &'static str,
    /// Parts of that stack that are left out.
    #[entry(value_forms::PARTS)]
    #[default([], "cwnd: the stack as it is")]
    pub without: Vec<&'static str>,
    /// Parts that are added to that stack.
    #[entry(value_forms::PARTS)]
    #[default([], "cwnd: the stack as it is")]
    pub with: Vec<&'static str>,
}

impl StackParts {
    /// Creates a stack with all its parts and no others.
    pub(crate) const fn unchanged(base: &'static str) -> Self {
        Self { base, without: Vec::new(), with: Vec::new() }
    }

    /// `true` if no part differs from the base.
    #[must_use]
    pub fn is_base(&self) -> bool {
        self.without.is_empty() && self.with.is_empty()
    }

    /// Removes and adds the parts in an endpoint's parameters.
    pub(crate) fn change(&self, params: &mut Params) {
        let part = |name: &&'static str| Part::named(name);
        self.without.iter().filter_map(part).for_each(|part| part.take_from(params));
        self.with.iter().filter_map(part).for_each(|part| part.add_to(params));
    }

    /// Records added parts that have no effect with the keys of this endpoint.
    pub(crate) fn note_idle(&self, endpoint: &Params, section: &Section<'_>, cx: &mut Context<'_>) {
        if self.with.is_empty() {
            return;
        }
        let mut with = endpoint.clone();
        self.change(&mut with);
        let possible = with_all_needs(with.clone());
        for part in self.with.iter().filter_map(|name| Part::named(name)) {
            let is_of_part = |key: &str| {
                let mut fields = Params::FIELDS.iter();
                fields.any(|field| field.name == key && field.part == Some(part.name))
            };
            // A part that no endpoint key could enable was already reported by [`check`].
            if part.is_in(&with) || !part.is_in(&possible) {
                continue;
            }
            let why = with.idle().iter().find(|idle| is_of_part(idle.key)).map(|idle| idle.why);
            let why = why.unwrap_or("beside these keys of `endpoint`");
            let message = format!("the part `{}` has no effect {why}", part.name);
            let stack = section.entry("stack").and_then(|entry| entry.node.table());
            let list = stack.and_then(|table| table.get("with"));
            let span = list.and_then(|entry| position_in(&entry.node, part));
            let span = span.unwrap_or_else(|| section.span_of("stack"));
            let path = format!("{}.with", section.path_of("stack"));
            cx.idle.push(IdleKey { span, path, message, by_preset: false });
        }
    }

    /// Reports an endpoint preset of another stack than the one whose parts are changed.
    pub(crate) fn check_preset(&self, preset: &str, at: At<'_>, cx: &mut Context<'_>) {
        if preset == self.base || self.is_base() {
            return;
        }
        let base = self.base;
        let message = format!("the parts of the stack `{base}` do not go with this preset");
        let problem = cx.sink.error(at.node.span, at.path, message);
        problem.help(format!("leave out the preset, or write `base = \"{preset}\"` in the stack"));
    }
}

/// Reads the name of a stack, or a table.
impl ReadValue<Format> for StackParts {
    fn read(at: At<'_>, cx: &mut Context<'_>) -> Option<Self> {
        let Some(table) = at.node.table() else {
            return <&'static str>::read(at, cx).map(Self::unchanged);
        };
        let section = Section::new(table, &[Self::KEYS], at.path, at.node.span, cx);
        <Self as SectionKeys>::read(&section, cx)
    }
}

impl WriteValue<Format> for StackParts {
    fn write(&self) -> WrittenValue<'_> {
        if self.is_base() {
            return self.base.write();
        }
        WrittenValue::Line(inline(self, |_| true))
    }
}

/// Reads the name of a stack.
impl ReadValue<Format> for &'static str {
    fn read(at: At<'_>, cx: &mut Context<'_>) -> Option<Self> {
        let named = at.node.text().map(|name| current_name(name, cx.schema));
        let found = stacks().find(|stack| Some(stack.name) == named);
        if found.is_none() {
            let names: Vec<&str> = stacks().map(|stack| stack.name).collect();
            unknown_name(at, "stack", &names, cx);
        }
        found.map(|stack| stack.name)
    }
}

impl WriteValue<Format> for &'static str {
    fn write(&self) -> WrittenValue<'_> {
        WrittenValue::Line(quoted(self))
    }
}

/// Reads names of parts; the result has each once, in the order of [`PARTS`].
impl ReadValue<Format> for Vec<&'static str> {
    fn read(at: At<'_>, cx: &mut Context<'_>) -> Option<Self> {
        let Item::Array(items) = &at.node.item else {
            at.wrong_kind("a list of parts such as [\"rack\"]", cx);
            return None;
        };
        let mut is_good = true;
        for node in items {
            if node.text().and_then(Part::named).is_none() {
                let names: Vec<&str> = PARTS.iter().map(|part| part.name).collect();
                unknown_name(At { node, path: at.path }, "part", &names, cx);
                is_good = false;
            }
        }
        let named = |part: &&Part| items.iter().any(|node| node.text() == Some(part.name));
        is_good.then(|| PARTS.iter().filter(named).map(|part| part.name).collect())
    }
}

impl WriteValue<Format> for Vec<&'static str> {
    fn write(&self) -> WrittenValue<'_> {
        let names: Vec<String> = self.iter().map(|name| quoted(name)).collect();
        WrittenValue::Line(format!("[{}]", names.join(", ")))
    }
}

/// Reports removed parts that the stack lacks, added parts that it has, added parts without effect,
/// and any parts for a stack of QUIC.
fn check(found: &PartialStackParts, section: &Section<'_>, cx: &mut Context<'_>) {
    let PartialStackParts { base: Some(base), without: Some(without), with: Some(with) } = found
    else {
        return;
    };
    if is_quic(base) {
        return refuse_parts(base, [("without", without), ("with", with)], section, cx);
    }
    let mut stack = Params::default();
    stack.apply_preset(base);
    let [mut less, mut changed] = [stack.clone(), stack.clone()];
    StackParts { base, without: without.clone(), with: Vec::new() }.change(&mut less);
    StackParts { base, without: without.clone(), with: with.clone() }.change(&mut changed);
    let changed = with_all_needs(changed);
    let mut report = |key: &str, part: &Part, message: String, help: String| {
        let entry = section.entry(key).map(|entry| &entry.node);
        let span = entry.and_then(|list| position_in(list, part));
        let span = span.unwrap_or_else(|| section.span_of(key));
        cx.sink.error(span, section.path_of(key), message).help(help);
    };
    for part in PARTS {
        let (name, is_in) = (part.name, part.is_in(&stack));
        if without.contains(&name) && !is_in {
            let has = PARTS.iter().filter(|part| part.is_in(&stack)).map(|part| part.name);
            let message = format!("the stack `{base}` has no part `{name}`");
            report("without", part, message, format!("it has {}", list(has)));
        }
        if with.contains(&name) && part.is_in(&less) {
            let message = format!("the stack `{base}` has the part `{name}` already");
            report("with", part, message, "remove it here".to_owned());
        } else if with.contains(&name) && !part.is_in(&changed) {
            let message = format!("the part `{name}` has no effect on this stack");
            let help = match part.needs {
                Some(needed) => format!("it needs the part `{needed}`"),
                None => "remove it here, or take another stack".to_owned(),
            };
            report("with", part, message, help);
        }
    }
}

/// Enables the features that parts need and that keys of `endpoint` can provide: SACK and
/// timestamps.
fn with_all_needs(mut params: Params) -> Params {
    params.recovery.recovery = Recovery::Sack;
    params.rtt.timestamps = true;
    params
}

/// Returns the position of a part in a list of names.
fn position_in(list: &Node, part: &Part) -> Option<Span> {
    let Item::Array(items) = &list.item else { return None };
    items.iter().find(|node| node.text() == Some(part.name)).map(|node| node.span)
}

/// Reports parts for a stack that has none, as QUIC's.
fn refuse_parts(
    base: &str,
    lists: [(&str, &Vec<&'static str>); 2],
    section: &Section<'_>,
    cx: &mut Context<'_>,
) {
    for (key, parts) in lists {
        if let [part, ..] = parts.as_slice() {
            let message = format!("the stack `{base}` has no parts, and `{part}` is one of TCP");
            let problem = cx.sink.error(section.span_of(key), section.path_of(key), message);
            problem.help(format!("remove `{key}`; the keys of `endpoint` vary this stack"));
        }
    }
}

/// Returns the preset that a controller has for a stack.
pub(crate) fn controller_preset(
    stack: &str,
    params: &dyn cwnd_schema::Params,
) -> Option<&'static str> {
    let shared = SHARED.iter().find(|(name, _)| *name == stack);
    let other = shared.and_then(|(_, other)| preset(params, other));
    other.or_else(|| preset(params, stack))
}

/// Controller presets whose names differ from the stack's; a controller without it falls back to
/// the stack's name.
const SHARED: &[(&str, &str)] = &[
    ("rfc", "rfc9406"),
    ("rfc6675", "rfc"),
    ("quic", "rfc9002"),
    // sys/netinet/cc: both stacks load the same modules.
    ("freebsd-rack", "freebsd"),
    // RFC 1016 replaces the window's reduction, which is the endpoint's part.
    ("squid", "becn"),
];

/// Stacks of specifications; controllers keep their own defaults in them without a note.
const STANDARDS: &[&str] = &["rfc", "rfc6675", "quic"];

/// Notes a stack that is not entirely what its name says: the controller has no preset for it, or
/// Linux has no such controller.
pub(crate) fn note(stack: &str, kind: &str, (span, path): (Span, String), sink: &mut Sink) {
    let Some(mut plain) = ControllerParams::of_kind(kind) else { return };
    match controller_preset(stack, plain.params()) {
        None if STANDARDS.contains(&stack) => {}
        // A user's code has the parameters that it wants.
        None if plain.params().arguments().is_some() => {}
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

/// Reads the name of a preset, or a table such as `{ preset = "linux", ecn = true }`; without a
/// name the preset is `base`. `change` modifies the preset before the parameters apply. Also
/// returns the name of the preset in force.
pub(crate) fn read_endpoint(
    at: At<'_>,
    base: &'static str,
    change: &dyn Fn(&mut Params),
    cx: &mut Context<'_>,
) -> Option<(Params, &'static str)> {
    let mut params = Params::default();
    params.apply_preset(base);
    let Some(table) = at.node.table() else {
        let named = named_preset(&mut params, "endpoint", current_name, (at, cx))?;
        return Some((endpoint_of_stack(named, change, cx), named));
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
pub(crate) fn endpoint_of_stack(
    base: &str,
    change: &dyn Fn(&mut Params),
    cx: &Context<'_>,
) -> Params {
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
