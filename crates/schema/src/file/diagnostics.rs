//! Errors, warnings and notes about a file, with position, message and remedy.

use core::fmt;
use std::collections::BTreeSet;
use std::sync::Arc;

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};

use crate::file::suggest::closest;

/// Severity of a diagnostic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Prevents the use of the file.
    Error,
    /// Permits its use, but the file is probably not what was intended.
    Warning,
    /// Permits its use; readers of the results should know it.
    Note,
}

impl Severity {
    /// Returns `"error"`, `"warning"` or `"note"`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }
}

/// One problem of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// File or command-line option with the problem; empty if it belongs to no source.
    pub file: String,
    /// Line, counted from 1.
    pub line: usize,
    /// Column in characters, counted from 1.
    pub column: usize,
    /// Path of the key, such as `flow.main.controller.beta_ecn`; empty if there is none.
    pub key: String,
    /// Description of the problem.
    pub message: String,
    /// Remedy, unless the message names it.
    pub help: Option<String>,
    /// Severity.
    pub severity: Severity,
    span: Span,
}

/// Problems in the order of the file: at most [`MAX_SHOWN`], among which errors have priority, and
/// the number of the others.
#[derive(Clone, Debug, Default)]
pub struct Diagnostics {
    list: Vec<Diagnostic>,
    /// Numbers of errors, and of warnings and notes, that are not in the list.
    more: [usize; 2],
    sources: Arc<[Source]>,
}

/// Limit on the problems that are shown: errors have priority over warnings and notes. The others
/// are counted.
pub const MAX_SHOWN: usize = 50;
/// Number of problems above which no more suggestions are searched, as each search takes time.
const MAX_SUGGESTED: usize = 1000;

impl Diagnostics {
    /// Iterates over the problems that are shown, at most [`MAX_SHOWN`].
    pub fn iter(&self) -> core::slice::Iter<'_, Diagnostic> {
        self.list.iter()
    }

    /// Number of problems, including those that are only counted.
    #[must_use]
    pub fn total(&self) -> usize {
        self.list.len() + self.more.iter().sum::<usize>()
    }

    /// `true` if there are no problems.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// `true` if a shown problem is an error.
    #[must_use]
    pub fn has_errors(&self) -> bool {
        self.list.iter().any(|d| d.severity == Severity::Error)
    }

    /// Returns the diagnostics of another sink, about the same sources.
    #[must_use]
    pub fn beside(&self, other: Sink) -> Self {
        other.finish(&self.sources)
    }

    /// Formats the problems that are shown, with source line and caret if they have a source, and a
    /// line that counts the others. `color` adds ANSI escapes.
    #[must_use]
    pub fn render(&self, color: bool) -> String {
        let renderer = if color { Renderer::styled() } else { Renderer::plain() };
        let renderer = renderer.term_width(MAX_QUOTED);
        let mut texts: Vec<String> =
            self.list.iter().map(|d| self.render_one(&renderer, d)).collect();
        if let Some(rest) = self.rest() {
            texts.push(renderer.render(&[Group::with_title(Level::NOTE.primary_title(rest))]));
        }
        texts.join("\n\n")
    }

    /// Returns a sentence that counts the problems that are not shown, if there are any.
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
                // Only the line of the problem is passed on: the renderer would search the whole
                // text each time.
                let (start, near) = line_near(&source.text, d.span);
                let from = d.span.start - start;
                // The renderer trims long lines, but never the marked part, so the mark is bounded
                // here.
                let to = near.len().min(d.span.end - start).min(from + MOST_MARKED);
                let to = boundary(near, to);
                let snippet = Snippet::source(near)
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

/// A text that was parsed: the file, or an argument of the command line.
#[derive(Clone, Debug)]
pub struct Source {
    /// Name in messages.
    pub name: String,
    /// The whole text.
    pub text: String,
}

/// A range of bytes in a source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    /// Index of the source.
    pub source: usize,
    /// Offset of the first byte.
    pub start: usize,
    /// Offset past the last byte.
    pub end: usize,
}

