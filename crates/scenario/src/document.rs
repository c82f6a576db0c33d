//! Entry point of the crate: a scenario file with command-line overrides, and the outline of its
//! runs, which builds cells on demand: those of a large sweep need not all be in memory.

use std::collections::{BTreeMap, BTreeSet};

use cwnd_apps::WorkloadParams;
use cwnd_aqm::QueueParams;
use cwnd_cc::ControllerParams;
use cwnd_quantity::Duration;
use cwnd_schema::file::{
    Contents, Context, DESCRIPTION, Diagnostics, Files, INSTALLED, IdleKey, Item, Node, Problem,
    Severity, Sink, Source, Span, Table, locate, parse_document, parse_value,
};
use cwnd_schema::{ParamsChoice as _, Value};

use crate::data_files::inlined;
use crate::given_classes::{self, GivenClass};
use crate::key_path::{self, KeyPath};
use crate::lower;
use crate::model::{Axis, Cell, Plan, Refusal, Scenario};
use crate::resolved::resolved;
use crate::sweep::Sweep;

/// Size limit of a scenario file in bytes, which the reader of the file enforces: it bounds the
/// memory that a file can take. A resolved file with its traces inlined may be larger.
pub const MAX_SCENARIO_BYTES: u64 = 16 << 20;
/// Size limit in bytes of a file that a scenario names: a trace of some ten million packets.
pub const MAX_TRACE_BYTES: u64 = 64 << 20;
/// Size limit of one override in bytes.
const MAX_OVERRIDE_BYTES: usize = 1 << 20;

/// A scenario file that is well-formed TOML, with the command-line overrides applied.
pub struct Document<'f> {
    pub(crate) sources: Vec<Source>,
    pub(crate) root: Table,
    /// Problems found by the TOML parser, such as a number that is too large.
    problems: Sink,
    pub(crate) files: Files<'f>,
    classes: Vec<GivenClass>,
}

impl<'f> Document<'f> {
    /// Parses the text of a scenario file. `source_name` is its path: diagnostics show it, and its
    /// stem is the scenario's default name.
    ///
    /// # Errors
    /// If the text is not TOML; the diagnostics then include the other problems that were found,
    /// except absent keys and problems on lines with a syntax error. Problems of a scenario that is
    /// valid TOML are reported by [`Document::plan`], after overrides.
    pub fn parse(source_name: &str, text: &str, files: Files<'f>) -> Result<Self, Diagnostics> {
        let sources = vec![Source { name: source_name.to_owned(), text: text.to_owned() }];
        let (mut malformed, mut problems) = (Sink::default(), Sink::default());
        let root = parse_document(0, text, &mut malformed, &mut problems);
        let document = Self { sources, root, problems, files, classes: Vec::new() };
        if !malformed.has_errors() {
            return Ok(document);
        }
        // The lines that parse are still checked, so that all errors are reported together.
        let (mut rest, _) = document.check();
        rest.take_notes();
        rest.drop_missing();
        rest.drop_on_lines_of(&malformed, text);
        malformed.merge(rest);
        Err(malformed.finish(&document.sources))
    }

    /// Applies overrides, each written `path=value` as in `flow.main.rtt=200 ms`. A value that is
    /// not TOML is taken as a bare string, unless it begins with a quote, `[` or `{`.
    ///
    /// # Errors
    /// If an override is not of this form or longer than 1 MiB, or its path leads into a plain
    /// value, or names a section, group, link or axis that does not exist. Unknown keys below are
    /// errors of [`Document::plan`].
    pub fn with_overrides<S: AsRef<str>>(mut self, overrides: &[S]) -> Result<Self, Diagnostics> {
        let mut sink = Sink::default();
        for text in overrides {
            self.set("--set", text.as_ref(), &mut sink);
        }
        if sink.has_errors() { Err(sink.finish(&self.sources)) } else { Ok(self) }
    }

