//! Parsers of the attributes of fields, variants and structs.

use proc_macro2::{Delimiter, Span, TokenStream, TokenTree};
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{Attribute, Error, Expr, ExprLit, Ident, Lit, LitStr, Meta, Path, Result, Token};

/// Returns the doc comment: its lines, concatenated as written.
///
/// # Errors
/// If there is none, or an empty one: schema and reference need one.
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

/// Returns the attribute of this name, if there is one.
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

/// Returns the text of an attribute that has nothing else, such as `#[name("…")]` or
/// `#[required("…")]`.
///
/// # Errors
/// If the argument is not a text, or empty.
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

/// A value with its source: arguments of `#[default(VALUE, "SOURCE")]` or
/// `#[derived("SENTENCE", "SOURCE")]`, or a doc with its source in `#[flatten(…)]`.
pub struct Sourced<T> {
    pub value: T,
    pub source: LitStr,
}

impl<T: Parse> Parse for Sourced<T> {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let value = input.parse()?;
        input
            .parse::<Token![,]>()
            .map_err(|e| Error::new(e.span(), "a default has a source: `(VALUE, \"SOURCE\")`"))?;
        let source = input.parse()?;
        not_empty(&source)?;
        input.parse::<Option<Token![,]>>()?;
        Ok(Self { value, source })
    }
}

/// Arguments of `#[default(TOML, "SOURCE")]`, or of `#[by_schema(TOML, …, "SOURCE")]` with a TOML
/// for each version of the file format.
pub struct Toml {
    pub texts: Vec<String>,
    pub source: LitStr,
}

impl Parse for Toml {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let mut texts = Vec::new();
        loop {
            let mut tokens = Vec::<TokenTree>::new();
            while !input.is_empty() && !input.peek(Token![,]) {
                tokens.push(input.parse()?);
            }
            let is_last = input.parse::<Option<Token![,]>>()?.is_none() || input.is_empty();
            if !is_last {
                texts.push(toml(tokens.into_iter().collect()));
                continue;
            }
            if texts.is_empty() {
                let message = "a default has a source: `#[default(TOML, \"SOURCE\")]`";
                return Err(input.error(message));
            }
            let source = syn::parse2(tokens.into_iter().collect())?;
            not_empty(&source)?;
            return Ok(Self { texts, source });
        }
    }
}

/// Formats tokens as TOML, with the usual blanks.
fn toml(tokens: TokenStream) -> String {
    let written = tokens.into_iter().map(|token| match token {
        TokenTree::Group(group) if group.delimiter() == Delimiter::Bracket => {
            format!("[{}]", toml(group.stream()))
        }
        TokenTree::Group(group) => format!("{{ {} }}", toml(group.stream())),
        TokenTree::Punct(punct) if punct.as_char() == '=' => " = ".to_owned(),
        TokenTree::Punct(punct) if punct.as_char() == ',' => ", ".to_owned(),
        other => other.to_string(),
    });
    written.collect()
}

/// Arguments of `#[required("SOURCE")]` or `#[required("SOURCE", unless KEY)]`.
pub struct Required {
    pub source: LitStr,
    /// Key that may be given instead.
    pub unless: Option<Ident>,
}

impl Parse for Required {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let source = input.parse()?;
        not_empty(&source)?;
        if input.parse::<Option<Token![,]>>()?.is_none() || input.is_empty() {
            return Ok(Self { source, unless: None });
        }
        let word: Ident = input.parse()?;
        if word != "unless" {
            return Err(Error::new(word.span(), "there is `unless KEY`"));
        }
        Ok(Self { source, unless: Some(input.parse()?) })
    }
}

/// Arguments of `#[flatten]` of a section, or `#[flatten(KEY = ("DOC", "SOURCE"), …)]`: keys that
/// have another doc and source here.
pub struct Overrides(pub Vec<(Ident, LitStr, LitStr)>);