/// A diagnostic whose position is still a span, not yet line and column.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    span: Span,
    severity: Severity,
    key: String,
    message: String,
    help: Option<String>,
    /// `true` if the problem is an absent key, which an unreadable part of the file may have.
    missing: bool,
}

/// Appends the points of a sweep at which a message holds; `None` means at all points.
pub fn at_place(message: String, place: Option<&str>) -> String {
    match place {
        Some(place) => format!("{message} (at {place})"),
        None => message,
    }
}

impl Problem {
    /// Sets the remedy.
    pub fn help(&mut self, help: impl Into<String>) {
        self.help = Some(cut(help.into()));
    }
}

/// Collector of problems, so that all are reported together.
#[derive(Clone, Debug, Default)]
pub struct Sink {
    problems: Vec<Problem>,
}

impl Sink {
    /// Adds an error.
    pub fn error(
        &mut self,
        span: Span,
        key: impl Into<String>,
        message: impl Into<String>,
    ) -> &mut Problem {
        self.push(span, Severity::Error, key.into(), message.into())
    }

    /// Adds an error about an absent required key.
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

    /// Drops errors about absent keys, which may be in a part of the file that can't be read.
    pub fn drop_missing(&mut self) {
        self.problems.retain(|p| !p.missing);
    }

    /// Drops problems on lines that have a problem in `other`, as that may be their cause.
    pub fn drop_on_lines_of(&mut self, other: &Self, text: &str) {
        let lines = Lines::of(text);
        let line = |p: &Problem| lines.line(p.span.start);
        let told: BTreeSet<usize> = other.problems.iter().map(line).collect();
        self.problems.retain(|p| !told.contains(&line(p)));
    }

    /// Number of problems.
    #[must_use]
    pub fn count(&self) -> usize {
        self.problems.len()
    }

    /// Adds a warning.
    pub fn warning(
        &mut self,
        span: Span,
        key: impl Into<String>,
        message: impl Into<String>,
    ) -> &mut Problem {
        self.push(span, Severity::Warning, key.into(), message.into())
    }

    /// Adds a note.
    pub fn note(
        &mut self,
        span: Span,
        key: impl Into<String>,
        message: impl Into<String>,
    ) -> &mut Problem {
        self.push(span, Severity::Note, key.into(), message.into())
    }

    /// Removes and returns the notes, each message once.
    pub fn take_notes(&mut self) -> Self {
        let mut told = BTreeSet::new();
        let mut notes = self.take(Severity::Note);
        notes.retain(|note| told.insert(note.message.clone()));
        Self { problems: notes }
    }

    /// Removes and returns the problems of one severity.
    pub fn take(&mut self, severity: Severity) -> Vec<Problem> {
        self.problems.extract_if(.., |p| p.severity == severity).collect()
    }

    /// Adds a problem that holds at some points of a sweep; `None` means at all points.
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

    /// Returns the candidate that a name was probably meant to be; `None` if none is near, or once
    /// there are more than `MAX_SUGGESTED` problems.
    pub fn closest<'c>(
        &self,
        wrong: &str,
        candidates: impl IntoIterator<Item = &'c str>,
    ) -> Option<&'c str> {
        (self.problems.len() <= MAX_SUGGESTED).then(|| closest(wrong, candidates)).flatten()
    }

    /// `true` if an error was collected.
    #[must_use]
    pub fn has_errors(&self) -> bool {
        self.problems.iter().any(|p| p.severity == Severity::Error)
    }

    /// Adds the problems of another sink that are not in this one, each once.
    pub fn merge(&mut self, other: Self) {
        if other.problems.is_empty() {
            return;
        }
        let mut told: BTreeSet<&Problem> = self.problems.iter().collect();
        let new: Vec<bool> = other.problems.iter().map(|p| told.insert(p)).collect();
        let new = other.problems.into_iter().zip(new).filter_map(|(p, new)| new.then_some(p));
        self.problems.extend(new);
    }

    /// Converts the problems to diagnostics with lines and columns, in the order of the sources;
    /// those beyond [`MAX_SHOWN`] are only counted.
    #[must_use]
    pub fn finish(mut self, sources: &[Source]) -> Diagnostics {
        self.problems.sort_by_key(|p| p.span);
        let is_error = |p: &Problem| p.severity == Severity::Error;
        let errors = self.problems.iter().filter(|p| is_error(p)).count();
        let all = [errors, self.problems.len() - errors];
        let shown = [errors.min(MAX_SHOWN), all[1].min(MAX_SHOWN.saturating_sub(errors))];
        let mut left = shown;
        self.problems.retain(|p| {
            let left = &mut left[usize::from(!is_error(p))];
            let keeps = *left > 0;
            *left = left.saturating_sub(1);
            keeps
        });
        let mut places = LineIndexer { sources, lines: None };
        let list = self.problems.into_iter().map(|p| places.place(p)).collect();
        Diagnostics { list, more: [all[0] - shown[0], all[1] - shown[1]], sources: sources.into() }
    }
}

