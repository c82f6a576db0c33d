//! Expansion of `#[derive(SectionKeys)]`.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::spanned::Spanned;
use syn::{
    Data, DeriveInput, Error, Field, GenericArgument, Ident, LitStr, Path, PathArguments, Result,
    Type, Visibility,
};

use crate::attributes::{
    Bounds, Errors, Idle, Options, Overrides, Required, Sourced, Toml, doc, one,
};
use crate::params::{bounds_of, name_of};

/// Generates `SectionKeys` and the struct `PartialNAME`; also `Resolved` unless the section is
/// `input`, and `Default` if it has the flag.
///
/// # Errors
/// If it is not a struct with named fields, or an attribute is missing or wrong.
pub fn expand(input: &DeriveInput) -> Result<TokenStream> {
    let section = Section::read(input)?;
    let [default, partial, keys] = [section.default(), section.partial(), section.keys()];
    let resolved = section.resolved();
    Ok(quote! { #default #partial #keys #resolved })
}

/// A struct of keys, parsed.
struct Section<'a> {
    ident: &'a Ident,
    vis: &'a Visibility,
    fields: Vec<ParsedField<'a>>,
    options: Options,
}

/// A field of the section struct.
struct ParsedField<'a> {
    ident: &'a Ident,
    ty: &'a Type,
    form: Form<'a>,
}

/// Forms of a field: one key, or a nested section.
enum Form<'a> {
    Key(Box<Key<'a>>),
    /// A nested section, whose keys are listed among the others.
    Flattened(Overrides),
}

/// A key of the section.
struct Key<'a> {
    ident: &'a Ident,
    /// Type of its values; the field has an `Option` of it if `is_optional`.
    ty: &'a Type,
    doc: String,
    fallback: Fallback,
    source: LitStr,
    bounds: Option<Bounds>,
    /// Description of a value that reads its node itself, as a `ReadValue`.
    takes: Option<Path>,
    idle: Vec<Idle>,
}

/// Parsed default of a key: its value if it is absent.
enum Fallback {
    /// No value: the key is required, unless the other key is given.
    Required(Option<Ident>),
    /// A default, as TOML.
    Toml(String),
    /// A default for each version of the file format, as TOML.
    BySchema(Vec<String>),
    /// `None`, with the meaning that this sentence states.
    Derived(LitStr),
}

impl Fallback {
    /// `true` if the field is an `Option`, `None` for an absent key.
    const fn is_optional(&self) -> bool {
        matches!(self, Self::Required(Some(_)) | Self::Derived(_))
    }
}

impl<'a> Section<'a> {
    fn read(input: &'a DeriveInput) -> Result<Self> {
        let Data::Struct(data) = &input.data else {
            return Err(Error::new(input.ident.span(), "the keys of a section are a struct"));
        };
        let mut errors = Errors::default();
        let options = errors.keep(Options::of(&input.attrs, "section", &[DEFAULT, INPUT]));
        let fields: Vec<Option<ParsedField<'_>>> =
            data.fields.iter().map(|field| errors.keep(ParsedField::read(field))).collect();
        if options.as_ref().is_some_and(|options| options.has(DEFAULT)) {
            let lacks = fields.iter().flatten().find(|field| !field.has_default());
            errors.keep(lacks.map_or(Ok(()), |key| Err(Error::new(key.ident.span(), NO_DEFAULT))));
        }
        errors.finish()?;
        Ok(Self {
            ident: &input.ident,
            vis: &input.vis,
            fields: fields.into_iter().flatten().collect(),
            options: options.unwrap_or_default(),
        })
    }

