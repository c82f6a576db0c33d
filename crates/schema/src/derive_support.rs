//! Functions that derived code calls; not an interface for other code.

use alloc::borrow::ToOwned as _;
pub use alloc::collections::BTreeMap;
pub use alloc::string::String;
pub use alloc::vec::Vec;

use crate::{
    Bounds, Field, Idle, Invalid, Param, Params, ParseError, Preset, PresetOf, Presets, Value,
    ValueType,
};

/// Counts the entries of several lists.
#[must_use]
pub const fn total<T>(parts: &[&[T]]) -> usize {
    let (mut n, mut part) = (0, 0);
    while part < parts.len() {
        n += parts[part].len();
        part += 1;
    }
    n
}

/// Concatenates several lists, of [`total`] entries; `nothing` fills the array before they are set.
#[must_use]
pub const fn joined<T: Copy, const N: usize>(parts: &[&[T]], nothing: T) -> [T; N] {
    let mut all = [nothing; N];
    let (mut n, mut part) = (0, 0);
    while part < parts.len() {
        let mut i = 0;
        while i < parts[part].len() {
            all[n] = parts[part][i];
            (n, i) = (n + 1, i + 1);
        }
        part += 1;
    }
    all
}

/// Copies fields, and replaces the sources of those named in `sources`.
#[must_use]
pub const fn with_sources<const N: usize>(
    fields: &[Field],
    sources: &[(&str, &'static str)],
) -> [Field; N] {
    let mut all = joined(&[fields], EMPTY);
    let mut s = 0;
    while s < sources.len() {
        let mut i = 0;
        while i < N {
            if same(all[i].name, sources[s].0) {
                all[i].source = sources[s].1;
            }
            i += 1;
        }
        s += 1;
    }
    all
}

/// Copies fields in another order: those from `first` to `last` come directly after `after`.
#[must_use]
pub const fn moved<const N: usize>(
    fields: [Field; N],
    [first, last]: [&str; 2],
    after: &str,
) -> [Field; N] {
    let [first, last, after] =
        [position(&fields, first), position(&fields, last), position(&fields, after)];
    assert!(first <= last && (after < first || last < after), "keys move after another one");
    let mut all = fields;
    let (mut from, mut to) = (0, 0);
    while from < N {
        if from < first || last < from {
            all[to] = fields[from];
            to += 1;
        }
        if from == after {
            let mut moving = first;
            while moving <= last {
                all[to] = fields[moving];
                (moving, to) = (moving + 1, to + 1);
            }
        }
        from += 1;
    }
    all
}

/// `true` if one of the fields has this name.
#[must_use]
pub const fn has(fields: &[Field], name: &str) -> bool {
    position(fields, name) < fields.len()
}

/// Returns the index of the field with this name, or the number of fields if there is none.
const fn position(fields: &[Field], name: &str) -> usize {
    let mut i = 0;
    while i < fields.len() && !same(fields[i].name, name) {
        i += 1;
    }
    i
}

/// `true` if two names are equal; `==` on strings is not `const`.
#[must_use]
pub const fn same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut i = 0;
    while i < a.len() && i < b.len() && a[i] == b[i] {
        i += 1;
    }
    i == a.len() && i == b.len()
}

/// Placeholder entry for arrays of fields that are not filled yet.
pub const EMPTY: Field = Field {
    name: "",
    value_type: ValueType::Text,
    doc: "",
    source: "",
    bounds: Bounds::NONE,
    required: false,
    part: None,
    was: None,
    later: false,
};

/// Returns the names and docs of presets.
#[must_use]
pub const fn named<P, const N: usize>(presets: &[PresetOf<P>]) -> [Preset; N] {
    let mut all = [Preset { name: "", doc: "" }; N];
    let mut i = 0;
    while i < N {
        all[i] = presets[i].preset;
        i += 1;
    }
    all
}

/// Sets `params` to the values of a preset; `false` if no preset has this name.
pub fn apply_preset<P: Presets>(params: &mut P, name: &str) -> bool {
    let found = P::PRESETS.iter().find(|of| of.preset.name == name);
    if let Some(of) = found {
        *params = (of.value)();
    }
    found.is_some()
}

/// Sets a parameter to a written value that lies within its bounds.
///
/// # Errors
/// If it is of another kind or out of bounds, as a sentence for the user.
pub fn assign<T: Param>(
    to: &mut T,
    fields: &[Field],
    name: &str,
    value: &Value,
) -> Result<(), ParseError> {
    let read = T::read(value)?;
    match violation(fields, name, &read) {
        Some(message) => Err(ParseError(message)),
        None => {
            *to = read;
            Ok(())
        }
    }
}

/// Checks that the value of a parameter lies within its bounds.
///
/// # Errors
/// If it does not.
pub fn check<T: Param>(fields: &[Field], key: &'static str, value: &T) -> Result<(), Invalid> {
    violation(fields, key, value).map_or(Ok(()), |message| Err(Invalid { key, message }))
}

/// Returns the error message for a value out of bounds.
fn violation<T: Param>(fields: &[Field], name: &str, value: &T) -> Option<String> {
    let field = fields.iter().find(|field| field.name == name)?;
    field.bounds.violation(value.quantity()?)
}

/// Returns the error for a name that no parameter has.
#[must_use]
pub fn unknown(name: &str) -> ParseError {
    ParseError(format!("there is no parameter `{name}`"))
}

/// Sets a parameter to its value in `defaults`.
pub fn reset(params: &mut dyn Params, defaults: &dyn Params, name: &str) {
    if let Some(value) = defaults.get(name) {
        // A default is a valid value of the parameter.
        let _ = params.set(name, &value);
    }
}

/// Keeps the first reason for each parameter without effect.
#[must_use]
pub fn each_once(mut found: Vec<Idle>) -> Vec<Idle> {
    let mut seen = Vec::new();
    found.retain(|idle| {
        let is_new = !seen.contains(&idle.key);
        seen.push(idle.key);
        is_new
    });
    found
}

/// Reads the name of an enum variant.
///
/// # Errors
/// If it is none of `names`, as a sentence for the user.
pub fn read_choice<T>(
    value: &Value,
    names: &[&str],
    named: impl Fn(&str) -> Option<T>,
) -> Result<T, ParseError> {
    let found = if let Value::Text(text) = value { named(text) } else { None };
    found.ok_or_else(|| crate::not_a_choice(value, names))
}

/// Writes the name of an enum variant.
#[must_use]
pub fn write_choice(name: &str) -> Value {
    Value::Text(name.to_owned())
}
