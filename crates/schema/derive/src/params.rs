//! Expansion of `#[derive(Schema)]`.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Data, DeriveInput, Error, Expr, Field, Ident, LitStr, Result, Type};

use crate::attributes::{Bounds, Errors, Flatten, Idle, Options, Order, Sourced, doc, one, text};

/// Generates `FIELDS`, `impl Default` and `impl Params` of a struct.
///
/// # Errors
/// If it is not a struct with named fields, or an attribute is missing or wrong.
pub fn expand(input: &DeriveInput) -> Result<TokenStream> {
    let set = ParameterStruct::read(input)?;
    let [default, list, params] = [set.default(), set.list(), set.params()];
    let checks = set.key_checks();
    Ok(quote! { #default #list #params #checks })
}

/// A struct of parameters, parsed.
struct ParameterStruct<'a> {
    ident: &'a Ident,
    options: Options,
    fields: Vec<ParsedField<'a>>,
    /// Rules of the struct, applied after those of the fields.
    idle: Vec<Idle>,
    /// Keys listed at another place than that of their nested set.
    order: Vec<Order>,
}

/// A field of the parameter struct.
struct ParsedField<'a> {
    ident: &'a Ident,
    ty: &'a Type,
    form: Form,
    idle: Vec<Idle>,
}

/// Forms of a field: one parameter, or a nested set of them.
enum Form {
    /// A parameter; without a default it is required.
    Key {
        doc: String,
        default: Option<Expr>,
        source: LitStr,
        bounds: Option<Bounds>,
        /// Part of a stack that sets it.
        part: Option<LitStr>,
        /// Former name.
        was: Option<LitStr>,
        later: bool,
    },
    /// A nested set of parameters, whose keys are listed among the others.
    Flattened(Flatten),
    /// Arguments of the user's code: all other keys.
    Loaded,
}

impl<'a> ParameterStruct<'a> {
    fn read(input: &'a DeriveInput) -> Result<Self> {
        let Data::Struct(data) = &input.data else {
            return Err(Error::new(input.ident.span(), "parameters are a struct"));
        };
        let mut errors = Errors::default();
        let options = errors.keep(Options::of(&input.attrs, "schema", &[PRESETS]));
        let fields: Vec<Option<ParsedField<'_>>> =
            data.fields.iter().map(|field| errors.keep(ParsedField::read(field))).collect();
        let named = |name| input.attrs.iter().filter(move |of| of.path().is_ident(name));
        let idle: Vec<Option<Idle>> = named("idle")
            .map(|attribute| errors.keep(attribute.parse_args_with(Idle::of_struct)))
            .collect();
        let order: Vec<Option<Order>> =
            named("order").map(|attribute| errors.keep(attribute.parse_args())).collect();
        errors.finish()?;
        Ok(Self {
            ident: &input.ident,
            options: options.unwrap_or_default(),
            fields: fields.into_iter().flatten().collect(),
            idle: idle.into_iter().flatten().collect(),
            order: order.into_iter().flatten().collect(),
        })
    }

    fn flattened(&self) -> impl Iterator<Item = (&ParsedField<'a>, &Flatten)> {
        self.fields.iter().filter_map(|field| match &field.form {
            Form::Flattened(flatten) => Some((field, flatten)),
            Form::Key { .. } | Form::Loaded => None,
        })
    }

