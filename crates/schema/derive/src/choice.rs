//! Expansion of `#[derive(Choice)]`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Data, DeriveInput, Error, Fields, LitStr, Result, Variant};

use crate::attributes::{Errors, doc, one, text};

/// Generates `NAMES` and `impl Param` of an enum.
///
/// # Errors
/// If it is not an enum, a variant has fields or lacks its name or doc, or two have one name.
pub fn expand(input: &DeriveInput) -> Result<TokenStream> {
    let Data::Enum(data) = &input.data else {
        return Err(Error::new(input.ident.span(), "a choice is an enum"));
    };
    let mut errors = Errors::default();
    let mut names: Vec<LitStr> = Vec::new();
    for variant in &data.variants {
        let Some(name) = errors.keep(name_of(variant)) else { continue };
        if names.iter().any(|other| other.value() == name.value()) {
            let message = format!("a second variant \"{}\"", name.value());
            errors.keep::<()>(Err(Error::new(name.span(), message)));
        }
        names.push(name);
    }
    errors.finish()?;
    let ident = &input.ident;
    let variants = data.variants.iter().map(|variant| &variant.ident);
    let each: Vec<_> = variants.zip(&names).collect();
    let reads = each.iter().map(|(variant, name)| quote!(#name => Some(Self::#variant)));
    let writes = each.iter().map(|(variant, name)| quote!(Self::#variant => #name));
    Ok(quote! {
        #[automatically_derived]
        impl #ident {
            /// Names of the variants, as a scenario writes them.
            pub const NAMES: &'static [&'static str] = &[#(#names),*];
        }

        #[automatically_derived]
        impl ::cwnd_schema::Param for #ident {
            const VALUE_TYPE: ::cwnd_schema::ValueType =
                ::cwnd_schema::ValueType::Choice(Self::NAMES);
            type Bound = Self;
            fn read(
                value: &::cwnd_schema::Value,
            ) -> ::core::result::Result<Self, ::cwnd_schema::ParseError> {
                let named = |name: &str| match name {
                    #(#reads,)*
                    _ => None,
                };
                ::cwnd_schema::derive_support::read_choice(value, Self::NAMES, named)
            }
            fn write(&self) -> ::cwnd_schema::Value {
                ::cwnd_schema::derive_support::write_choice(match self { #(#writes,)* })
            }
        }
    })
}

fn name_of(variant: &Variant) -> Result<LitStr> {
    if !matches!(variant.fields, Fields::Unit) {
        return Err(Error::new(variant.ident.span(), "a variant of a choice has no fields"));
    }
    doc(&variant.attrs, variant.ident.span())?;
    match one(&variant.attrs, "name")? {
        Some(attribute) => text(attribute),
        None => Err(Error::new(variant.ident.span(), "needs its name: `#[name(\"…\")]`")),
    }
}

#[cfg(test)]
mod tests {
    use syn::parse_quote;

    use super::*;

    #[test]
    fn a_variant_is_read_and_written_by_its_name() {
        let expanded = expand(&parse_quote! {
            /// A mode.
            enum Mode {
                /// In packets.
                #[name("packets")]
                Packets,
                /// In bytes.
                #[name("bytes")]
                Bytes,
            }
        });
        let text = expanded.expect("it is complete").to_string();
        for part in [
            r#"& ["packets" , "bytes"]"#,
            r#""packets" => Some (Self :: Packets) , "bytes" => Some (Self :: Bytes) , _ => None"#,
            r#"Self :: Packets => "packets" , Self :: Bytes => "bytes""#,
        ] {
            assert!(text.contains(part), "{part} is not in {text}");
        }
    }

    #[test]
    fn all_errors_of_an_enum_are_reported_together() {
        let error = expand(&parse_quote! {
            /// A mode.
            enum Mode {
                #[name("packets")]
                Packets,
                /// In bytes.
                Bytes,
                /// In cells.
                #[name("cells")]
                Cells(u32),
                /// One.
                #[name("one")]
                One,
                /// The same.
                #[name("one")]
                Same,
            }
        });
        let messages: Vec<String> =
            error.expect_err("it is wrong").into_iter().map(|e| e.to_string()).collect();
        assert_eq!(
            messages,
            [
                "needs a doc comment, which schema and reference show",
                "needs its name: `#[name(\"…\")]`",
                "a variant of a choice has no fields",
                "a second variant \"one\"",
            ]
        );
    }
}
