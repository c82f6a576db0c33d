//! What is wrong with a scenario: where, why, and how to mend it.

use core::fmt;
use std::collections::BTreeSet;
use std::sync::Arc;

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};

use crate::lines::{Lines, boundary, cut};
use crate::suggest::closest;

/// How bad a diagnostic is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The scenario can't be run.
    Error,
    /// It can, and probably says something else than was meant.
    Warning,
    /// It can, and a reader of the results should know of this.
    Note,
}

impl Severity {
    /// `"error"`, `"warning"` or `"note"`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The file, or `--set` and `--seed` for what the command line said.
    pub file: String,
    /// Line, counted from 1.
    pub line: usize,
    /// Column in characters, counted from 1.
    pub column: usize,
    /// Path of the key, such as `flow.main.controller.beta_ecn`; empty where there is none.
    pub key: String,
    /// What is wrong.
    pub message: String,
    /// How to mend it, where that is not said by the message.
    pub help: Option<String>,
    /// Whether it stops the run.
    pub severity: Severity,
    span: Span,
}

/// All that is wrong with a scenario, in the order of the file: the first [`MOST_SHOWN`], and how many more there are.
#[derive(Clone, Debug, Default)]
pub struct Diagnostics {
    list: Vec<Diagnostic>,
    /// Errors and warnings beyond those.
    more: [usize; 2],
    sources: Arc<[Source]>,
}

/// So many are told one by one, errors before warnings; the rest is counted.
pub const MOST_SHOWN: usize = 50;
/// Problems that are found before those that are shown, about.
const MOST_SUGGESTED: usize = 1000;

impl Diagnostics {
    /// One by one, [`MOST_SHOWN`] at most.
    pub fn iter(&self) -> core::slice::Iter<'_, Diagnostic> {
        self.list.iter()
    }

    /// How many there are, those included that are only counted.
    #[must_use]
    pub fn total(&self) -> usize {
        self.list.len() + self.more.iter().sum::<usize>()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Whether any of them stops the run.
    #[must_use]
    pub fn has_errors(&self) -> bool {
        self.list.iter().any(|d| d.severity == Severity::Error)
    }

    /// Others that are about the same texts.
    pub(crate) fn beside(&self, other: Sink) -> Self {
        other.finish(&self.sources)
    }

    /// Those that [`Diagnostics::iter`] gives as text, each with its source line and a caret, and a line that counts the
    /// rest; `color` adds ANSI escapes.
    #[must_use]
    pub fn render(&self, color: bool) -> String {
        let renderer = if color { Renderer::styled() } else { Renderer::plain() };
        let renderer = renderer.term_width(MOST_QUOTED);
        let mut texts: Vec<String> =
            self.list.iter().map(|d| self.render_one(&renderer, d)).collect();
        if let Some(rest) = self.rest() {
            texts.push(renderer.render(&[Group::with_title(Level::NOTE.primary_title(rest))]));
        }
        texts.join("\n\n")
    }

    /// A sentence that counts what is not told one by one.
    #[must_use]
    pub fn rest(&self) -> Option<String> {
        let counted = |n: usize, what| match n {
            0 => None,
            1 => Some(format!("1 more {what} is")),
            n => Some(format!("{n} more {what}s are")),
        };
        let [errors, warnings] = self.more;
        let parts: Vec<String> = [counted(errors, "error"), counted(warnings, "warning")]
            .into_iter()
            .flatten()
            .collect();
        (!parts.is_empty()).then(|| format!("{} not shown", parts.join(", ")))
    }

    fn render_one(&self, renderer: &Renderer, d: &Diagnostic) -> String {
        let level = match d.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
            Severity::Note => Level::NOTE,
        };
        let title = level.primary_title(d.message.as_str());
        let origin = Origin::path(d.file.as_str());
        let mut group = match self.sources.get(d.span.source) {
            Some(source) if !source.text.is_empty() => {
                // Only its own line is handed on: to look for that in the whole text takes as long as the text is.
                let (start, around) = around(&source.text, d.span);
                let from = d.span.start - start;
                // What is marked is never left out.
                let to = around.len().min(d.span.end - start).min(from + MOST_MARKED);
                let to = boundary(around, to);
                let snippet = Snippet::source(around)
                    .line_start(d.line)
                    .annotation(AnnotationKind::Primary.span(from..to));
                let whole = start == 0 || source.text.as_bytes()[start - 1] == b'\n';
                if whole {
                    title.element(snippet.path(source.name.as_str()))
                } else {
                    title.element(origin.line(d.line).char_column(d.column)).element(snippet)
                }
            }
            _ => title.element(origin),
        };
        if let Some(help) = &d.help {
            group = group.element(Level::HELP.message(help.as_str()));
        }
        renderer.render(&[group])
    }
}