    fn keys(&self) -> impl Iterator<Item = &ParsedField<'a>> {
        self.fields.iter().filter(|field| matches!(field.form, Form::Key { .. }))
    }

    /// The field with the arguments of the user's code.
    fn loaded(&self) -> Option<&'a Ident> {
        self.fields.iter().find(|field| matches!(field.form, Form::Loaded)).map(|of| of.ident)
    }

    fn default(&self) -> TokenStream {
        let ident = self.ident;
        let values = self.fields.iter().map(ParsedField::default);
        quote! {
            #[automatically_derived]
            impl ::core::default::Default for #ident {
                fn default() -> Self {
                    Self { #(#values,)* }
                }
            }
        }
    }

    fn list(&self) -> TokenStream {
        let ident = self.ident;
        let parts = self.fields.iter().map(ParsedField::listed);
        let joined = quote! {
            ::cwnd_schema::derive_support::joined::<_, {
                ::cwnd_schema::derive_support::total(PARTS)
            }>(PARTS, ::cwnd_schema::derive_support::EMPTY)
        };
        let ordered = self.order.iter().fold(joined, |fields, Order { first, last, after }| {
            let [first, last, after] = [first, last, after].map(name_of);
            quote!(::cwnd_schema::derive_support::moved(#fields, [#first, #last], #after))
        });
        quote! {
            #[automatically_derived]
            impl #ident {
                /// Parameters, in order.
                pub const FIELDS: &'static [::cwnd_schema::Field] = {
                    const PARTS: &[&[::cwnd_schema::Field]] = &[#(#parts,)*];
                    &#ordered
                };
            }
        }
    }

    fn params(&self) -> TokenStream {
        let ident = self.ident;
        let methods = [
            self.set(),
            self.get(),
            self.arguments(),
            self.presets(),
            self.check(),
            self.idle_rules(),
        ];
        quote! {
            #[automatically_derived]
            impl ::cwnd_schema::Params for #ident {
                fn fields(&self) -> &'static [::cwnd_schema::Field] {
                    Self::FIELDS
                }
                #(#methods)*
                fn reset(&mut self, name: &str) {
                    ::cwnd_schema::derive_support::reset(self, &Self::default(), name);
                }
                fn is_default(&self, name: &str) -> bool {
                    ::cwnd_schema::Params::get(self, name)
                        == ::cwnd_schema::Params::get(&Self::default(), name)
                }
            }
        }
    }

    fn set(&self) -> TokenStream {
        let keys = self.keys().map(|ParsedField { ident, .. }| {
            let name = name_of(ident);
            quote! {
                #name => ::cwnd_schema::derive_support::assign(
                    &mut self.#ident, Self::FIELDS, name, value,
                )
            }
        });
        let sets = self.flattened().map(|(ParsedField { ident, ty, .. }, _)| {
            quote! {
                _ if ::cwnd_schema::derive_support::has(<#ty>::FIELDS, name) =>
                    ::cwnd_schema::Params::set(&mut self.#ident, name, value)
            }
        });
        // The argument is unused in a set without parameters.
        let value = if self.fields.is_empty() { quote!(_) } else { quote!(value) };
        let other = match self.loaded() {
            Some(ident) => quote! {{
                self.#ident.arguments.insert(name.into(), value.clone());
                Ok(())
            }},
            None => quote!(Err(::cwnd_schema::derive_support::unknown(name))),
        };
        quote! {
            fn set(
                &mut self,
                name: &str,
                #value: &::cwnd_schema::Value,
            ) -> ::core::result::Result<(), ::cwnd_schema::ParseError> {
                match name {
                    #(#keys,)*
                    #(#sets,)*
                    _ => #other,
                }
            }
        }
    }

    fn get(&self) -> TokenStream {
        let keys = self.keys().map(|ParsedField { ident, .. }| {
            let name = name_of(ident);
            quote!(#name => Some(::cwnd_schema::Param::write(&self.#ident)))
        });
        let sets = self.flattened().map(|(ParsedField { ident, ty, .. }, _)| {
            quote! {
                _ if ::cwnd_schema::derive_support::has(<#ty>::FIELDS, name) =>
                    ::cwnd_schema::Params::get(&self.#ident, name)
            }
        });
        quote! {
            fn get(&self, name: &str) -> Option<::cwnd_schema::Value> {
                match name {
                    #(#keys,)*
                    #(#sets,)*
                    _ => None,
                }
            }
        }
    }

    fn arguments(&self) -> TokenStream {
        let Some(ident) = self.loaded() else { return TokenStream::new() };
        quote! {
            fn arguments(
                &self,
            ) -> Option<&::cwnd_schema::derive_support::BTreeMap<
                ::cwnd_schema::derive_support::String,
                ::cwnd_schema::Value,
            >> {
                Some(&self.#ident.arguments)
            }
        }
    }

    fn presets(&self) -> TokenStream {
        if !self.options.has(PRESETS) {
            return quote! {
                fn presets(&self) -> &'static [::cwnd_schema::Preset] {
                    &[]
                }
                fn apply_preset(&mut self, _: &str) -> bool {
                    false
                }
            };
        }
        let ident = self.ident;
        quote! {
            fn presets(&self) -> &'static [::cwnd_schema::Preset] {
                const ALL: &[::cwnd_schema::PresetOf<#ident>] =
                    <#ident as ::cwnd_schema::Presets>::PRESETS;
                const NAMED: &[::cwnd_schema::Preset] =
                    &::cwnd_schema::derive_support::named::<#ident, { ALL.len() }>(ALL);
                NAMED
            }
            fn apply_preset(&mut self, name: &str) -> bool {
                ::cwnd_schema::derive_support::apply_preset(self, name)
            }
        }
    }

    fn check(&self) -> TokenStream {
        let each = self.fields.iter().map(|ParsedField { ident, form, .. }| match form {
            Form::Key { .. } => {
                let name = name_of(ident);
                quote! {
                    ::cwnd_schema::derive_support::check(Self::FIELDS, #name, &self.#ident)?;
                }
            }
            Form::Flattened(_) => quote!(::cwnd_schema::Params::check(&self.#ident)?;),
            Form::Loaded => TokenStream::new(),
        });
        let whole = match &self.options.check {
            Some(check) => quote!(#check(self)),
            None => quote!(Ok(())),
        };
        quote! {
            fn check(&self) -> ::core::result::Result<(), ::cwnd_schema::Invalid> {
                #(#each)*
                #whole
            }
        }
    }

    fn idle_rules(&self) -> TokenStream {
        let sets = self.flattened().map(|(ParsedField { ident, .. }, _)| {
            quote!(found.extend(::cwnd_schema::Params::idle(&self.#ident));)
        });
        let rules = self.fields.iter().flat_map(|field| &field.idle).chain(&self.idle);
        let rules = rules.map(|Idle { keys, condition, why }| {
            let keys = keys.iter().map(name_of);
            quote! {
                if #condition {
                    found.extend([#(#keys),*].map(|key| ::cwnd_schema::Idle { key, why: #why }));
                }
            }
        });
        let statements: Vec<TokenStream> = sets.chain(rules).collect();
        if statements.is_empty() {
            return quote! {
                fn idle(&self) -> ::cwnd_schema::derive_support::Vec<::cwnd_schema::Idle> {
                    ::cwnd_schema::derive_support::Vec::new()
                }
            };
        }
        quote! {
            fn idle(&self) -> ::cwnd_schema::derive_support::Vec<::cwnd_schema::Idle> {
                let mut found = ::cwnd_schema::derive_support::Vec::new();
                #(#statements)*
                ::cwnd_schema::derive_support::each_once(found)
            }
        }
    }

    /// Generates compile-time checks that the keys named by attributes exist, each with the span of
    /// the name.
    fn key_checks(&self) -> TokenStream {
        let of_sets = self.flattened().flat_map(|(field, flatten)| {
            let ty = field.ty;
            flatten.sources.iter().map(move |(key, _)| key_check(key, &quote!(#ty)))
        });
        let ident = self.ident;
        let of_order = self.order.iter().flat_map(|rule| [&rule.first, &rule.last, &rule.after]);
        let rules = self.idle.iter().flat_map(|rule| &rule.keys).chain(of_order);
        let of_rules = rules.map(|key| key_check(key, &quote!(#ident)));
        of_sets.chain(of_rules).collect()
    }
}

fn key_check(key: &Ident, set: &TokenStream) -> TokenStream {
    let name = name_of(key);
    let message = format!("there is no parameter `{}`", name.value());
    quote_spanned! {key.span()=>
        const _: () = assert!(::cwnd_schema::derive_support::has(<#set>::FIELDS, #name), #message);
    }
}

impl<'a> ParsedField<'a> {
    fn read(field: &'a Field) -> Result<Self> {
        let Some(ident) = &field.ident else {
            return Err(Error::new(field.span(), "parameters have names"));
        };
        let attributes = &field.attrs;
        if one(attributes, "loaded")?.is_some() {
            return Ok(Self { ident, ty: &field.ty, form: Form::Loaded, idle: Vec::new() });
        }
        let default = one(attributes, "default")?;
        let required = one(attributes, "required")?;
        let flatten = one(attributes, "flatten")?;
        let bounds = one(attributes, "bounds")?;
        let (default, source) = match (default, required, flatten) {
            (Some(default), None, None) => {
                let Sourced { value, source } = default.parse_args()?;
                (Some(value), source)
            }
            (None, Some(required), None) => (None, text(required)?),
            (None, None, Some(flatten)) if bounds.is_none() => {
                let form = Form::Flattened(flatten.parse_args()?);
                let has_rule = attributes.iter().find(|a| a.path().is_ident("idle"));
                if let Some(rule) = has_rule {
                    let message = "a rule about keys of a set is of the struct: \
                        `#[idle([KEY], CONDITION, \"WHY\")]`";
                    return Err(Error::new(rule.span(), message));
                }
                return Ok(Self { ident, ty: &field.ty, form, idle: Vec::new() });
            }
            _ => return Err(Error::new(ident.span(), ONE_OF)),
        };
        let doc = doc(attributes, ident.span())?;
        let bounds = bounds.map(syn::Attribute::parse_args).transpose()?;
        let rules = attributes.iter().filter(|attribute| attribute.path().is_ident("idle"));
        let rules = rules.map(|attribute| attribute.parse_args_with(Idle::of_field(ident)));
        let idle = rules.collect::<Result<_>>()?;
        let [part, was] = ["part", "was"].map(|name| one(attributes, name));
        let (part, was) = (part?.map(text).transpose()?, was?.map(text).transpose()?);
        let later = one(attributes, "later")?.is_some();
        let form = Form::Key { doc, default, source, bounds, part, was, later };
        Ok(Self { ident, ty: &field.ty, form, idle })
    }

    fn default(&self) -> TokenStream {
        let ident = self.ident;
        match &self.form {
            Form::Key { default: Some(value), .. } | Form::Flattened(Flatten { value, .. }) => {
                quote!(#ident: #value)
            }
            Form::Key { default: None, .. } | Form::Loaded => {
                quote!(#ident: ::core::default::Default::default())
            }
        }
    }

    /// Generates the entries of the field in `FIELDS`: itself, or all of its nested set.
    fn listed(&self) -> TokenStream {
        let Self { ident, ty, form, .. } = self;
        match form {
            Form::Key { doc, default, source, bounds, part, was, later } => {
                let name = name_of(ident);
                let own = quote!(<#ty as ::cwnd_schema::Param>::BOUNDS);
                let bounds = bounds_of(own, ty, bounds.as_ref());
                let required = default.is_none();
                let [part, was] = [part, was].map(|name| match name {
                    Some(name) => quote!(Some(#name)),
                    None => quote!(None),
                });
                quote! {
                    &[::cwnd_schema::Field {
                        name: #name,
                        value_type: <#ty as ::cwnd_schema::Param>::VALUE_TYPE,
                        doc: #doc,
                        source: #source,
                        bounds: #bounds,
                        required: #required,
                        part: #part,
                        was: #was,
                        later: #later,
                    }]
                }
            }
            Form::Loaded => quote!(&[]),
            Form::Flattened(Flatten { sources, .. }) if sources.is_empty() => quote!(<#ty>::FIELDS),
            Form::Flattened(Flatten { sources, .. }) => {
                let sources = sources.iter().map(|(key, source)| {
                    let name = name_of(key);
                    quote!((#name, #source))
                });
                quote! {
                    &::cwnd_schema::derive_support::with_sources::<{ <#ty>::FIELDS.len() }>(
                        <#ty>::FIELDS,
                        &[#(#sources),*],
                    )
                }
            }
        }
    }
}

/// Generates bounds that start from `own` and apply those of the attribute.
pub fn bounds_of(own: TokenStream, ty: &Type, bounds: Option<&Bounds>) -> TokenStream {
    let Some(Bounds { edges, why }) = bounds else { return own };
    let edges = edges.iter().map(|(edge, value)| {
        quote_spanned! {value.span()=>
            .#edge(
                ::cwnd_schema::Typed::<<#ty as ::cwnd_schema::Param>::Bound>(#value).quantity()
            )
        }
    });
    let why = why.as_ref().map(|why| quote!(.because(#why)));
    quote!(#own #(#edges)* #why)
}

/// Returns the key of a field, as a string literal.
pub fn name_of(ident: &Ident) -> LitStr {
    LitStr::new(&ident.to_string(), Span::call_site())
}

/// Flag of a struct that has presets.
const PRESETS: &str = "presets";
/// Error for a field without exactly one of the attributes that give its value, or for bounds of a
/// nested set.
pub const ONE_OF: &str = "needs one of `#[default(VALUE, \"SOURCE\")]`, `#[required(\"SOURCE\")]` \
    and `#[flatten(VALUE)]`";
