//! Absence of import cycles between the files of a crate, however long. A module split over files
//! of its folder may have parts that import the whole, as `impl`s of its types do; this exception
//! does not hold for the root of the crate.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::str::FromStr as _;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use crate::architecture::{crates, sources};

/// Path of a module: its names from the root of the crate on.
type ModulePath = Vec<String>;

/// Modules of a crate that have their own files.
#[derive(Debug, Default)]
struct CrateModules {
    files: BTreeMap<ModulePath, FileImports>,
}

/// References from one file to others.
#[derive(Debug, Default)]
struct FileImports {
    /// Paths as written, each with the module in which it is resolved.
    paths: Vec<(ModulePath, Vec<String>)>,
    /// Names imported by `use`, and the paths that they stand for.
    names: BTreeMap<String, (ModulePath, Vec<String>)>,
}

impl CrateModules {
    fn of(sources: &[(ModulePath, String)]) -> Self {
        let mut modules = Self::default();
        for (module, _) in sources {
            modules.files.insert(module.clone(), FileImports::default());
        }
        for (module, text) in sources {
            let tokens = TokenStream::from_str(text).expect("a source file has tokens");
            let mut imports = FileImports::default();
            modules.read(tokens, module, &mut imports);
            modules.files.insert(module.clone(), imports);
        }
        modules
    }

    /// Collects the paths in the code of a module, except in tests, which may import anything.
    fn read(&self, tokens: TokenStream, here: &ModulePath, imports: &mut FileImports) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut i = 0;
        while i < tokens.len() {
            if let Some(after) = skip_test(&tokens, i) {
                i = after;
                continue;
            }
            match &tokens[i] {
                TokenTree::Ident(word) if word == "mod" && is_inline(&tokens, i) => {
                    let mut inner = here.clone();
                    inner.push(tokens[i + 1].to_string());
                    if let TokenTree::Group(body) = &tokens[i + 2] {
                        self.read(body.stream(), &inner, imports);
                    }
                    i += 3;
                }
                TokenTree::Ident(word) if word == "use" => {
                    let mut found = Vec::new();
                    i = paths(&tokens, i + 1, &[], &mut found);
                    for (path, name) in found {
                        imports.names.insert(name, (here.clone(), path.clone()));
                        imports.paths.push((here.clone(), path));
                    }
                }
                TokenTree::Ident(_) if begins_path(&tokens, i) => {
                    let mut found = Vec::new();
                    i = paths(&tokens, i, &[], &mut found);
                    imports.paths.extend(found.into_iter().map(|(path, _)| (here.clone(), path)));
                }
                TokenTree::Group(group) => {
                    self.read(group.stream(), here, imports);
                    i += 1;
                }
                _ => i += 1,
            }
        }
    }

    /// Resolves a path to a file, following at most `depth` re-exports. `None` if its first word is
    /// neither `crate`, `self`, `super` nor a child module with a file.
    fn target(&self, here: &ModulePath, path: &[String], depth: usize) -> Option<ModulePath> {
        let (first, mut rest) = path.split_first()?;
        let mut module = match first.as_str() {
            "crate" => ModulePath::new(),
            "self" => here.clone(),
            "super" => {
                let mut up = here.clone();
                up.pop();
                while rest.first().is_some_and(|s| s == "super") {
                    up.pop();
                    rest = &rest[1..];
                }
                up
            }
            child => {
                let module: ModulePath = here.iter().cloned().chain([child.to_owned()]).collect();
                self.files.contains_key(&module).then_some(module)?
            }
        };
        while let Some((next, after)) = rest.split_first() {
            let deeper: ModulePath = module.iter().cloned().chain([next.clone()]).collect();
            if !self.files.contains_key(&deeper) {
                break;
            }
            (module, rest) = (deeper, after);
        }
        // An inline module belongs to its file.
        while !self.files.contains_key(&module) {
            module.pop();
        }
        // A re-exported name resolves to the item that it stands for.
        let reexported = rest.first().and_then(|name| self.files[&module].names.get(name));
        match reexported {
            Some((there, path)) if depth > 0 => {
                self.target(there, path, depth - 1).or(Some(module))
            }
            _ => Some(module),
        }
    }

    /// Returns the files that each file imports, with one path for each. A file's own module and
    /// those above it, except the root of the crate, do not count.
    fn needs(&self) -> BTreeMap<&ModulePath, BTreeMap<ModulePath, String>> {
        let mut needs = BTreeMap::new();
        for (file, imports) in &self.files {
            let of: &mut BTreeMap<ModulePath, String> = needs.entry(file).or_default();
            for (here, path) in &imports.paths {
                let apart = |target: &ModulePath| target.is_empty() || !file.starts_with(target);
                if let Some(target) = self.target(here, path, 4).filter(apart) {
                    of.entry(target).or_insert_with(|| path.join("::"));
                }
            }
        }
        needs
    }

    /// Returns the cycles, each as the shortest one through one of its files.
    fn cycles(&self) -> Vec<String> {
        let needs = self.needs();
        let mut reported = BTreeSet::new();
        let mut cycles = Vec::new();
        for &start in needs.keys() {
            if reported.contains(start) {
                continue;
            }
            let Some(cycle) = shortest_cycle(&needs, start) else { continue };
            let mut text = title(start);
            for step in cycle.windows(2) {
                let by = &needs[&step[0]][&step[1]];
                text += &format!(" → {} (`{by}`)", title(&step[1]));
            }
            reported.extend(cycle);
            cycles.push(text);
        }
        cycles
    }
}