    /// Sets one key from `path=value`; diagnostics name the command-line option `option`.
    fn set(&mut self, option: &str, text: &str, sink: &mut Sink) -> Option<()> {
        let source = self.sources.len();
        if text.len() > MAX_OVERRIDE_BYTES {
            self.sources.push(Source { name: option.to_owned(), text: String::new() });
            let path = text.split('=').next().unwrap_or_default();
            let message = format!(
                "what is set has {} bytes: at most {MAX_OVERRIDE_BYTES} can be given",
                text.len()
            );
            let problem = sink.error(Span { source, ..Span::default() }, path, message);
            problem.help("write it into the scenario file");
            return None;
        }
        self.sources.push(Source { name: option.to_owned(), text: text.to_owned() });
        let whole = Span { source, start: 0, end: text.len() };
        let Some((path, value)) = text.split_once('=') else {
            let message = format!("`{text}` sets nothing");
            sink.error(whole, "", message).help("write it like `flow.main.rtt=200 ms`");
            return None;
        };
        let offset = text.len() - value.trim_start().len();
        let value = value.trim();
        let span = Span { start: offset, end: offset + value.len(), ..whole };
        let path = KeyPath::parse(path.trim_end(), whole, sink)?;
        if value.is_empty() {
            sink.error(span, &path.text, format!("`{}` is given no value", path.text));
            return None;
        }
        let mut problems = Sink::default();
        let node = match parse_value(source, offset, value, &mut problems) {
            Some(node) if !problems.has_errors() => node,
            // A value that opens like TOML was meant as TOML; anything else is a bare string.
            _ if value.starts_with(['{', '[', '"', '\'']) => {
                sink.merge(problems);
                return None;
            }
            _ => Node { item: Item::Value(Value::Text(value.to_owned())), span },
        };
        key_path::set(&mut self.root, &path, node, sink).then_some(())
    }

    /// Overrides `run.seed`, as `--seed` does.
    ///
    /// # Errors
    /// If the seed is above 2^63 − 1, the largest number that TOML can hold.
    pub fn with_seed(mut self, seed: u64) -> Result<Self, Diagnostics> {
        let mut sink = Sink::default();
        self.set("--seed", &format!("run.seed={seed}"), &mut sink);
        if seed > i64::MAX as u64 {
            let span = Span { source: self.sources.len() - 1, start: 0, end: usize::MAX };
            let message =
                format!("the seed {seed} is too large: TOML holds numbers up to 2^63 − 1");
            sink.error(span, "run.seed", message);
        }
        if sink.has_errors() { Err(sink.finish(&self.sources)) } else { Ok(self) }
    }

    /// Adds classes, whose names are then kinds.
    #[must_use]
    pub fn with_classes(self, classes: Vec<GivenClass>) -> Self {
        Self { classes, ..self }
    }

    /// Returns the plan with all its cells built.
    ///
    /// # Errors
    /// The problems of the scenario in any of its cells, if one of them is an error.
    pub fn plan(&self) -> Result<Plan, Diagnostics> {
        let outline = self.outline()?;
        Ok(Plan {
            cells: outline.cells(),
            axes: outline.axes.into_iter().map(|axis| axis.name).collect(),
            name: outline.name,
            description: outline.description,
            warnings: outline.warnings,
        })
    }

    /// Returns the plan as an [`Outline`], which builds each cell on demand.
    ///
    /// # Errors
    /// As [`Document::plan`].
    pub fn outline(&self) -> Result<Outline, Diagnostics> {
        let (mut problems, checked) = self.check();
        let notes = problems.take_notes().finish(&self.sources);
        let diagnostics = problems.finish(&self.sources);
        match checked {
            Some((name, description, blueprint)) if !diagnostics.has_errors() => Ok(Outline {
                name,
                description,
                axes: blueprint.sweep.outline(),
                may_have_code: !self.classes.is_empty()
                    || blueprint.contents.keys().any(|(name, _)| name.starts_with(INSTALLED))
                    || self.root.entries.iter().any(|entry| names_code(&entry.node.item)),
                warnings: diagnostics,
                notes,
                blueprint,
            }),
            _ => Err(diagnostics),
        }
    }

