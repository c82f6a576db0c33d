//! The attributes of fields, variants and structs, as they are written.

use proc_macro2::{Span, TokenStream};
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{Attribute, Error, Expr, ExprLit, Ident, Lit, LitStr, Meta, Path, Result, Token, token};

/// The doc comment: its lines, joined as they stand.
///
/// # Errors
/// If there is none: schema and reference need one.
pub fn doc(attributes: &[Attribute], of: Span) -> Result<String> {
    let lines = attributes.iter().filter_map(|attribute| match &attribute.meta {
        Meta::NameValue(meta) if meta.path.is_ident("doc") => match &meta.value {
            Expr::Lit(ExprLit { lit: Lit::Str(line), .. }) => Some(line.value()),
            _ => None,
        },
        _ => None,
    });
    let doc = lines.collect::<String>().trim().to_owned();
    if doc.is_empty() {
        return Err(Error::new(of, "needs a doc comment, which schema and reference show"));
    }
    Ok(doc)
}

/// The one attribute of this name.
///
/// # Errors
/// If there are several.
pub fn one<'a>(attributes: &'a [Attribute], name: &str) -> Result<Option<&'a Attribute>> {
    let mut found = attributes.iter().filter(|attribute| attribute.path().is_ident(name));
    let first = found.next();
    match found.next() {
        Some(second) => Err(Error::new(second.span(), format!("a second `#[{name}]`"))),
        None => Ok(first),
    }
}

/// The text between the parentheses of `#[name("…")]` or `#[required("…")]`.
///
/// # Errors
/// If it is anything else.
pub fn text(attribute: &Attribute) -> Result<LitStr> {
    let text: LitStr = attribute.parse_args()?;
    not_empty(&text)?;
    Ok(text)
}

fn not_empty(text: &LitStr) -> Result<()> {
    if text.value().trim().is_empty() {
        return Err(Error::new(text.span(), "the text is empty"));
    }
    Ok(())
}

/// `#[default(VALUE, "SOURCE")]`, or `#[default(VALUE, as SHOWN, "SOURCE")]`.
pub struct DefaultValue {
    pub value: Expr,
    /// TOML of the value, as pages show it: a text, or a list.
    pub shown: Option<String>,
    pub source: LitStr,
}

impl Parse for DefaultValue {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let value = input.parse()?;
        input.parse::<Token![,]>().map_err(|e| {
            Error::new(e.span(), "a default has a source: `#[default(VALUE, \"SOURCE\")]`")
        })?;
        let shown = if input.parse::<Option<Token![as]>>()?.is_some() {
            let shown = shown(input)?;
            input.parse::<Token![,]>()?;
            Some(shown)
        } else {
            None
        };
        let source = input.parse()?;
        not_empty(&source)?;
        input.parse::<Option<Token![,]>>()?;
        Ok(Self { value, shown, source })
    }
}

fn shown(input: ParseStream<'_>) -> Result<String> {
    if input.peek(token::Bracket) {
        let list;
        syn::bracketed!(list in input);
        return Ok(format!("[{}]", list.parse::<TokenStream>()?));
    }
    let text: LitStr = input.parse()?;
    Ok(format!("\"{}\"", text.value()))
}

/// `#[by_schema("TEXT", "TEXT", "SOURCE")]`: a default for each version of the file format.
pub struct BySchema {
    /// TOML of each.
    pub shown: Vec<String>,
    pub source: LitStr,
}

impl Parse for BySchema {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let texts = Punctuated::<LitStr, Token![,]>::parse_terminated(input)?;
        let mut texts: Vec<LitStr> = texts.into_iter().collect();
        match texts.pop() {
            Some(source) if !texts.is_empty() => {
                not_empty(&source)?;
                let shown = texts.iter().map(|text| format!("\"{}\"", text.value())).collect();
                Ok(Self { shown, source })
            }
            _ => Err(input.error("texts for each version of the format, and their source")),
        }
    }
}