/// Returns the shortest cycle through a file; `None` if there is none.
fn shortest_cycle(
    needs: &BTreeMap<&ModulePath, BTreeMap<ModulePath, String>>,
    start: &ModulePath,
) -> Option<Vec<ModulePath>> {
    let mut from: BTreeMap<&ModulePath, &ModulePath> = BTreeMap::new();
    let mut next = vec![start];
    while !next.is_empty() {
        let mut after = Vec::new();
        for here in next {
            for target in needs[here].keys() {
                if target == start {
                    let mut cycle = vec![start.clone()];
                    let mut step = here;
                    while step != start {
                        cycle.push(step.clone());
                        step = from[step];
                    }
                    cycle.push(start.clone());
                    cycle.reverse();
                    return Some(cycle);
                }
                if !from.contains_key(target) {
                    from.insert(target, here);
                    after.push(target);
                }
            }
        }
        next = after;
    }
    None
}

fn title(module: &ModulePath) -> String {
    if module.is_empty() { "the root".to_owned() } else { module.join("/") }
}

/// Returns the index after an item that is compiled for tests only, if one starts here.
fn skip_test(tokens: &[TokenTree], i: usize) -> Option<usize> {
    let TokenTree::Group(attribute) = tokens.get(i + 1)? else { return None };
    if tokens[i].to_string() != "#"
        || attribute.stream().to_string().replace(' ', "") != "cfg(test)"
    {
        return None;
    }
    let body = tokens[i + 2..].iter().position(|token| match token {
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        TokenTree::Punct(mark) => mark.as_char() == ';',
        _ => false,
    })?;
    Some(i + 2 + body + 1)
}

fn is_inline(tokens: &[TokenTree], i: usize) -> bool {
    let body = tokens.get(i + 2);
    matches!(body, Some(TokenTree::Group(body)) if body.delimiter() == Delimiter::Brace)
}

fn is_colons(tokens: &[TokenTree], i: usize) -> bool {
    let colon = |i: usize| matches!(tokens.get(i), Some(TokenTree::Punct(p)) if p.as_char() == ':');
    colon(i) && colon(i + 1)
}

/// `true` if a path begins with this word: `::` follows, and none precedes it.
fn begins_path(tokens: &[TokenTree], i: usize) -> bool {
    is_colons(tokens, i + 1) && !(i >= 2 && is_colons(tokens, i - 2))
}

