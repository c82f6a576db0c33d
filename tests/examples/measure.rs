//! Source measures: sizes of structs and functions, places where a scenario key is written, and
//! files of `crates/tcp` that name a stack.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

/// Limit on the fields of a struct.
const MOST_FIELDS: usize = 20;
/// Limit on the lines of a function, from its signature to its last brace.
const MOST_LINES: usize = 60;
/// Words by which code identifies a stack. `squid` is not one: it is a mechanism of RFC 1016.
const STACKS: [&str; 5] = ["linux", "freebsd", "ns2", "ns3", "neqo"];

fn main() -> Result<(), Box<dyn Error>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().ok_or("no workspace")?;
    let mut found = Found::default();
    let files = sources(&root.join("crates"))?;
    let texts = files.iter().map(fs::read_to_string).collect::<Result<Vec<_>, _>>()?;
    let of_tests: BTreeSet<PathBuf> =
        files.iter().zip(&texts).flat_map(|(file, text)| test_modules(file, text)).collect();
    for (file, text) in files.iter().zip(&texts).filter(|(file, _)| !of_tests.contains(*file)) {
        let name = file.strip_prefix(root)?.display().to_string();
        found.read(&name, text).map_err(|error| format!("{name}: {error}"))?;
    }
    let keys = keys(&serde_json::from_str(&cwnd_scenario::json_schema(&[]))?);
    match found.print(&keys, &mut io::stdout().lock()) {
        // A closed pipe, as from `head`, is no error.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        printed => Ok(printed?),
    }
}

