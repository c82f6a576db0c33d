//! Presets: named sets of parameter values.

use crate::Preset;

/// A preset with the function that makes its values.
#[derive(Clone, Copy, Debug)]
pub struct PresetOf<P> {
    pub(crate) preset: Preset,
    pub(crate) value: fn() -> P,
}

impl<P> PresetOf<P> {
    /// Creates a preset; `doc` is its text in the reference.
    #[must_use]
    pub const fn new(name: &'static str, doc: &'static str, value: fn() -> P) -> Self {
        Self { preset: Preset { name, doc }, value }
    }
}

/// Presets of a set of parameters with `#[schema(presets)]`.
pub trait Presets: Sized + 'static {
    /// All presets, in order.
    const PRESETS: &'static [PresetOf<Self>];
}
