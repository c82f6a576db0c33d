//! Derive macros of `cwnd-schema`, whose documentation describes the attributes.
//!
//! Each derive is a pure function from a syntax tree to tokens, which the unit tests call. Errors
//! of a definition are reported together, the first of each field or attribute at its place.
#![forbid(unsafe_code)]

mod attributes;
mod choice;
mod params;
mod section;
#[cfg(test)]
mod tests;

use proc_macro::TokenStream;
use syn::{DeriveInput, parse_macro_input};

/// Derives `Param` for an enum whose variants a scenario writes as names.
#[proc_macro_derive(Choice, attributes(name))]
pub fn choice(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    choice::expand(&input).unwrap_or_else(|error| error.into_compile_error()).into()
}

/// Derives `Params` and `Default` for a struct of parameters, and defines `FIELDS`.
#[proc_macro_derive(
    Schema,
    attributes(schema, order, default, required, flatten, bounds, idle, part, was, later, loaded)
)]
pub fn schema(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    params::expand(&input).unwrap_or_else(|error| error.into_compile_error()).into()
}

/// Derives `SectionKeys` for a struct whose fields are keys of a section of the scenario file. Also
/// derives `Resolved` unless the section is `input`, and `Default` if it has the flag.
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