/// Returns the Rust files below `src` folders, sorted. Leaves out files named `tests.rs` and the
/// folders of tests, examples, benches and build products.
fn sources(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let is_source = path.components().any(|part| part.as_os_str() == "src");
        if path.is_dir() && !["target", "tests", "examples", "benches"].contains(&name.as_str()) {
            found.extend(sources(&path)?);
        } else if is_source && name.ends_with(".rs") && name != "tests.rs" {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// Returns the files of the modules that `file` declares for tests only.
fn test_modules(file: &Path, text: &str) -> impl Iterator<Item = PathBuf> {
    let is_root = ["lib.rs", "main.rs", "mod.rs"].iter().any(|root| file.ends_with(root));
    let folder = if is_root { file.with_file_name("") } else { file.with_extension("") };
    let declared = text.split("#[cfg(test)]\nmod ").skip(1);
    declared
        .filter_map(|rest| rest.split_once(';'))
        .map(move |(name, _)| folder.join(name).with_extension("rs"))
}

/// Returns the names of all properties of a JSON Schema.
fn keys(schema: &serde_json::Value) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    match schema {
        serde_json::Value::Object(members) => {
            for (name, value) in members {
                if let ("properties", Some(properties)) = (name.as_str(), value.as_object()) {
                    names.extend(properties.keys().cloned());
                }
                names.extend(keys(value));
            }
        }
        serde_json::Value::Array(values) => names.extend(values.iter().flat_map(keys)),
        _ => {}
    }
    names
}

/// Measures of all files read so far.
#[derive(Default)]
struct Found {
    file: String,
    structs: Vec<(usize, String)>,
    functions: Vec<(usize, String)>,
    /// Number of places in `crates/scenario` where a word stands before a colon, as the name of a
    /// field does, or is a whole string literal.
    written: BTreeMap<String, usize>,
    /// Number of words that contain the name of a stack, by file of `crates/tcp`.
    stacks: BTreeMap<String, usize>,
}

impl Found {
    fn read(&mut self, file: &str, text: &str) -> Result<(), Box<dyn Error>> {
        file.clone_into(&mut self.file);
        // The module `tests` is the last item of a file.
        let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
        self.visit_file(&syn::parse_file(code)?);
        self.words(code.parse().map_err(|_| "no Rust tokens")?);
        Ok(())
    }

    /// Collects the words of all tokens, including those inside macros.
    fn words(&mut self, tokens: TokenStream) {
        let mut tokens = tokens.into_iter().peekable();
        while let Some(token) = tokens.next() {
            let word = match &token {
                TokenTree::Group(group) => {
                    self.words(group.stream());
                    continue;
                }
                TokenTree::Ident(word) => word.to_string(),
                TokenTree::Literal(literal) => literal.to_string(),
                TokenTree::Punct(mark) => {
                    // Attributes contain doc comments and sources, which do not count. A module's
                    // attribute begins with `#!`.
                    if mark.as_char() == '#' {
                        tokens.next_if(
                            |next| matches!(next, TokenTree::Punct(mark) if mark.as_char() == '!'),
                        );
                        tokens.next_if(|next| matches!(next, TokenTree::Group(_)));
                    }
                    continue;
                }
            };
            self.stack(&word);
            let names_field = matches!(tokens.peek(), Some(TokenTree::Punct(mark))
                if mark.as_char() == ':' && mark.spacing() == proc_macro2::Spacing::Alone);
            let of_schema = self.file.starts_with("crates/scenario/");
            if of_schema && (names_field || word.starts_with('"')) {
                *self.written.entry(word.trim_matches('"').to_owned()).or_default() += 1;
            }
        }
    }

    fn stack(&mut self, word: &str) {
        let lower = word.to_lowercase();
        if self.file.starts_with("crates/tcp/") && STACKS.iter().any(|name| lower.contains(name)) {
            *self.stacks.entry(self.file.clone()).or_default() += 1;
        }
    }

    fn function(&mut self, name: &str, from: proc_macro2::Span, to: proc_macro2::Span) {
        let lines = to.end().line + 1 - from.start().line;
        self.functions.push((lines, format!("{} {name}", self.file)));
    }

    fn print(&mut self, keys: &BTreeSet<String>, out: &mut impl Write) -> io::Result<()> {
        print_largest(out, ("Fields per struct", "structs", MOST_FIELDS), &mut self.structs)?;
        print_largest(out, ("Lines per function", "functions", MOST_LINES), &mut self.functions)?;
        writeln!(out, "\nPlaces of crates/scenario where a key is written as a field or literal")?;
        let mut by_count: BTreeMap<usize, Vec<&str>> = BTreeMap::new();
        for key in keys {
            let places = self.written.get(key).copied().unwrap_or_default();
            by_count.entry(places).or_default().push(key);
        }
        for (count, keys) in by_count {
            let shown = keys.iter().take(6).copied().collect::<Vec<_>>().join(", ");
            let more = if keys.len() > 6 { ", …" } else { "" };
            writeln!(out, "{count:>6}  {} keys: {shown}{more}", keys.len())?;
        }
        let words: usize = self.stacks.values().sum();
        writeln!(
            out,
            "\nFiles of crates/tcp that name a stack: {} ({words} words)",
            self.stacks.len()
        )?;
        for (file, words) in &self.stacks {
            writeln!(out, "{words:>6}  {file}")?;
        }
        Ok(())
    }
}

fn print_largest(
    out: &mut impl Write,
    (title, what, most): (&str, &str, usize),
    measured: &mut [(usize, String)],
) -> io::Result<()> {
    measured.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    let above = measured.iter().take_while(|(size, _)| *size > most).count();
    writeln!(out, "\n{title}: {above} of {} {what} over {most}", measured.len())?;
    for (size, name) in &measured[..above] {
        writeln!(out, "{size:>6}  {name}")?;
    }
    Ok(())
}

impl<'a> Visit<'a> for Found {
    fn visit_item_struct(&mut self, item: &'a syn::ItemStruct) {
        self.structs.push((item.fields.len(), format!("{} {}", self.file, item.ident)));
        visit::visit_item_struct(self, item);
    }

    fn visit_item_fn(&mut self, item: &'a syn::ItemFn) {
        self.function(&item.sig.ident.to_string(), item.sig.span(), item.block.span());
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'a syn::ImplItemFn) {
        self.function(&item.sig.ident.to_string(), item.sig.span(), item.block.span());
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'a syn::TraitItemFn) {
        if let Some(block) = &item.default {
            self.function(&item.sig.ident.to_string(), item.sig.span(), block.span());
        }
        visit::visit_trait_item_fn(self, item);
    }
}