    /// Checks the combinations of the sweep, until more than `MAX_PROBLEMS` problems are found.
    /// Returns the problems and, unless the sweep is invalid, the scenario's name, description and
    /// [`Blueprint`].
    fn check(&self) -> (Sink, Option<(String, String, Blueprint)>) {
        let mut cx = Context::new(self.files, inlined);
        let mut root = self.root.clone();
        let swept = root.entries.iter().position(|e| e.key == "sweep");
        let swept = swept.map(|i| root.entries.remove(i));
        let sweep = match &swept {
            None => Some(Sweep::none()),
            Some(entry) => Sweep::read(entry, &mut cx),
        };
        let mut problems = self.problems.clone();
        problems.merge(core::mem::take(&mut cx.sink));
        let stem = self.stem();
        let Some(sweep) = sweep else {
            // The rest of the file is still checked; a missing key may be one that an axis sets.
            lower::lower(&root, &stem, &mut cx);
            cx.sink.drop_missing();
            problems.merge(cx.sink);
            return (problems, None);
        };
        sweep.report_replaced(&root, &mut problems);
        let mut no_effect: BTreeMap<IdleKey, BTreeSet<usize>> = BTreeMap::new();
        let mut warned: BTreeMap<Problem, BTreeSet<usize>> = BTreeMap::new();
        let mut points = Vec::new();
        let mut title = None;
        for combination in 0..sweep.combinations() {
            let mut root = root.clone();
            let applied = sweep.apply(combination, &mut root, &mut cx.sink);
            given_classes::replace(&mut root, &self.classes);
            let read = lower::lower(&root, &stem, &mut cx);
            if !applied {
                // The missing key may be the one that could not be set.
                cx.sink.drop_missing();
            }
            for key in core::mem::take(&mut cx.idle) {
                no_effect.entry(key).or_default().insert(combination);
            }
            let good = applied && !cx.sink.has_errors();
            for warning in cx.sink.take(Severity::Warning) {
                warned.entry(warning).or_default().insert(combination);
            }
            problems.merge(core::mem::take(&mut cx.sink));
            if let Some(lower::Lowered { scenario, .. }) = read.filter(|_| good) {
                check_seeds(scenario.run.seed, sweep.repeat, &mut problems);
                points.push(Point { duration: scenario.run.duration });
                title.get_or_insert((scenario.name, scenario.description));
            }
            if problems.count() > MAX_PROBLEMS {
                break;
            }
        }
        for (warning, combinations) in warned {
            problems.add_at(sweep.place(&combinations).as_deref(), warning);
        }
        for (key, combinations) in no_effect {
            let of_axis = sweep.has_value_at(key.span);
            let of_file = !key.by_preset && !of_axis;
            let is_error =
                cx.refuses_idle() && of_file && combinations.len() == sweep.combinations();
            // The value of an axis already names the place.
            let place = if of_axis { None } else { sweep.place(&combinations) };
            key.report(is_error, place.as_deref(), &mut problems);
        }
        let (name, description) = title.unwrap_or_default();
        let classes = self.classes.clone();
        let blueprint = Blueprint { root, stem, sweep, classes, contents: cx.contents, points };
        (problems, Some((name, description, blueprint)))
    }

    /// Returns the cells of [`Document::plan`].
    ///
    /// # Errors
    /// As [`Document::plan`].
    pub fn cells(&self) -> Result<Vec<Cell>, Diagnostics> {
        self.plan().map(|plan| plan.cells)
    }

    /// Returns the file name without folder and `.toml`, the default name of the scenario;
    /// `scenario` if nothing is left.
    fn stem(&self) -> String {
        let path = self.sources[0].name.as_str();
        let file = path.rsplit(['/', '\\']).next().unwrap_or(path);
        let stem = file.strip_suffix(".toml").unwrap_or(file);
        if stem.is_empty() { "scenario".to_owned() } else { stem.to_owned() }
    }
}

/// Reports a sweep whose last repeat has a seed above 2^63 − 1, TOML's largest integer.
fn check_seeds(first: u64, repeat: u64, problems: &mut Sink) {
    let most = i64::MAX as u64;
    if first.saturating_add(repeat - 1) > most {
        let message = format!("the seed of repeat {} is beyond 2^63 − 1", most + 1 - first);
        problems.error(Span::default(), "run.seed", message);
    }
}

/// Number of problems beyond which no further combinations are checked.
const MAX_PROBLEMS: usize = 100;

/// A checked document: its axes, diagnostics and number of runs; cells are built on demand.
#[derive(Debug)]
pub struct Outline {
    /// Short name of the checked scenario.
    pub name: String,
    /// Question that the scenario answers.
    pub description: String,
    /// The sweep's axes, in order.
    pub axes: Vec<Axis>,
    /// `false` if no cell has a part whose code is the user's, so that none need be built to know.
    pub may_have_code: bool,
    /// Warnings: settings that are valid but probably not intended.
    pub warnings: Diagnostics,
    /// Notes on defaults and departures that readers of the results should know.
    pub notes: Diagnostics,
    pub(crate) blueprint: Blueprint,
}

/// `true` if a text is the name of a kind whose code is the user's.
fn names_code(item: &Item) -> bool {
    match item {
        Item::Value(Value::Text(text)) => {
            let [controllers, queues, workloads] =
                [ControllerParams::LOADED, QueueParams::LOADED, WorkloadParams::LOADED];
            [controllers, queues, workloads].concat().iter().any(|kind| kind.is(text))
        }
        Item::Array(list) => list.iter().any(|node| names_code(&node.item)),
        Item::Table(table) => table
            .entries
            .iter()
            .any(|entry| entry.key == DESCRIPTION || names_code(&entry.node.item)),
        Item::Value(_) | Item::Datetime | Item::Broken => false,
    }
}

