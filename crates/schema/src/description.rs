//! Descriptions of kinds that installed packages have, which stand for a derived set of parameters.

#[cfg(feature = "describe")]
mod json;

use alloc::string::String;
use alloc::vec::Vec;

use cwnd_quantity::{
    Bytes, CountDist, Duration, DurationDist, Levels, ParseError, QueueSize, Rate, SizeDist,
};

use crate::bounds::Quantity;
use crate::params::{Field, Param, RegistryEntry, Share, Value, ValueType, not_a_choice};

#[cfg(feature = "describe")]
pub use self::json::{describe, described, from_json, values_as_json};

/// A kind that another package has.
#[derive(Debug, PartialEq)]
pub struct Description {
    /// Text that it was read from, which resolved files repeat.
    pub text: String,
    /// Name and documentation.
    pub entry: RegistryEntry,
    /// Its parameters, in order.
    pub fields: &'static [Field],
    /// Defaults of the parameters, in order; `None` for required ones.
    pub defaults: Vec<Option<Value>>,
}

impl Description {
    /// Returns the index of a parameter.
    #[must_use]
    pub fn place(&self, name: &str) -> Option<usize> {
        self.fields.iter().position(|field| field.name == name)
    }

    /// Reads a written value of a parameter, in the form in which the parameter writes it.
    ///
    /// # Errors
    /// If it is of another kind or out of bounds, as a sentence for the user.
    pub fn value(&self, place: usize, written: &Value) -> Result<Value, ParseError> {
        let field = &self.fields[place];
        let (value, quantity) = read_as(field.value_type, written)?;
        match quantity.and_then(|quantity| field.bounds.violation(quantity)) {
            Some(message) => Err(ParseError(message)),
            None => Ok(value),
        }
    }
}

/// Reads a value of a type; returns it as the type writes it, and the number that bounds compare.
fn read_as(kind: ValueType, value: &Value) -> Result<(Value, Option<Quantity>), ParseError> {
    fn of<T: Param>(value: &Value) -> Result<(Value, Option<Quantity>), ParseError> {
        T::read(value).map(|read| (read.write(), read.quantity()))
    }
    match (kind, value) {
        (ValueType::Optional(_), Value::Text(text)) if text == "none" => Ok((value.clone(), None)),
        (ValueType::Optional(inner), _) => read_as(*inner, value),
        (ValueType::Choice(names), Value::Text(text)) if names.contains(&text.as_str()) => {
            Ok((value.clone(), None))
        }
        (ValueType::Choice(names), _) => Err(not_a_choice(value, names)),
        (ValueType::Bool, _) => of::<bool>(value),
        (ValueType::Integer, _) => of::<u64>(value),
        (ValueType::Number, _) => of::<f64>(value),
        (ValueType::Duration, _) => of::<Duration>(value),
        (ValueType::Rate, _) => of::<Rate>(value),
        (ValueType::Bytes, _) => of::<Bytes>(value),
        (ValueType::QueueSize, _) => of::<QueueSize>(value),
        (ValueType::Share, _) => of::<Share>(value),
        (ValueType::DurationDist, _) => of::<DurationDist>(value),
        (ValueType::SizeDist, _) => of::<SizeDist>(value),
        (ValueType::Fractions, _) => of::<Levels<f64>>(value),
        (ValueType::QueueSizes, _) => of::<Levels<QueueSize>>(value),
        (ValueType::CountDist, _) => of::<CountDist>(value),
        (
            ValueType::Text | ValueType::Arrivals | ValueType::SourceFile | ValueType::Argument,
            _,
        ) => of::<String>(value),
    }
}
