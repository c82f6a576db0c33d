//! `#[derive(SectionKeys)]`.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::spanned::Spanned;
use syn::{Data, DeriveInput, Error, Expr, Field, Fields, Ident, LitStr, Path, Result, Type};

use crate::attributes::{Bounds, BySchema, DefaultValue, Errors, Idle, doc, one, text};
use crate::params::{bounds_of, name_of};

/// `impl SectionKeys` of a struct, and `impl Default` if no key is required.
///
/// # Errors
/// If it is no struct with named fields, or an attribute is missing or wrong.
pub fn expand(input: &DeriveInput) -> Result<TokenStream> {
    let section = Section::read(input)?;
    let (default, partial, keys) = (section.default(), section.partial(), section.keys());
    Ok(quote! { #default #partial #keys })
}

/// A struct of keys.
struct Section<'a> {
    ident: &'a Ident,
    keys: Vec<Key<'a>>,
    /// Function that checks the keys that could be read.
    check: Option<Path>,
}

/// A key of the section.
struct Key<'a> {
    ident: &'a Ident,
    ty: &'a Type,
    doc: String,
    default: Default,
    source: LitStr,
    bounds: Option<Bounds>,
    /// `true` if the type reads its node itself, as an `Entry`.
    is_entry: bool,
    idle: Vec<Idle>,
}

/// Defaults of a key.
enum Default {
    /// It must be given.
    Required,
    /// A value, and its TOML.
    Value(Expr, String),
    /// TOML for each version of the file format.
    BySchema(Vec<String>),
}

impl<'a> Section<'a> {
    fn read(input: &'a DeriveInput) -> Result<Self> {
        let Data::Struct(data) = &input.data else {
            return Err(Error::new(input.ident.span(), "the keys of a section are a struct"));
        };
        if !matches!(data.fields, Fields::Named(_)) {
            return Err(Error::new(input.ident.span(), "keys have names"));
        }
        let mut errors = Errors::default();
        let check = errors.keep(check_of(input));
        let keys: Vec<Option<Key<'_>>> =
            data.fields.iter().map(|field| errors.keep(Key::read(field))).collect();
        errors.finish()?;
        let keys = keys.into_iter().flatten().collect();
        Ok(Self { ident: &input.ident, keys, check: check.flatten() })
    }