    fn default(&self) -> TokenStream {
        if !self.options.has(DEFAULT) {
            return TokenStream::new();
        }
        let ident = self.ident;
        quote! {
            #[automatically_derived]
            impl ::core::default::Default for #ident {
                fn default() -> Self {
                    static DEFAULT: ::std::sync::LazyLock<#ident> =
                        ::std::sync::LazyLock::new(::cwnd_schema::file::from_defaults);
                    ::core::clone::Clone::clone(&*DEFAULT)
                }
            }
        }
    }

    /// Generates the struct `PartialNAME`, with an `Option` for each key: `None` if it could not be
    /// read.
    fn partial(&self) -> TokenStream {
        let name = self.partial_name();
        let fields = self.fields.iter().map(|ParsedField { ident, ty, form }| match form {
            Form::Key(_) => quote!(pub #ident: Option<#ty>),
            Form::Flattened(_) => {
                quote!(pub #ident: <#ty as ::cwnd_schema::file::SectionKeys>::Partial)
            }
        });
        let vis = self.vis;
        quote! {
            /// Values that could be read.
            #[automatically_derived]
            #vis struct #name { #(#fields,)* }
        }
    }

    fn partial_name(&self) -> Ident {
        format_ident!("Partial{}", self.ident)
    }

    fn keys(&self) -> TokenStream {
        let (ident, partial) = (self.ident, self.partial_name());
        let listed = self.fields.iter().map(ParsedField::listed);
        let names: Vec<&Ident> = self.fields.iter().map(|field| field.ident).collect();
        let reads = self.fields.iter().map(ParsedField::read_value);
        let check = self.options.check.as_ref().map(|check| quote!(#check(&partial, section, cx);));
        let completes = self.fields.iter().map(|ParsedField { ident, ty, form }| match form {
            Form::Key(_) => quote!(#ident: #ident?),
            Form::Flattened(_) => {
                quote!(#ident: <#ty as ::cwnd_schema::file::SectionKeys>::complete(#ident)?)
            }
        });
        let reset_idle = self.reset_idle();
        let others = self.fields.iter().filter_map(ParsedField::other).map(name_of);
        let no_other = NO_OTHER;
        quote! {
            #(const _: () = {
                let keys = <#ident as ::cwnd_schema::file::SectionKeys>::KEYS;
                assert!(::cwnd_schema::file::index_of(keys, #others) < keys.len(), #no_other);
            };)*
            #[automatically_derived]
            impl ::cwnd_schema::file::SectionKeys for #ident {
                const KEYS: &'static [::cwnd_schema::file::Key] = {
                    const PARTS: &[&[::cwnd_schema::file::Key]] = &[#(#listed,)*];
                    &::cwnd_schema::derive_support::joined::<_, {
                        ::cwnd_schema::derive_support::total(PARTS)
                    }>(PARTS, ::cwnd_schema::file::Key::NONE)
                };
                type Partial = #partial;
                fn read_keys(
                    section: &::cwnd_schema::file::Section<'_>,
                    cx: &mut ::cwnd_schema::file::Context<'_>,
                ) -> #partial {
                    #(let #names = #reads;)*
                    let partial = #partial { #(#names,)* };
                    #check
                    partial
                }
                fn complete(#partial { #(#names,)* }: #partial) -> Option<Self> {
                    Some(Self { #(#completes,)* })
                }
                #reset_idle
            }
        }
    }

    /// Generates `reset_idle`, which applies the rules on keys without effect.
    fn reset_idle(&self) -> TokenStream {
        let rules: Vec<TokenStream> = self.fields.iter().flat_map(ParsedField::rules).collect();
        if rules.is_empty() {
            return TokenStream::new();
        }
        quote! {
            fn reset_idle(
                &mut self,
                section: &::cwnd_schema::file::Section<'_>,
                cx: &mut ::cwnd_schema::file::Context<'_>,
            ) {
                #(#rules)*
            }
        }
    }

    fn resolved(&self) -> TokenStream {
        if self.options.has(INPUT) {
            return TokenStream::new();
        }
        let ident = self.ident;
        let written = self.fields.iter().map(ParsedField::written);
        quote! {
            #[automatically_derived]
            impl ::cwnd_schema::file::Resolved for #ident {
                fn written(
                    &self,
                ) -> Vec<(&'static str, ::cwnd_schema::file::WrittenValue<'_>)> {
                    let mut written = Vec::new();
                    #(#written)*
                    written
                }
            }
        }
    }
}

impl<'a> ParsedField<'a> {
    fn read(field: &'a Field) -> Result<Self> {
        let Some(ident) = &field.ident else {
            return Err(Error::new(field.span(), "keys have names"));
        };
        let form = match one(&field.attrs, "flatten")? {
            Some(flatten) => Form::Flattened(Overrides::of(flatten)?),
            None => Form::Key(Box::new(Key::read(field, ident)?)),
        };
        Ok(Self { ident, ty: &field.ty, form })
    }

    const fn has_default(&self) -> bool {
        match &self.form {
            Form::Key(key) => matches!(key.fallback, Fallback::Toml(_) | Fallback::Derived(_)),
            Form::Flattened(_) => true,
        }
    }

    /// Returns the key that may be given instead of this one.
    fn other(&self) -> Option<&Ident> {
        match &self.form {
            Form::Key(key) => match &key.fallback {
                Fallback::Required(other) => other.as_ref(),
                _ => None,
            },
            Form::Flattened(_) => None,
        }
    }

    /// Generates the entries of the field in `KEYS`: itself, or all of its nested section.
    fn listed(&self) -> TokenStream {
        let ty = self.ty;
        let overrides = match &self.form {
            Form::Key(key) => {
                let row = key.listed();
                return quote!(&[#row]);
            }
            Form::Flattened(Overrides(of)) => of.iter().map(|(key, doc, source)| {
                let name = name_of(key);
                quote!((#name, #doc, #source))
            }),
        };
        let keys = quote!(<#ty as ::cwnd_schema::file::SectionKeys>::KEYS);
        quote! {
            &::cwnd_schema::file::described::<{ #keys.len() }>(#keys, &[#(#overrides),*])
        }
    }

    fn read_value(&self) -> TokenStream {
        let ty = self.ty;
        match &self.form {
            Form::Key(key) => key.read_value(),
            Form::Flattened(_) => {
                quote!(<#ty as ::cwnd_schema::file::SectionKeys>::read_keys(section, cx))
            }
        }
    }

    fn rules(&self) -> Vec<TokenStream> {
        let ident = self.ident;
        match &self.form {
            Form::Key(key) => key.rules(),
            Form::Flattened(_) => vec![quote! {
                ::cwnd_schema::file::SectionKeys::reset_idle(&mut self.#ident, section, cx);
            }],
        }
    }

    fn written(&self) -> TokenStream {
        let ident = self.ident;
        match &self.form {
            Form::Key(key) => key.written(),
            Form::Flattened(_) => quote! {
                written.extend(::cwnd_schema::file::Resolved::written(&self.#ident));
            },
        }
    }
}

impl<'a> Key<'a> {
    fn read(field: &'a Field, ident: &'a Ident) -> Result<Self> {
        let attributes = &field.attrs;
        let doc = doc(attributes, ident.span())?;
        let [default, by_schema, derived, required] =
            ["default", "by_schema", "derived", "required"].map(|name| one(attributes, name));
        let (fallback, source) = match (default?, by_schema?, derived?, required?) {
            (Some(default), None, None, None) => {
                let Toml { texts, source } = default.parse_args()?;
                let [text] = <[String; 1]>::try_from(texts).map_err(|_| {
                    Error::new(default.span(), "one default: `#[default(TOML, \"SOURCE\")]`")
                })?;
                (Fallback::Toml(text), source)
            }
            (None, Some(by_schema), None, None) => {
                let Toml { texts, source } = by_schema.parse_args()?;
                (Fallback::BySchema(texts), source)
            }
            (None, None, Some(derived), None) => {
                let Sourced { value: sentence, source } = derived.parse_args()?;
                (Fallback::Derived(sentence), source)
            }
            (None, None, None, Some(required)) => {
                let Required { source, unless } = required.parse_args()?;
                (Fallback::Required(unless), source)
            }
            _ => return Err(Error::new(ident.span(), ONE_OF)),
        };
        let ty = if fallback.is_optional() { inner(&field.ty)? } else { &field.ty };
        let bounds = one(attributes, "bounds")?.map(syn::Attribute::parse_args).transpose()?;
        let takes = one(attributes, "entry")?.map(syn::Attribute::parse_args).transpose()?;
        let rules = attributes.iter().filter(|attribute| attribute.path().is_ident("idle"));
        if let Some(rule) = rules.clone().next()
            && !matches!(fallback, Fallback::Toml(_))
        {
            let message = "a key without effect takes its default, so it has one";
            return Err(Error::new(rule.span(), message));
        }
        let rules = rules.map(|attribute| attribute.parse_args_with(Idle::of_field(ident)));
        let idle = rules.collect::<Result<_>>()?;
        Ok(Self { ident, ty, doc, fallback, source, bounds, takes, idle })
    }

    /// Generates its entry in `KEYS`.
    fn listed(&self) -> TokenStream {
        let Self { ident, ty, doc, fallback, source, bounds, takes, .. } = self;
        let name = name_of(ident);
        let form = match takes {
            Some(takes) => quote!(#takes),
            None => {
                quote!(::cwnd_schema::file::Form::Plain(<#ty as ::cwnd_schema::Param>::VALUE_TYPE))
            }
        };
        let fallback = match fallback {
            Fallback::Required(_) => quote!(Required),
            Fallback::Toml(toml) => quote!(Toml(#toml)),
            Fallback::BySchema(texts) => quote!(BySchema(&[#(#texts),*])),
            Fallback::Derived(sentence) => quote!(Derived(#sentence)),
        };
        let bounds = bounds_of(quote!(::cwnd_schema::Bounds::NONE), ty, bounds.as_ref());
        quote! {
            ::cwnd_schema::file::Key {
                name: #name,
                form: #form,
                fallback: ::cwnd_schema::file::Fallback::#fallback,
                doc: #doc,
                source: #source,
                bounds: #bounds,
            }
        }
    }

    fn read_value(&self) -> TokenStream {
        let (ty, name) = (self.ty, name_of(self.ident));
        let read = if self.takes.is_some() {
            quote!(section.read(#name, cx, <#ty as ::cwnd_schema::file::ReadValue<_>>::read))
        } else {
            quote!(section.plain::<#ty>(#name, cx))
        };
        let other = match &self.fallback {
            Fallback::Required(None) | Fallback::Toml(_) | Fallback::BySchema(_) => return read,
            Fallback::Required(Some(other)) => {
                let other = name_of(other);
                Some(quote!(|| section.entry(#other).is_none()))
            }
            Fallback::Derived(_) => None,
        };
        quote! {
            if section.entry(#name).is_some() #other { #read.map(Some) } else { Some(None) }
        }
    }

    fn written(&self) -> TokenStream {
        let (ident, name) = (self.ident, name_of(self.ident));
        let value = if self.takes.is_some() {
            quote!(::cwnd_schema::file::WriteValue::write(value))
        } else {
            quote!(::cwnd_schema::file::plain(value))
        };
        let field = if self.fallback.is_optional() {
            quote!(if let Some(value) = &self.#ident)
        } else {
            quote!(let value = &self.#ident;)
        };
        quote! { #field { written.push((#name, #value)); } }
    }

    fn rules(&self) -> Vec<TokenStream> {
        let (ident, name, read) = (self.ident, name_of(self.ident), self.read_value());
        let rules = self.idle.iter().map(|Idle { condition, why, .. }| {
            quote! {
                if #condition
                    && let Some(default) = { let section = &section.without_entries(); #read }
                    && self.#ident != default && section.has_no_effect(#name, #why, cx)
                {
                    self.#ident = default;
                }
            }
        });
        rules.collect()
    }
}

/// Returns the type argument of an `Option`.
fn inner(ty: &Type) -> Result<&Type> {
    let optional = || Error::new(ty.span(), "a key that may be absent is an `Option`");
    let Type::Path(path) = ty else { return Err(optional()) };
    let last = path.path.segments.last().filter(|last| last.ident == "Option");
    match last.map(|last| &last.arguments) {
        Some(PathArguments::AngleBracketed(arguments)) => match arguments.args.first() {
            Some(GenericArgument::Type(inner)) => Ok(inner),
            _ => Err(optional()),
        },
        _ => Err(optional()),
    }
}

/// Flag of a struct that has a `Default`.
const DEFAULT: &str = "default";
/// Flag of a struct that is never written to resolved files.
const INPUT: &str = "input";
/// Error for a key that is required, or whose default depends on the version of the file format, in
/// a section with the flag `default`.
pub const NO_DEFAULT: &str = "a section has no default if one of its keys has none";
/// Error for an `unless` whose key does not exist.
pub const NO_OTHER: &str = "`unless` names a key that is not there";
/// Error for a key without exactly one of the attributes that give its value.
pub const ONE_OF: &str = "needs one of `#[default(TOML, \"SOURCE\")]`, \
    `#[by_schema(TOML, …, \"SOURCE\")]`, `#[derived(\"SENTENCE\", \"SOURCE\")]`, \
    `#[required(\"SOURCE\")]` and `#[flatten]`";