impl Overrides {
    pub fn of(attribute: &Attribute) -> Result<Self> {
        if matches!(attribute.meta, Meta::Path(_)) {
            return Ok(Self(Vec::new()));
        }
        let one = |input: ParseStream<'_>| {
            let key = input.parse()?;
            input.parse::<Token![=]>()?;
            let texts;
            syn::parenthesized!(texts in input);
            let Sourced { value: doc, source } = texts.parse()?;
            Ok((key, doc, source))
        };
        let all = attribute.parse_args_with(|input: ParseStream<'_>| {
            Punctuated::<_, Token![,]>::parse_terminated_with(input, one)
        })?;
        Ok(Self(all.into_iter().collect()))
    }
}

/// Arguments of `#[flatten(VALUE, KEY = "SOURCE", …)]`.
pub struct Flatten {
    pub value: Expr,
    /// Keys of the nested set whose defaults have other sources here.
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

/// Arguments of `#[bounds(from VALUE, below VALUE; "REASON")]`.
pub struct Bounds {
    /// Method of `Bounds` and value, for each end.
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

/// Arguments of `#[idle(CONDITION, "WHY")]` of a field, or `#[idle([KEY, …], CONDITION, "WHY")]` of
/// a struct.
pub struct Idle {
    pub keys: Vec<Ident>,
    pub condition: Expr,
    pub why: LitStr,
}

impl Idle {
    /// Returns a parser of a rule of the field `key`.
    pub fn of_field(key: &Ident) -> impl FnOnce(ParseStream<'_>) -> Result<Self> {
        let keys = vec![key.clone()];
        move |input| Self::after_keys(keys, input)
    }

    /// Parses the rule of a struct, which names its keys.
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

/// Arguments of `#[order(FIRST to LAST after KEY)]` of a struct, or `#[order(FIRST after KEY)]` for
/// one key.
pub struct Order {
    pub first: Ident,
    pub last: Ident,
    /// Key after which the others are listed.
    pub after: Ident,
}

impl Parse for Order {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let first: Ident = input.parse()?;
        let mut last = first.clone();
        let mut word: Ident = input.parse()?;
        if word == "to" {
            last = input.parse()?;
            word = input.parse()?;
        }
        if word != "after" {
            return Err(Error::new(word.span(), "there are `to KEY` and `after KEY`"));
        }
        Ok(Self { first, last, after: input.parse()? })
    }
}

/// Arguments of `#[schema(FLAG, check = PATH)]` or `#[section(FLAG, check = PATH)]` of a struct.
#[derive(Default)]
pub struct Options {
    flags: Vec<&'static str>,
    /// Function that checks several values together.
    pub check: Option<Path>,
}

impl Options {
    /// Parses the attribute `name`, which accepts these flags; without it there are no options.
    pub fn of(
        attributes: &[Attribute],
        name: &str,
        flags: &'static [&'static str],
    ) -> Result<Self> {
        let mut options = Self::default();
        let Some(attribute) = one(attributes, name)? else { return Ok(options) };
        attribute.parse_nested_meta(|meta| {
            if meta.path.is_ident("check") {
                options.check = Some(meta.value()?.parse()?);
            } else if let Some(flag) = flags.iter().find(|flag| meta.path.is_ident(flag)) {
                options.flags.push(flag);
            } else {
                let flags = flags.join("`, `");
                return Err(meta.error(format!("there are `{flags}` and `check = PATH`")));
            }
            Ok(())
        })?;
        Ok(options)
    }

    /// `true` if the attribute has this flag.
    pub fn has(&self, flag: &str) -> bool {
        self.flags.contains(&flag)
    }
}

/// Collector of errors, so that all errors of a definition are reported together.
#[derive(Default)]
pub struct Errors(Option<Error>);

impl Errors {
    /// Returns the value; `None` after storing an error.
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

    /// Returns the stored errors as one.
    ///
    /// # Errors
    /// If any error was stored.
    pub fn finish(self) -> Result<()> {
        self.0.map_or(Ok(()), Err)
    }
}
