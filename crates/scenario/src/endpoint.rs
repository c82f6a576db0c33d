//! The key `endpoint` of a group: a preset, or a table of parameters over it.

use cwnd_schema::Params as _;
use cwnd_tcp::{PARTS, Params, Part};

use crate::idle;
use crate::reader::{At, Context, Shape, parameters, preset, table_preset, unknown_name_of};
use crate::section::inline;
use crate::sections::SCHEMAS;
use crate::stack::StackParts;
use cwnd_schema::file::{Table, list};

/// The name of a preset, or `{ preset = "linux", ecn = true }` over the preset `base`. `change`
/// goes over the preset. Returns the preset in force, too.
pub(crate) fn read(
    at: At<'_>,
    base: &'static str,
    change: &dyn Fn(&mut Params),
    cx: &mut Context<'_>,
) -> Option<(Params, &'static str)> {
    let mut params = Params::default();
    params.apply_preset(base);
    let Some(table) = at.node.table() else {
        let named = at.node.text().and_then(|name| preset(&params, cx.preset_name(name)));
        if named.is_none() {
            let names: Vec<&str> = params.presets().iter().map(|p| p.name).collect();
            unknown_name_of(at, ("preset", "endpoint"), &names, cx);
        }
        let named = named.filter(|name| params.apply_preset(name));
        change(&mut params);
        idle::reset(&mut params, cx.schema);
        return named.map(|name| (params, name));
    };
    let shape = Shape { title: "endpoint", besides: &[], elsewhere: &|_| None, renames: true };
    let mut is_good = table_preset(&mut params, table, &shape, at, cx);
    let written = table.get("preset").and_then(|entry| entry.node.text());
    let named = written.and_then(|name| preset(&params, cx.preset_name(name))).unwrap_or(base);
    change(&mut params);
    let stack = params.clone();
    is_good &= parameters(&mut params, table, &shape, at, cx);
    is_good &= is_of_stack(table, (&params, &stack), named, at, cx);
    is_good.then_some((params, named))
}

/// Reports parameters that are no keys, but for such that have the stack's values, as in resolved
/// files; `true` if there are none. Files of schema 1 keep them, with a note.
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
        found.filter_map(|field| Some((field.name, Part::named(field.part?)?))).collect();
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
        let span = if entry.set { entry.node.span } else { entry.key_span };
        cx.sink.error(span, path, message).help(remedy(preset, stack, &[part]));
    }
    false
}

/// A sentence with a stack that has or lacks parts, other than `stack` does.
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
