//! Parts whose code is the user's: their source file, arguments and loader.

use alloc::borrow::ToOwned as _;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use core::fmt;

use cwnd_derive::Schema;
use cwnd_quantity::ParseError;

use crate::{Param, Value, ValueType};

/// A source file: its name and its text. A scenario gives the name; resolved files have the text
/// below it, so that they need no other file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceFile {
    /// Name, seen from the scenario's folder.
    pub name: String,
    /// Text.
    pub text: String,
}

impl Param for SourceFile {
    const VALUE_TYPE: ValueType = ValueType::SourceFile;
    type Bound = Self;
    fn read(value: &Value) -> Result<Self, ParseError> {
        let written = String::read(value)?;
        let (name, text) = written.split_once('\n').unwrap_or((&written, ""));
        Ok(Self { name: name.to_owned(), text: text.to_owned() })
    }
    fn write(&self) -> Value {
        Value::Text(format!("{}\n{}", self.name, self.text))
    }
}

/// A class in Python, of a part whose code is the user's.
#[derive(Clone, Debug, PartialEq, Eq, Schema)]
pub struct ClassName {
    /// Source file with the class.
    #[required("none")]
    pub path: SourceFile,
    /// Name of the class.
    #[required("none")]
    pub class: String,
}

/// Arguments of a part whose code is the user's, and what makes the part of loaded code.
pub struct Loaded<M: ?Sized> {
    /// Arguments by name.
    pub arguments: BTreeMap<String, Value>,
    /// Maker of the part; `None` until the code is loaded, which reading a scenario never does.
    pub maker: Option<Arc<M>>,
}

impl<M: ?Sized> Default for Loaded<M> {
    fn default() -> Self {
        Self { arguments: BTreeMap::new(), maker: None }
    }
}

impl<M: ?Sized> Clone for Loaded<M> {
    fn clone(&self) -> Self {
        Self { arguments: self.arguments.clone(), maker: self.maker.clone() }
    }
}

impl<M: ?Sized> fmt::Debug for Loaded<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_loaded = self.maker.is_some();
        f.debug_struct("Loaded")
            .field("arguments", &self.arguments)
            .field("is_loaded", &is_loaded)
            .finish()
    }
}

/// Two are equal if their arguments are.
impl<M: ?Sized> PartialEq for Loaded<M> {
    fn eq(&self, other: &Self) -> bool {
        self.arguments == other.arguments
    }
}