impl<'a> IntoIterator for &'a Diagnostics {
    type Item = &'a Diagnostic;
    type IntoIter = core::slice::Iter<'a, Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(false))
    }
}

impl std::error::Error for Diagnostics {}

/// A text that scenarios are read from: the file, or one argument of the command line.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub name: String,
    pub text: String,
}

/// A stretch of a source, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Span {
    pub source: usize,
    pub start: usize,
    pub end: usize,
}

/// A diagnostic before its place is turned into line and column.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Problem {
    span: Span,
    severity: Severity,
    key: String,
    message: String,
    help: Option<String>,
    /// Whether something is absent that may only be waiting for a part of the file that can't be read.
    missing: bool,
}

/// A message with the place in a sweep where it holds, unless that is everywhere.
pub(crate) fn at_place(message: String, place: Option<&str>) -> String {
    match place {
        Some(place) => format!("{message} (at {place})"),
        None => message,
    }
}

impl Problem {
    /// Adds how to mend it.
    pub fn help(&mut self, help: impl Into<String>) {
        self.help = Some(cut(help.into()));
    }
}

/// Collects what is wrong, so that all of it is told at once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sink {
    problems: Vec<Problem>,
}

impl Sink {
    /// Something that stops the run.
    pub fn error(
        &mut self,
        span: Span,
        key: impl Into<String>,
        message: impl Into<String>,
    ) -> &mut Problem {
        self.push(span, Severity::Error, key.into(), message.into())
    }

    /// A key that must be there and is not.
    pub fn missing(
        &mut self,
        span: Span,
        key: impl Into<String>,
        message: impl Into<String>,
    ) -> &mut Problem {
        let problem = self.push(span, Severity::Error, key.into(), message.into());
        problem.missing = true;
        problem
    }

    /// Forgets what is absent: it may only be waiting for a part of the file that can't be read.
    pub fn forgive_missing(&mut self) {
        self.problems.retain(|p| !p.missing);
    }

    /// Forgets what stands on a line of which `other` tells something: it may come of that.
    pub fn forgive_lines_of(&mut self, other: &Self, text: &str) {
        let lines = Lines::of(text);
        let line = |p: &Problem| lines.line(p.span.start);
        let told: BTreeSet<usize> = other.problems.iter().map(line).collect();
        self.problems.retain(|p| !told.contains(&line(p)));
    }

    /// How many problems there are.
    pub fn len(&self) -> usize {
        self.problems.len()
    }

    /// Something that is probably not meant.
    pub fn warning(
        &mut self,
        span: Span,
        key: impl Into<String>,
        message: impl Into<String>,
    ) -> &mut Problem {
        self.push(span, Severity::Warning, key.into(), message.into())
    }

    /// Something that readers of the results should know.
    pub fn note(
        &mut self,
        span: Span,
        key: impl Into<String>,
        message: impl Into<String>,
    ) -> &mut Problem {
        self.push(span, Severity::Note, key.into(), message.into())
    }

    /// Takes the notes out, each message once.
    pub fn take_notes(&mut self) -> Self {
        let mut told = BTreeSet::new();
        let mut notes = self.take(Severity::Note);
        notes.retain(|note| told.insert(note.message.clone()));
        Self { problems: notes }
    }

    /// Takes the problems of one severity out.
    pub fn take(&mut self, severity: Severity) -> Vec<Problem> {
        self.problems.extract_if(.., |p| p.severity == severity).collect()
    }

    /// Adds a problem of some combinations of a sweep, with their place unless they are all.
    pub fn add_at(&mut self, place: Option<&str>, mut problem: Problem) {
        problem.message = cut(at_place(problem.message, place));
        self.problems.push(problem);
    }

