//! What is wrong with a scenario: where, why, and how to mend it.

use core::fmt;
use std::sync::Arc;

use annotate_snippets::{AnnotationKind, Level, Origin, Renderer, Snippet};

/// How bad a diagnostic is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The scenario can't be run.
    Error,
    /// It can, and probably says something else than was meant.
    Warning,
}

impl Severity {
    /// `"error"` or `"warning"`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
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

/// All that is wrong with a scenario, in the order of the file.
#[derive(Clone, Debug, Default)]
pub struct Diagnostics {
    list: Vec<Diagnostic>,
    sources: Arc<[Source]>,
}

impl Diagnostics {
    /// One by one.
    pub fn iter(&self) -> core::slice::Iter<'_, Diagnostic> {
        self.list.iter()
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.list.len()
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

    /// All of them as text, each with its source line and a caret; `color` adds ANSI escapes.
    #[must_use]
    pub fn render(&self, color: bool) -> String {
        let renderer = if color { Renderer::styled() } else { Renderer::plain() };
        let texts: Vec<String> = self.list.iter().map(|d| self.render_one(&renderer, d)).collect();
        texts.join("\n\n")
    }

    fn render_one(&self, renderer: &Renderer, d: &Diagnostic) -> String {
        let level = match d.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
        };
        let title = level.primary_title(d.message.as_str());
        let mut group = match self.sources.get(d.span.source) {
            Some(source) if !source.text.is_empty() => title.element(
                Snippet::source(source.text.as_str())
                    .path(source.name.as_str())
                    .annotation(AnnotationKind::Primary.span(d.span.start..d.span.end)),
            ),
            _ => title.element(Origin::path(d.file.as_str())),
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    span: Span,
    severity: Severity,
    key: String,
    message: String,
    help: Option<String>,
    /// Whether something is absent that may only be waiting for a part of the file that can't be read.
    missing: bool,
}

impl Problem {
    /// Adds how to mend it.
    pub fn help(&mut self, help: impl Into<String>) {
        self.help = Some(help.into());
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
        let line = |p: &Problem| {
            let bytes = text.as_bytes();
            bytes[..p.span.start.min(bytes.len())].iter().filter(|&&b| b == b'\n').count()
        };
        self.problems.retain(|p| other.problems.iter().all(|o| line(o) != line(p)));
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

    fn push(
        &mut self,
        span: Span,
        severity: Severity,
        key: String,
        message: String,
    ) -> &mut Problem {
        let at = self.problems.len();
        self.problems.push(Problem { span, severity, key, message, help: None, missing: false });
        &mut self.problems[at]
    }

    /// Whether anything stops the run.
    pub fn has_errors(&self) -> bool {
        self.problems.iter().any(|p| p.severity == Severity::Error)
    }

    /// Takes over what another one collected; the same problem of another cell is told once.
    pub fn merge(&mut self, other: Self) {
        for problem in other.problems {
            if !self.problems.contains(&problem) {
                self.problems.push(problem);
            }
        }
    }

    /// With lines and columns, in the order of the sources.
    pub fn finish(mut self, sources: &[Source]) -> Diagnostics {
        self.problems.sort_by_key(|p| p.span);
        let list = self.problems.into_iter().map(|p| p.place(sources)).collect();
        Diagnostics { list, sources: sources.into() }
    }
}

impl Problem {
    fn place(self, sources: &[Source]) -> Diagnostic {
        let empty = Source { name: String::new(), text: String::new() };
        let source = sources.get(self.span.source).unwrap_or(&empty);
        let span = self.span.within(&source.text);
        let before = &source.text[..span.start];
        let line_start = before.rfind('\n').map_or(0, |i| i + 1);
        Diagnostic {
            file: source.name.clone(),
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            key: self.key,
            message: self.message,
            help: self.help,
            severity: self.severity,
            span,
        }
    }
}

impl Span {
    /// The span cut to what there is, on character boundaries and to its first line: a caret under a whole table
    /// says less than one under its head.
    fn within(self, text: &str) -> Self {
        let boundary = |mut at: usize| {
            at = at.min(text.len());
            while !text.is_char_boundary(at) {
                at -= 1;
            }
            at
        };
        let start = boundary(self.start);
        let end = boundary(self.end).max(start);
        let end = text[start..end].find('\n').map_or(end, |i| start + i);
        Self { source: self.source, start, end }
    }
}