/// Input for building cells: a document that was found valid in each combination of its sweep.
#[derive(Debug)]
pub(crate) struct Blueprint {
    /// The file without `[sweep]`.
    pub root: Table,
    /// Default name of the scenario: the stem of the file's name.
    pub stem: String,
    pub sweep: Sweep,
    pub classes: Vec<GivenClass>,
    /// Contents of the files that it names, as read when they were checked.
    pub contents: Contents,
    pub points: Vec<Point>,
}

/// Facts of a combination that are kept, so that it need not be read again for them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Point {
    pub duration: Duration,
}

impl Outline {
    /// Number of runs: one for each combination of the axes' values and each seed.
    #[must_use]
    pub fn runs(&self) -> usize {
        self.blueprint.points.len() * self.repeat()
    }

    /// Number of runs of each combination; their indices are consecutive.
    #[must_use]
    pub fn repeat(&self) -> usize {
        usize::try_from(self.blueprint.sweep.repeat).unwrap_or(usize::MAX)
    }

    /// Simulated time of run `index`; zero if there is no such run.
    #[must_use]
    pub fn duration(&self, index: usize) -> Duration {
        self.blueprint.points.get(index / self.repeat()).map_or(Duration(0), |p| p.duration)
    }

    /// Builds the cell of run `index`; `None` if there is no such run.
    #[must_use]
    pub fn cell(&self, index: usize) -> Option<Cell> {
        let (combination, seed) = (index / self.repeat(), index % self.repeat());
        let read = self.blueprint.read(combination)?;
        Some(self.blueprint.repeat(&read, combination, seed, index))
    }

    /// Returns the requests that a world (simulator or Linux) refuses in any combination, as errors
    /// at the keys that make them, without [`Self::warnings`]. `refuse` lists the refusals of one
    /// scenario.
    #[must_use]
    pub fn refused(&self, refuse: impl Fn(&Scenario) -> Vec<Refusal>) -> Diagnostics {
        let mut problems = Sink::default();
        let mut known = BTreeSet::new();
        for combination in 0..self.blueprint.points.len() {
            let Some(read) = self.blueprint.read(combination) else { break };
            let refusals = refuse(&read.scenario);
            if refusals.is_empty() {
                continue;
            }
            let mut sink = Sink::default();
            let mut root = self.blueprint.root.clone();
            self.blueprint.sweep.apply(combination, &mut root, &mut sink);
            for Refusal { key, message, help } in refusals {
                // Later combinations often repeat a refusal with another remedy, as the help may
                // name axis values; only the first is reported.
                let span = locate(&root, &key);
                if !known.insert((span, key.clone(), message.clone())) {
                    continue;
                }
                let problem = sink.error(span, key.join("."), message);
                if let Some(help) = help {
                    problem.help(help);
                }
            }
            problems.merge(sink);
        }
        self.warnings.beside(problems)
    }

    /// Builds all cells.
    #[must_use]
    pub fn cells(&self) -> Vec<Cell> {
        let mut cells = Vec::with_capacity(self.runs());
        for combination in 0..self.blueprint.points.len() {
            let Some(read) = self.blueprint.read(combination) else { break };
            for seed in 0..self.repeat() {
                cells.push(self.blueprint.repeat(&read, combination, seed, cells.len()));
            }
        }
        cells
    }
}

impl Blueprint {
    /// Reads a combination again; the check has already found it valid.
    fn read(&self, combination: usize) -> Option<lower::Lowered> {
        if combination >= self.points.len() {
            return None;
        }
        let files = |name: &str| Err(format!("{name} was not read before"));
        let mut cx = Context::new(&files, inlined);
        cx.contents = self.contents.clone();
        let mut root = self.root.clone();
        self.sweep.apply(combination, &mut root, &mut cx.sink);
        given_classes::replace(&mut root, &self.classes);
        lower::lower(&root, &self.stem, &mut cx)
    }

    fn repeat(&self, read: &lower::Lowered, combination: usize, seed: usize, index: usize) -> Cell {
        let mut scenario = read.scenario.clone();
        scenario.run.seed += seed as u64;
        let (resolved_toml, id) = resolved(&scenario, read.dumbbell);
        Cell {
            index,
            axes: self.sweep.labels(combination),
            seed: scenario.run.seed,
            id,
            scenario,
            resolved_toml,
        }
    }
}