    fn push(
        &mut self,
        span: Span,
        severity: Severity,
        key: String,
        message: String,
    ) -> &mut Problem {
        let at = self.problems.len();
        let (key, message) = (cut(key), cut(message));
        self.problems.push(Problem { span, severity, key, message, help: None, missing: false });
        &mut self.problems[at]
    }

    /// Finds what a name was probably meant to be; nothing once there are more problems than
    /// anybody reads.
    pub fn closest<'c>(
        &self,
        wrong: &str,
        candidates: impl IntoIterator<Item = &'c str>,
    ) -> Option<&'c str> {
        (self.problems.len() <= MOST_SUGGESTED).then(|| closest(wrong, candidates)).flatten()
    }

    /// Whether anything stops the run.
    pub fn has_errors(&self) -> bool {
        self.problems.iter().any(|p| p.severity == Severity::Error)
    }

    /// Takes over what another one collected; the same problem of another cell is told once.
    pub fn merge(&mut self, other: Self) {
        if other.problems.is_empty() {
            return;
        }
        let mut told: BTreeSet<&Problem> = self.problems.iter().collect();
        let new: Vec<bool> = other.problems.iter().map(|p| told.insert(p)).collect();
        let new = other.problems.into_iter().zip(new).filter_map(|(p, new)| new.then_some(p));
        self.problems.extend(new);
    }

    /// With lines and columns, in the order of the sources: the first ones, and how many more there are.
    pub fn finish(mut self, sources: &[Source]) -> Diagnostics {
        self.problems.sort_by_key(|p| p.span);
        let is_error = |p: &Problem| p.severity == Severity::Error;
        let errors = self.problems.iter().filter(|p| is_error(p)).count();
        let all = [errors, self.problems.len() - errors];
        let shown = [errors.min(MOST_SHOWN), all[1].min(MOST_SHOWN.saturating_sub(errors))];
        let mut left = shown;
        self.problems.retain(|p| {
            let left = &mut left[usize::from(!is_error(p))];
            let keeps = *left > 0;
            *left = left.saturating_sub(1);
            keeps
        });
        let mut places = Places { sources, lines: None };
        let list = self.problems.into_iter().map(|p| places.place(p)).collect();
        Diagnostics { list, more: [all[0] - shown[0], all[1] - shown[1]], sources: sources.into() }
    }
}

/// Finds lines and columns; looks through each source once if asked for one after the other.
struct Places<'s> {
    sources: &'s [Source],
    lines: Option<(usize, Lines)>,
}

impl Places<'_> {
    fn place(&mut self, problem: Problem) -> Diagnostic {
        let Problem { span, severity, key, message, help, .. } = problem;
        let Some(source) = self.sources.get(span.source) else {
            let file = String::new();
            return Diagnostic { file, line: 1, column: 1, key, message, help, severity, span };
        };
        let span = span.within(&source.text);
        let lines = match &mut self.lines {
            Some((of, lines)) if *of == span.source => lines,
            lines => &lines.insert((span.source, Lines::of(&source.text))).1,
        };
        let line = lines.line(span.start);
        let column = source.text[lines.start(line)..span.start].chars().count() + 1;
        Diagnostic {
            file: source.name.clone(),
            line: line + 1,
            column,
            key,
            message,
            help,
            severity,
            span,
        }
    }
}

/// The characters that a quoted line has about, what is left of them for what is marked.
const MOST_QUOTED: usize = 80;
const MOST_MARKED: usize = 50;

/// The line of a span within it, and where it begins; of a long line only what is near.
fn around(text: &str, span: Span) -> (usize, &str) {
    /// No terminal shows more.
    const NEAR: usize = 400;
    let mut start = text[..span.start].rfind('\n').map_or(0, |i| i + 1);
    if span.start - start > NEAR {
        start = boundary(text, span.start - NEAR / 2);
    }
    let mut end = text[span.start..].find('\n').map_or(text.len(), |i| span.start + i);
    if end - span.start > NEAR {
        end = boundary(text, span.start + NEAR / 2);
    }
    (start, &text[start..end])
}

impl Span {
    /// The span cut to what there is, on character boundaries and to its first line: a caret under a whole table
    /// says less than one under its head.
    fn within(self, text: &str) -> Self {
        let start = boundary(text, self.start);
        let end = boundary(text, self.end).max(start);
        let end = text[start..end].find('\n').map_or(end, |i| start + i);
        Self { source: self.source, start, end }
    }
}