/// Converter from spans to lines and columns. It indexes a source once, as long as problems come in
/// the order of the sources.
struct LineIndexer<'s> {
    sources: &'s [Source],
    lines: Option<(usize, Lines)>,
}

impl LineIndexer<'_> {
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

/// Width at which quoted lines are cut, in characters.
const MAX_QUOTED: usize = 80;
/// Longest mark in a quoted line, in bytes.
const MOST_MARKED: usize = 50;

/// Returns the offset in the text of a span's line, and the line; only the part near the start of
/// the span if the line is long.
fn line_near(text: &str, span: Span) -> (usize, &str) {
    /// Most bytes on either side of the span's start; of more, half as many are kept.
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
    /// Clips the span to the text, to character boundaries, and to its first line: a caret under a
    /// whole table says less than one under its head.
    fn within(self, text: &str) -> Self {
        let start = boundary(text, self.start);
        let end = boundary(text, self.end).max(start);
        let end = text[start..end].find('\n').map_or(end, |i| start + i);
        Self { source: self.source, start, end }
    }
}

/// Byte offset of the start of each line.
pub struct Lines(Vec<usize>);

impl Lines {
    /// Indexes the lines of a text.
    pub fn of(text: &str) -> Self {
        let after = text.bytes().enumerate().filter(|&(_, b)| b == b'\n').map(|(i, _)| i + 1);
        Self(core::iter::once(0).chain(after).collect())
    }

    /// Returns the line that contains a byte, counted from 0.
    pub fn line(&self, at: usize) -> usize {
        self.0.partition_point(|&start| start <= at) - 1
    }

    /// Returns the byte offset at which a line starts.
    pub fn start(&self, line: usize) -> usize {
        self.0[line]
    }
}

/// Removes the middle of a message longer than [`MAX_MESSAGE_BYTES`], as a message may quote a
/// whole file.
pub fn cut(text: String) -> String {
    if text.len() <= MAX_MESSAGE_BYTES {
        return text;
    }
    let head = boundary(&text, MAX_MESSAGE_BYTES * 3 / 4);
    let tail = boundary(&text, text.len() - MAX_MESSAGE_BYTES / 8);
    format!("{} … {}", &text[..head], &text[tail..])
}

/// Returns the last character boundary at or before `at`.
pub fn boundary(text: &str, mut at: usize) -> usize {
    at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// Length in bytes up to which messages are kept whole.
const MAX_MESSAGE_BYTES: usize = 1000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_is_in_the_line_that_begins_before_it() {
        let lines = Lines::of("ab\n\nc\n");
        let found: Vec<usize> = (0..=7).map(|at| lines.line(at)).collect();
        assert_eq!(found, [0, 0, 0, 1, 2, 2, 3, 3]);
        assert_eq!((lines.start(0), lines.start(2)), (0, 4));
    }

    #[test]
    fn a_long_text_keeps_its_ends() {
        let text = format!("found `{}`, want a rate", "é".repeat(10_000));
        let cut = cut(text);
        assert!(cut.len() < 1000 && cut.starts_with("found `é") && cut.ends_with("want a rate"));
        assert_eq!(super::cut("short".to_owned()), "short");
    }
}
