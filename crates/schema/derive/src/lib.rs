//! The derives of `cwnd-schema`, whose documentation has their grammar.
//!
//! Each derive is a pure function from a syntax tree to tokens, which the unit tests call. All
//! errors of a definition are reported together, each at the field that lacks something.
#![forbid(unsafe_code)]

mod attributes;
mod choice;
mod params;
mod section;
#[cfg(test)]
mod testing;

use proc_macro::TokenStream;
use syn::{DeriveInput, parse_macro_input};

/// An enum whose variants are written as names in a scenario: implements `Param`.
#[proc_macro_derive(Choice, attributes(name))]
pub fn choice(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    choice::expand(&input).unwrap_or_else(|error| error.into_compile_error()).into()
}

/// A struct of parameters: implements `Params` and `Default`, and defines `FIELDS`.
#[proc_macro_derive(
    Schema,
    attributes(schema, order, default, required, flatten, bounds, idle, part)
)]
pub fn schema(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    params::expand(&input).unwrap_or_else(|error| error.into_compile_error()).into()
}

/// A struct whose fields are keys of a section of the scenario file: implements `SectionKeys` and
/// `Resolved`, and `Default` if it is asked for.
///
/// Values that are no parameters implement `ReadValue` and `WriteValue`.
#[proc_macro_derive(
    SectionKeys,
    attributes(section, default, by_schema, derived, required, flatten, entry, bounds, idle)
)]
pub fn section_keys(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    section::expand(&input).unwrap_or_else(|error| error.into_compile_error()).into()
}