/// Collects the path or tree of paths that begins at a token, each with the name that it imports.
/// Returns the index after it.
fn paths(
    tokens: &[TokenTree],
    mut i: usize,
    before: &[String],
    found: &mut Vec<(Vec<String>, String)>,
) -> usize {
    let mut path = before.to_vec();
    loop {
        match tokens.get(i) {
            Some(TokenTree::Ident(word)) => {
                path.push(word.to_string());
                i += 1;
                if is_colons(tokens, i) {
                    i += 2;
                    continue;
                }
                let mut name = word.to_string();
                if name == "self" {
                    path.pop();
                    name = path.last().cloned().unwrap_or_default();
                }
                if matches!(tokens.get(i), Some(TokenTree::Ident(word)) if word == "as") {
                    name = tokens[i + 1].to_string();
                    i += 2;
                }
                found.push((path, name));
                return i;
            }
            Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace => {
                let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                let mut at = 0;
                while at < inner.len() {
                    at = paths(&inner, at, &path, found).max(at + 1);
                }
                return i + 1;
            }
            // A glob import, or generic arguments.
            _ => {
                if path.len() > before.len() {
                    found.push((path, String::new()));
                }
                return i;
            }
        }
    }
}

/// Returns the source files of a folder as modules, with their texts.
fn modules(folder: &Path) -> Vec<(ModulePath, String)> {
    let mut modules = Vec::new();
    for file in sources(folder, &["rs"]) {
        let inside = file.strip_prefix(folder).expect("it was found there").with_extension("");
        let mut module: ModulePath =
            inside.iter().map(|part| part.to_string_lossy().into_owned()).collect();
        if matches!(module.last().map(String::as_str), Some("lib" | "main" | "mod")) {
            module.pop();
        }
        modules.push((module, fs::read_to_string(&file).expect("a source file is text")));
    }
    modules
}

#[test]
fn no_files_of_a_crate_need_each_other_in_a_circle() {
    let mut wrong = Vec::new();
    let mut files = 0;
    for (name, folder) in crates() {
        let modules = modules(&folder.join("src"));
        files += modules.len();
        let cycles = CrateModules::of(&modules).cycles();
        wrong.extend(cycles.iter().map(|circle| format!("{name}: {circle}")));
    }
    wrong.sort();
    assert!(files > 100, "the search found {files} files");
    assert!(wrong.is_empty(), "cycles between files:\n{}", wrong.join("\n"));
}

fn cycles_of(files: &[(&str, &str)]) -> Vec<String> {
    let module =
        |name: &str| name.split('/').filter(|p| !p.is_empty()).map(str::to_owned).collect();
    let sources: Vec<(ModulePath, String)> =
        files.iter().map(|(name, text)| (module(name), (*text).to_owned())).collect();
    CrateModules::of(&sources).cycles()
}

#[test]
fn a_circle_is_found_however_its_files_name_each_other() {
    let one_way = ("b", "pub struct B;");
    for (a, b) in [
        ("use crate::b::B;", "use crate::a::A;"),
        ("use crate::{c, b::{self, B}};", "fn f(a: super::a::A) {}"),
        ("use super::b;", "macro_rules! m { () => { $crate::a::A } }"),
        ("fn f() { let x = vec![crate::b::B]; }", "mod inner { use super::super::a::A; }"),
        ("use crate::B as Bee;", "use crate::a::*;"),
    ] {
        let lib = ("", "mod a; mod b; pub use b::B;");
        assert_eq!(cycles_of(&[lib, ("a", a), ("b", b)]).len(), 1, "{a} {b}");
        assert!(cycles_of(&[lib, ("a", a), one_way]).is_empty(), "{a}");
    }
    let root = [("", "mod a; pub use a::f; pub struct Root;"), ("a", "use crate::Root;")];
    assert_eq!(cycles_of(&root), ["the root → a (`a::f`) → the root (`crate::Root`)"]);
}

#[test]
fn tests_other_crates_and_parts_of_a_module_make_no_circle() {
    let b = "#[cfg(test)] mod tests { use crate::a::A; } use other::a::A; // crate::a::A";
    assert!(cycles_of(&[("", "mod a;"), ("a", "use crate::b::B;"), ("b", b)]).is_empty());
    let whole = ("a", "mod c; mod d; use c::C; pub struct A;");
    let part = ("a/c", "use super::A;");
    assert!(cycles_of(&[("", "mod a;"), whole, part]).is_empty());
    let parts = [("a/c", "use super::d::D;"), ("a/d", "use crate::a::c::C;")];
    assert_eq!(cycles_of(&[("", "mod a;"), whole, parts[0], parts[1]]).len(), 1);
}