    fn default(&self) -> Option<TokenStream> {
        let values = self.keys.iter().map(|Key { ident, default, .. }| match default {
            Default::Value(value, _) => Some(quote!(#ident: #value)),
            Default::Required | Default::BySchema(_) => None,
        });
        let values: Vec<TokenStream> = values.collect::<Option<_>>()?;
        let ident = self.ident;
        Some(quote! {
            #[automatically_derived]
            impl ::core::default::Default for #ident {
                fn default() -> Self {
                    Self { #(#values,)* }
                }
            }
        })
    }

    /// The struct that a check looks at.
    fn partial(&self) -> Option<TokenStream> {
        self.check.as_ref()?;
        let name = format_ident!("Partial{}", self.ident);
        let fields = self.keys.iter().map(|Key { ident, ty, .. }| quote!(#ident: Option<#ty>));
        Some(quote! {
            /// Values that could be read.
            #[automatically_derived]
            struct #name { #(#fields,)* }
        })
    }

    fn keys(&self) -> TokenStream {
        let ident = self.ident;
        let listed = self.keys.iter().map(Key::listed);
        let reads = self.read_all();
        let settle = self.settle();
        let written = self.keys.iter().map(Key::written);
        quote! {
            #[automatically_derived]
            impl ::cwnd_scenario::section::SectionKeys for #ident {
                const KEYS: &'static [::cwnd_scenario::sections::Key] = &[#(#listed,)*];
                fn read(
                    section: &::cwnd_scenario::reader::Section<'_>,
                    cx: &mut ::cwnd_scenario::reader::Context<'_>,
                ) -> Option<Self> {
                    #reads
                }
                #settle
                fn written(&self) -> Vec<(&'static str, String)> {
                    vec![#(#written,)*]
                }
            }
        }
    }

    /// All keys in order, so that all errors are reported, and then the whole.
    fn read_all(&self) -> TokenStream {
        let names: Vec<&Ident> = self.keys.iter().map(|key| key.ident).collect();
        let reads = self.keys.iter().map(Key::read_value);
        let check = self.check.as_ref().map(|check| {
            let partial = format_ident!("Partial{}", self.ident);
            quote! {
                let partial = #partial { #(#names,)* };
                #check(&partial, section, cx);
                let #partial { #(#names,)* } = partial;
            }
        });
        quote! {
            #(let #names = #reads;)*
            #check
            let mut whole = Self { #(#names: #names?,)* };
            ::cwnd_scenario::section::SectionKeys::settle(&mut whole, section, cx);
            Some(whole)
        }
    }

    /// Rules about keys without effect.
    fn settle(&self) -> Option<TokenStream> {
        let rules: Vec<TokenStream> = self.keys.iter().flat_map(Key::rules).collect();
        if rules.is_empty() {
            return None;
        }
        Some(quote! {
            fn settle(
                &mut self,
                section: &::cwnd_scenario::reader::Section<'_>,
                cx: &mut ::cwnd_scenario::reader::Context<'_>,
            ) {
                #(#rules)*
            }
        })
    }
}

/// `#[section(check = PATH)]`.
fn check_of(input: &DeriveInput) -> Result<Option<Path>> {
    let Some(attribute) = one(&input.attrs, "section")? else { return Ok(None) };
    let mut check = None;
    attribute.parse_nested_meta(|meta| {
        if !meta.path.is_ident("check") {
            return Err(meta.error("there is `check = PATH`"));
        }
        check = Some(meta.value()?.parse()?);
        Ok(())
    })?;
    Ok(check)
}

impl<'a> Key<'a> {
    fn read(field: &'a Field) -> Result<Self> {
        let Some(ident) = &field.ident else {
            return Err(Error::new(field.span(), "keys have names"));
        };
        let attributes = &field.attrs;
        let doc = doc(attributes, ident.span())?;
        let [default, by_schema, required] =
            ["default", "by_schema", "required"].map(|name| one(attributes, name));
        let (default, source) = match (default?, by_schema?, required?) {
            (Some(default), None, None) => {
                let DefaultValue { value, shown, source } = default.parse_args()?;
                let Some(shown) = shown.or_else(|| toml_of(&value)) else {
                    return Err(Error::new(value.span(), AS));
                };
                (Default::Value(value, shown), source)
            }
            (None, Some(by_schema), None) => {
                let BySchema { shown, source } = by_schema.parse_args()?;
                (Default::BySchema(shown), source)
            }
            (None, None, Some(required)) => (Default::Required, text(required)?),
            _ => return Err(Error::new(ident.span(), ONE_OF)),
        };
        let bounds = one(attributes, "bounds")?.map(syn::Attribute::parse_args).transpose()?;
        let is_entry = one(attributes, "entry")?.is_some();
        let rules = attributes.iter().filter(|attribute| attribute.path().is_ident("idle"));
        if let Some(rule) = rules.clone().next()
            && !matches!(default, Default::Value(..))
        {
            let message = "a key without effect takes its default, so it has one";
            return Err(Error::new(rule.span(), message));
        }
        let rules = rules.map(|attribute| attribute.parse_args_with(Idle::of_field(ident)));
        let idle = rules.collect::<Result<_>>()?;
        Ok(Self { ident, ty: &field.ty, doc, default, source, bounds, is_entry, idle })
    }

    /// Its row in the list of keys.
    fn listed(&self) -> TokenStream {
        let Self { ident, ty, doc, default, source, bounds, is_entry, .. } = self;
        let name = name_of(ident);
        let form = if *is_entry {
            let takes = quote!(<#ty as ::cwnd_scenario::section::Entry>::TAKES);
            quote!(::cwnd_scenario::sections::Form::Value(#takes))
        } else {
            quote!(::cwnd_scenario::sections::Form::Plain(<#ty as ::cwnd_schema::Param>::KIND))
        };
        let fallback = match default {
            Default::Required => quote!(::cwnd_scenario::sections::Fallback::Required),
            Default::Value(_, toml) => quote!(::cwnd_scenario::sections::Fallback::Toml(#toml)),
            Default::BySchema(texts) => {
                quote!(::cwnd_scenario::sections::Fallback::BySchema([#(#texts),*]))
            }
        };
        let bounds = bounds_of(quote!(::cwnd_schema::Bounds::NONE), ty, bounds.as_ref());
        quote! {
            ::cwnd_scenario::sections::Key {
                name: #name,
                form: #form,
                fallback: #fallback,
                doc: #doc,
                source: #source,
                bounds: #bounds,
            }
        }
    }

    fn read_value(&self) -> TokenStream {
        let (ty, name) = (self.ty, name_of(self.ident));
        if self.is_entry {
            quote!(section.read(#name, cx, <#ty as ::cwnd_scenario::section::Entry>::read))
        } else {
            quote!(section.plain::<#ty>(#name, cx))
        }
    }

    fn written(&self) -> TokenStream {
        let (ident, ty, name) = (self.ident, self.ty, name_of(self.ident));
        if self.is_entry {
            quote!((#name, <#ty as ::cwnd_scenario::section::Entry>::write(&self.#ident)))
        } else {
            quote!((#name, ::cwnd_scenario::section::plain(&self.#ident)))
        }
    }

    fn rules(&self) -> Vec<TokenStream> {
        let (ident, ty, name) = (self.ident, self.ty, name_of(self.ident));
        let Default::Value(default, _) = &self.default else { return Vec::new() };
        let rules = self.idle.iter().map(|Idle { condition, why, .. }| {
            quote! {
                let default: #ty = #default;
                if #condition && self.#ident != default
                    && section.has_no_effect(#name, #why, cx)
                {
                    self.#ident = default;
                }
            }
        });
        rules.collect()
    }
}

/// TOML of a literal, and of `None`.
fn toml_of(value: &Expr) -> Option<String> {
    match value {
        Expr::Lit(literal) => Some(quote!(#literal).to_string()),
        Expr::Path(path) if path.path.is_ident("None") => Some("\"none\"".to_owned()),
        _ => None,
    }
}

/// The error of a default whose TOML is not known.
const AS: &str = "how is it written? `#[default(VALUE, as \"0 ms\", \"SOURCE\")]`";
/// The error of a field without a value at the start.
const ONE_OF: &str = "needs one of `#[default(VALUE, \"SOURCE\")]`, \
    `#[by_schema(\"TEXT\", …, \"SOURCE\")]` and `#[required(\"SOURCE\")]`";

#[cfg(test)]
mod tests {
    use syn::parse_quote;

    use super::*;
    use crate::testing::holds;

    #[test]
    fn a_field_is_listed_read_settled_and_written_under_its_name() {
        let expanded = expand(&parse_quote! {
            #[section(check = possible)]
            struct Faults {
                /// Probability of a loss.
                #[default(0.5, "netem")]
                #[bounds(up_to 1.0; "it is a probability")]
                loss: f64,
                /// Steps.
                #[entry]
                #[default(Vec::new(), as [], "a route that stays")]
                steps: Steps,
                /// Period.
                #[default(Duration::ZERO, as "0 ms", "once")]
                #[idle(self.steps.is_empty(), "without `steps`")]
                period: Duration,
            }
        });
        holds(
            &expanded.expect("it is complete").to_string(),
            &[
                quote!(Self { loss: 0.5, steps: Vec::new(), period: Duration::ZERO }),
                quote! {
                    ::cwnd_scenario::sections::Key {
                        name: "loss",
                        form: ::cwnd_scenario::sections::Form::Plain(
                            <f64 as ::cwnd_schema::Param>::KIND
                        ),
                        fallback: ::cwnd_scenario::sections::Fallback::Toml("0.5"),
                        doc: "Probability of a loss.",
                        source: "netem",
                        bounds: ::cwnd_schema::Bounds::NONE
                            .up_to(::cwnd_schema::Typed::<<f64 as ::cwnd_schema::Param>::Bound>(
                                1.0
                            ).quantity())
                            .because("it is a probability"),
                    }
                },
                quote! {
                    form: ::cwnd_scenario::sections::Form::Value(
                        <Steps as ::cwnd_scenario::section::Entry>::TAKES
                    )
                },
                quote!(::cwnd_scenario::sections::Fallback::Toml("[]")),
                quote!(::cwnd_scenario::sections::Fallback::Toml("\"0 ms\"")),
                quote! {
                    let loss = section.plain::<f64>("loss", cx);
                    let steps =
                        section.read("steps", cx, <Steps as ::cwnd_scenario::section::Entry>::read);
                    let period = section.plain::<Duration>("period", cx);
                    let partial = PartialFaults { loss, steps, period, };
                    possible(&partial, section, cx);
                },
                quote! {
                    if self.steps.is_empty() && self.period != default
                        && section.has_no_effect("period", "without `steps`", cx)
                    {
                        self.period = default;
                    }
                },
                quote!(("loss", ::cwnd_scenario::section::plain(&self.loss))),
            ],
        );
    }

    #[test]
    fn a_section_with_a_required_key_has_no_default() {
        let expanded = expand(&parse_quote! {
            struct Place {
                /// To the right.
                #[required("none")]
                x: f64,
                /// Noise.
                #[by_schema("none", "path", "Floyd & Jacobson 1991")]
                noise: Noise,
            }
        });
        let text = expanded.expect("it is complete").to_string();
        holds(
            &text,
            &[
                quote!(fallback: ::cwnd_scenario::sections::Fallback::Required),
                quote! {
                    fallback: ::cwnd_scenario::sections::Fallback::BySchema(
                        ["\"none\"", "\"path\""]
                    )
                },
            ],
        );
        assert!(!text.contains("Default") && !text.contains("Partial"), "{text}");
    }

    #[test]
    fn all_errors_of_a_section_are_reported_together() {
        let error = expand(&parse_quote! {
            #[section(checks = possible)]
            struct Faults {
                #[default(1, "netem")]
                without_doc: u32,
                /// First.
                without_default: u32,
                /// Second.
                #[default(Duration::ZERO, "netem")]
                without_toml: Duration,
                /// Third.
                #[required("none")]
                #[idle(true, "ever")]
                idle: u32,
            }
        });
        let messages: Vec<String> =
            error.expect_err("it is wrong").into_iter().map(|e| e.to_string()).collect();
        assert_eq!(
            messages,
            [
                "there is `check = PATH`",
                "needs a doc comment, which schema and reference show",
                ONE_OF,
                AS,
                "a key without effect takes its default, so it has one",
            ]
        );
    }
}