/// `#[flatten(VALUE, KEY = "SOURCE", …)]`.
pub struct Flatten {
    pub value: Expr,
    /// Keys of the set whose defaults have other sources here.
    pub sources: Vec<(Ident, LitStr)>,
}

impl Parse for Flatten {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let value = input.parse()?;
        let mut sources = Vec::new();
        while !input.is_empty() {
            input.parse::<Token![,]>()?;
            if input.is_empty() {
                break;
            }
            let key = input.parse()?;
            input.parse::<Token![=]>()?;
            sources.push((key, input.parse()?));
        }
        Ok(Self { value, sources })
    }
}

/// `#[bounds(from VALUE, below VALUE; "REASON")]`.
pub struct Bounds {
    /// Each with the name of the method of `Bounds`.
    pub edges: Vec<(Ident, Expr)>,
    pub why: Option<LitStr>,
}

impl Parse for Bounds {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let mut edges = Vec::new();
        loop {
            let edge: Ident = input.parse()?;
            if !["from", "above", "up_to", "below"].iter().any(|known| edge == known) {
                let message = "a bound is `from`, `above`, `up_to` or `below` a value";
                return Err(Error::new(edge.span(), message));
            }
            edges.push((edge, input.parse()?));
            if !input.peek(Token![,]) {
                break;
            }
            input.parse::<Token![,]>()?;
        }
        let has_reason = input.parse::<Option<Token![;]>>()?.is_some();
        let why = if has_reason { Some(input.parse()?) } else { None };
        Ok(Self { edges, why })
    }
}

/// `#[idle(CONDITION, "WHY")]` of a field, or `#[idle([KEY, …], CONDITION, "WHY")]` of a struct.
pub struct Idle {
    pub keys: Vec<Ident>,
    pub condition: Expr,
    pub why: LitStr,
}

impl Idle {
    /// A rule of a field.
    pub fn of_field(key: &Ident) -> impl FnOnce(ParseStream<'_>) -> Result<Self> {
        let keys = vec![key.clone()];
        move |input| Self::after_keys(keys, input)
    }

    /// A rule of a struct, which names its keys.
    pub fn of_struct(input: ParseStream<'_>) -> Result<Self> {
        let keys;
        syn::bracketed!(keys in input);
        let keys = Punctuated::<Ident, Token![,]>::parse_terminated(&keys)?;
        input.parse::<Token![,]>()?;
        Self::after_keys(keys.into_iter().collect(), input)
    }

    fn after_keys(keys: Vec<Ident>, input: ParseStream<'_>) -> Result<Self> {
        let condition = input.parse()?;
        input.parse::<Token![,]>()?;
        let why = input.parse()?;
        input.parse::<Option<Token![,]>>()?;
        Ok(Self { keys, condition, why })
    }
}

/// `#[schema(presets, check = PATH)]` of a struct.
#[derive(Default)]
pub struct Options {
    pub has_presets: bool,
    pub check: Option<Path>,
}

impl Options {
    pub fn of(attributes: &[Attribute]) -> Result<Self> {
        let mut options = Self::default();
        let Some(attribute) = one(attributes, "schema")? else { return Ok(options) };
        attribute.parse_nested_meta(|meta| {
            if meta.path.is_ident("presets") {
                options.has_presets = true;
                return Ok(());
            }
            if meta.path.is_ident("check") {
                options.check = Some(meta.value()?.parse()?);
                return Ok(());
            }
            Err(meta.error("there are `presets` and `check = PATH`"))
        })?;
        Ok(options)
    }
}

/// Collects the errors of all parts of a definition.
#[derive(Default)]
pub struct Errors(Option<Error>);

impl Errors {
    /// The value, or the error put aside.
    pub fn keep<T>(&mut self, result: Result<T>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                match &mut self.0 {
                    Some(all) => all.combine(error),
                    none => *none = Some(error),
                }
                None
            }
        }
    }

    /// # Errors
    /// All that were put aside.
    pub fn finish(self) -> Result<()> {
        self.0.map_or(Ok(()), Err)
    }
}
