//! Named sets of values.

use crate::Preset;

/// A preset with its value.
#[derive(Clone, Copy, Debug)]
pub struct PresetOf<P> {
    pub(crate) preset: Preset,
    pub(crate) value: fn() -> P,
}

impl<P> PresetOf<P> {
    /// A preset of this name; the sentence says what it stands for.
    #[must_use]
    pub const fn new(name: &'static str, doc: &'static str, value: fn() -> P) -> Self {
        Self { preset: Preset { name, doc }, value }
    }
}

/// Presets of a set of parameters with `#[schema(presets)]`.
pub trait Presets: Sized + 'static {
    /// Each with its value, in order.
    const PRESETS: &'static [PresetOf<Self>];
}
