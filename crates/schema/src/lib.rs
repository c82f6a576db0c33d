//! Parameter definitions, each written once: a struct field is a key of a scenario.
//!
//! Reader, resolved text, JSON Schema and reference are generated from the [`Field`]s that
//! [`Schema`](derive@Schema) derives. [`Choice`](derive@Choice) gives the variants of an enum the
//! names that scenarios use.
//!
//! ```
//! use cwnd_quantity::Duration;
//! use cwnd_schema::{Choice, Invalid, Params as _, PresetOf, Presets, Schema};
//!
//! /// Units of a threshold.
//! #[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
//! pub enum Mode {
//!     /// Packets.
//!     #[name("packets")]
//!     Packets,
//!     /// Bytes.
//!     #[name("bytes")]
//!     Bytes,
//! }
//!
//! /// Parameters that several queues share.
//! #[derive(Clone, Debug, PartialEq, Schema)]
//! pub struct Marking {
//!     /// `true` if packets are marked.
//!     #[default(true, "RFC 3168")]
//!     pub ecn: bool,
//!     /// Unit of the mark's threshold.
//!     #[default(Mode::Packets, "RFC 3168")]
//!     #[idle(!self.ecn, "without `ecn`")]
//!     pub mode: Mode,
//! }
//!
//! /// A queue that aims at a delay.
//! #[derive(Clone, Debug, PartialEq, Schema)]
//! #[schema(presets, check = Self::consistent)]
//! pub struct Params {
//!     /// Delay to aim at.
//!     #[default(Duration::from_millis(5), "RFC 8289 § 4.4")]
//!     #[bounds(above Duration::ZERO; "a target of zero marks everything")]
//!     pub target: Duration,
//!     #[flatten(Marking::default(), ecn = "RFC 8289 § 4.1")]
//!     pub marking: Marking,
//! }
//!
//! impl Presets for Params {
//!     const PRESETS: &'static [PresetOf<Self>] = &[PresetOf::new("fast", "In data centres.", || {
//!         Self { target: Duration::from_micros(50), ..Self::default() }
//!     })];
//! }
//!
//! impl Params {
//!     fn consistent(&self) -> Result<(), Invalid> {
//!         if !self.marking.ecn && self.target > Duration::from_secs(1) {
//!             let message = "only marks may come so late".to_owned();
//!             return Err(Invalid { key: "target", message });
//!         }
//!         Ok(())
//!     }
//! }
//!
//! let sources: Vec<&str> = Params::FIELDS.iter().map(|field| field.source).collect();
//! assert_eq!(sources, ["RFC 8289 § 4.4", "RFC 8289 § 4.1", "RFC 3168"]);
//! assert_eq!(Mode::NAMES, ["packets", "bytes"]);
//! assert!(Params { target: Duration::ZERO, ..Params::default() }.check().is_err());
//! ```
//!
//! # Attributes of a struct with `Schema`
//! - `#[schema(presets)]`: the struct has presets, listed by its [`Presets`].
//! - `#[schema(check = PATH)]`: a function from `&Self` to `Result<(), Invalid>` that checks values
//!   in combination, once each lies within its bounds.
//! - `#[idle([KEY, …], CONDITION, "WHY")]`: keys without effect while a condition on `self` holds,
//!   including keys of a flattened set. The first of several rules for a key applies: those of
//!   flattened sets precede those of fields, and these precede those of the struct.
//! - `#[order(KEY after KEY)]` or `#[order(KEY to KEY after KEY)]`: keys of flattened sets that are
//!   listed after another key, not at the place of their set. Such rules apply in sequence.
//!
//! # Attributes of its fields
//! A field has exactly one of the first three, and a doc comment unless it is flattened.
//! - `#[default(VALUE, "SOURCE")]`: an expression, and the document that gives it.
//! - `#[required("SOURCE")]`: a scenario must give the value, because no default would be right.
//!   The struct's `Default` has the default of the type.
//! - `#[flatten(VALUE, KEY = "SOURCE", …)]`: a nested set, whose keys are listed among the others.
//!   Keys whose defaults differ here have other sources.
//! - `#[loaded]`: a [`Loaded`] in place of a parameter: all other keys are its arguments.
//! - `#[bounds(from VALUE, up_to VALUE; "REASON")]`: a range, with `above` or `below` for exclusive
//!   ends. The reason states the consequence of a value outside.
//! - `#[idle(CONDITION, "WHY")]`: the key has no effect while a condition on `self` holds.
//! - `#[part("NAME")]`: the parameter is not a key of scenarios; the part of a stack sets it.
//! - `#[was("NAME")]`: the former name of the key, for one version. Files may still use it, with a
//!   warning that names the new one. Ids of cells are hashes with the former name.
//! - `#[later]`: the key came after results were stored. Ids of cells count it only where it
//!   differs from its default.
//!
//! # Attributes of an enum's variants with `Choice`
//! A variant has a doc comment and `#[name("…")]`.
//!
//! # Sections of the scenario file
//! [`SectionKeys`](derive@SectionKeys) makes a struct's fields the keys of a section, which
//! [`mod@file`] reads. `PartialNAME` holds the values that could be read.
//! - `#[section(check = PATH)]` of the struct: a function that reports contradictory values of
//!   `PartialNAME`. `#[section(default)]`: the struct has a `Default`. `#[section(input)]`:
//!   resolved files do not have the section.
//!
//! A field has exactly one of the first five.
//! - `#[default(TOML, "SOURCE")]`: a default, written as TOML.
//! - `#[by_schema(TOML, TOML, "SOURCE")]`: a default for each version of the file format.
//! - `#[derived("SENTENCE", "SOURCE")]`: the field is an `Option`, and the sentence describes the
//!   value that `None` stands for.
//! - `#[required("SOURCE")]`, or `#[required("SOURCE", unless KEY)]` of an `Option`, which may be
//!   absent if the other key is given.
//! - `#[flatten(KEY = ("DOC", "SOURCE"), …)]`: a nested section, whose keys are listed among the
//!   others, some of them with another doc and source.
//! - `#[entry(TAKES)]`: the type is not a [`Param`] and reads its node itself, by
//!   [`ReadValue`](file::ReadValue); `TAKES` describes it.
//! - `#[bounds(…)]` and `#[idle(CONDITION, "WHY")]` as above. A key without effect is reported if
//!   the file gives it another value than its default, and from version 2 of the file format on is
//!   reset to the default.
//!
//! ```
//! use std::borrow::Cow;
//!
//! use cwnd_quantity::Rate;
//! use cwnd_schema::SectionKeys;
//! use cwnd_schema::file::{Context, Section, SectionKeys as _, Span, read_toml};
//!
//! /// A line.
//! #[derive(SectionKeys)]
//! pub struct Line {
//!     /// Rate of the line.
//!     #[required("none", unless trace)]
//!     pub rate: Option<Rate>,
//!     /// File of a trace.
//!     #[derived("none", "mahimahi")]
//!     pub trace: Option<String>,
//!     /// Packets that may wait.
//!     #[default(10, "RFC 1")]
//!     #[bounds(from 1; "none would be sent")]
//!     pub room: u32,
//! }
//!
//! let read = |text: &str| {
//!     let table = read_toml("line.toml", text).expect("it is TOML");
//!     let files = |name: &str| Err(format!("there is no `{name}`"));
//!     let mut cx = Context::new(&files, |value, _, _| Ok(Cow::Borrowed(value)));
//!     let section = Section::new(&table, &[Line::KEYS], "", Span::default(), &mut cx);
//!     (Line::read(&section, &mut cx), cx.sink.count())
//! };
//! let (line, errors) = read("rate = \"1 Mbit/s\"");
//! assert_eq!((line.map(|line| line.room), errors), (Some(10), 0));
//! assert_eq!(read("rat = 3\nroom = 0").1, 2);
//! ```
//!
//! # Errors
//! An incomplete definition does not compile; the error is at the field.
//! ```compile_fail
//! # use cwnd_schema::Schema;
//! #[derive(Schema)]
//! pub struct Params {
//!     /// A key without a default.
//!     pub rounds: u32,
//! }
//! ```
//! Nor does a source, a rule or an `unless` that names an unknown key:
//! ```compile_fail
//! # use cwnd_schema::Schema;
//! # /// A set.
//! # #[derive(Schema)]
//! # pub struct Rule {
//! #     /// A key.
//! #     #[default(1, "RFC 1")]
//! #     pub rounds: u32,
//! # }
//! #[derive(Schema)]
//! pub struct Params {
//!     #[flatten(Rule::default(), round = "RFC 2")]
//!     pub rule: Rule,
//! }
//! ```
//! ```compile_fail
//! # use cwnd_schema::SectionKeys;
//! #[derive(SectionKeys)]
//! pub struct Line {
//!     /// Rate of the line.
//!     #[required("none", unless trase)]
//!     pub rate: Option<f64>,
//!     /// File of a trace.
//!     #[derived("none", "mahimahi")]
//!     pub trace: Option<String>,
//! }
//! ```
#![cfg_attr(not(any(test, feature = "describe")), no_std)]
#![forbid(unsafe_code)]

#[macro_use]
extern crate alloc;

// The derive names the crate, here too.
extern crate self as cwnd_schema;

mod bounds;
#[doc(hidden)]
pub mod derive_support;
pub mod description;
#[cfg(feature = "file")]
pub mod file;
mod kinds;
mod loaded;
mod params;
mod registry;

pub use bounds::{Bounds, Edge, Quantity, Typed};
#[cfg(feature = "file")]
pub use cwnd_derive::SectionKeys;
pub use cwnd_derive::{Choice, Schema};
// Parse errors of parameters are those of quantities.
pub use cwnd_quantity::ParseError;
pub use description::Description;
pub use kinds::ParamsChoice;
pub use loaded::{ClassName, Loaded, SourceFile};
pub use params::{
    Field, Idle, Invalid, Param, Params, Preset, PresetOf, Presets, RegistryEntry, Share, Value,
    ValueType, not_a_choice,
};
