//! A controller of an installed package, in Rust. The crate knows its description and parameters;
//! the caller that runs a scenario loads the package's library and sets a [`Maker`].

use alloc::format;
use alloc::vec::Vec;

use cwnd_schema::{
    Description, Field, Idle, Invalid, Loaded, Params as SchemaParams, ParseError, Preset, Value,
};

use crate::loaded::Maker;

/// Values of the parameters that a description lists.
#[derive(Clone, Debug, PartialEq)]
pub struct Params {
    /// Description of the kind.
    pub description: &'static Description,
    values: Vec<Option<Value>>,
    /// Maker of its controllers; it has no other arguments.
    pub loaded: Loaded<dyn Maker>,
}

impl Params {
    /// Creates the parameters of a kind, with their defaults.
    #[must_use]
    pub fn new(description: &'static Description) -> Self {
        Self { description, values: description.defaults.clone(), loaded: Loaded::default() }
    }

    fn default_of(&self, name: &str) -> Option<Value> {
        self.description.defaults[self.description.place(name)?].clone()
    }
}

impl SchemaParams for Params {
    fn fields(&self) -> &'static [Field] {
        self.description.fields
    }

    fn set(&mut self, name: &str, value: &Value) -> Result<(), ParseError> {
        let place = self.description.place(name);
        let place = place.ok_or_else(|| ParseError(format!("there is no parameter `{name}`")))?;
        self.values[place] = Some(self.description.value(place, value)?);
        Ok(())
    }

    fn get(&self, name: &str) -> Option<Value> {
        self.values[self.description.place(name)?].clone()
    }

    fn presets(&self) -> &'static [Preset] {
        &[]
    }

    fn apply_preset(&mut self, _: &str) -> bool {
        false
    }

    /// Each value was checked when it was set. What the package checks in combination is reported
    /// when it is loaded.
    fn check(&self) -> Result<(), Invalid> {
        Ok(())
    }

    fn idle(&self) -> Vec<Idle> {
        Vec::new()
    }

    fn reset(&mut self, name: &str) {
        if let Some(place) = self.description.place(name) {
            self.values[place] = self.default_of(name);
        }
    }

    fn is_default(&self, name: &str) -> bool {
        self.get(name) == self.default_of(name)
    }
}

crate::loaded::parameters_of_loaded_code!(Params);
