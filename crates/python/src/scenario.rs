use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cwnd_cc::{ActionCount, ControllerParams};
use cwnd_quantity::Time;
use cwnd_scenario::{
    AxisValue, Diagnostics, Document, GivenClass, MAX_TRACE_BYTES, NOT_THERE, Outline,
};
use cwnd_schema::description::described;
use cwnd_schema::file::INSTALLED;
use cwnd_schema::{Description, ParamsChoice as _};
use cwnd_sim::{Witness, World};
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::capture::{Capture, OpenCapture};
use crate::code::{self, Failure};
use crate::error::{Cancelled, as_dicts, check_error, reason, scenario_error};
use crate::run::{Control, Result, free, interruptible};
use crate::testbed;
use crate::text::read;

/// A scenario that has been read and is valid.
#[pyclass(frozen, module = "cwnd._core")]
#[derive(Debug)]
pub struct Scenario {
    outline: Outline,
}

/// A sweep axis for Python: name, labels, values in SI base units if they are quantities, and their
/// unit.
type Axis<'a> = (&'a str, &'a [String], Option<&'a [f64]>, Option<&'static str>);

#[pymethods]
impl Scenario {
    #[getter]
    fn name(&self) -> &str {
        &self.outline.name
    }

    #[getter]
    fn description(&self) -> &str {
        &self.outline.description
    }

    #[getter]
    fn axes(&self) -> Vec<Axis<'_>> {
        let axes = self.outline.axes.iter();
        axes.map(|axis| {
            (axis.name.as_str(), axis.labels.as_slice(), axis.values.as_deref(), axis.unit)
        })
        .collect()
    }

    /// `False` if no run has a part whose code is the user's.
    #[getter]
    fn may_have_code(&self) -> bool {
        self.outline.may_have_code
    }

    /// For each axis, labels with the labels over which their gain is counted.
    #[getter]
    fn over<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for axis in self.outline.axes.iter().filter(|axis| !axis.over.is_empty()) {
            let of_axis = PyDict::new(py);
            axis.over.iter().try_for_each(|(label, bases)| of_axis.set_item(label, bases))?;
            dict.set_item(&axis.name, of_axis)?;
        }
        Ok(dict)
    }

    #[getter]
    fn warnings<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        as_dicts(py, &self.outline.warnings)
    }

    /// Number of warnings, including those that `warnings` omits.
    #[getter]
    fn warnings_total(&self) -> usize {
        self.outline.warnings.total()
    }

    /// Defaults and departures that readers of the results should know.
    #[getter]
    fn notes<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        as_dicts(py, &self.outline.notes)
    }

    /// Number of runs.
    #[getter]
    fn runs(&self) -> usize {
        self.outline.runs()
    }

    /// Number of consecutive runs that differ in their seed only.
    #[getter]
    fn repeat(&self) -> usize {
        self.outline.repeat()
    }

    /// Returns the simulated duration of a run, in seconds.
    fn duration_s(&self, index: usize) -> f64 {
        self.outline.duration(index).as_secs_f64()
    }

    /// Raises an error for what Linux cannot provide of the scenario, or for what this machine
    /// lacks. Returns `True` if it uses controllers, timeouts or receivers that have to be loaded
    /// into the kernel.
    fn check_linux(&self, py: Python<'_>) -> PyResult<bool> {
        let refused = testbed::refused(&self.outline);
        if refused.has_errors() {
            return Err(scenario_error(py, refused));
        }
        testbed::lacks()?;
        let points = (0..self.outline.runs()).step_by(self.outline.repeat());
        let mut cells = points.filter_map(|index| self.outline.cell(index));
        Ok(cells.any(|cell| testbed::needs_kernel_helper(&cell.scenario)))
    }

    /// Creates one run. Other Python threads keep running.
    fn cell(&self, py: Python<'_>, index: usize) -> PyResult<Cell> {
        let cell = py.detach(|| self.outline.cell(index)).map(Cell::new);
        cell.ok_or_else(|| PyIndexError::new_err(format!("there is no run {index}")))
    }

    /// All runs, in order.
    #[getter]
    fn cells(&self) -> Vec<Cell> {
        self.outline.cells().into_iter().map(Cell::new).collect()
    }
}

/// Code that a run has loaded, and its first failure.
#[derive(Clone, Debug, Default)]
struct LoadedCode {
    has_python: bool,
    failure: Arc<Failure>,
}

impl LoadedCode {
    /// `true` once the code has failed. Lets other threads use the interpreter if it is in Python.
    fn has_failed(&self) -> bool {
        if self.has_python { self.failure.pause() } else { self.failure.has_failed() }
    }
}

/// One run of a scenario: one point of its sweep with one seed.
#[pyclass(frozen, module = "cwnd._core")]
#[derive(Clone, Debug)]
pub struct Cell {
    index: usize,
    id: String,
    seed: u64,
    axes: Vec<AxisValue>,
    resolved: String,
    scenario: Arc<cwnd_scenario::Scenario>,
}

impl Cell {
    fn new(cell: cwnd_scenario::Cell) -> Self {
        let cwnd_scenario::Cell { index, axes, seed, scenario, resolved_toml: resolved, id } = cell;
        Self { index, id, seed, axes, resolved, scenario: Arc::new(scenario) }
    }

    /// Returns the scenario of this run.
    pub fn scenario(&self) -> &cwnd_scenario::Scenario {
        &self.scenario
    }

    /// Returns the scenario with the makers of its code.
    fn with_code(
        &self,
        classes: Vec<Bound<'_, PyAny>>,
    ) -> PyResult<(Arc<cwnd_scenario::Scenario>, LoadedCode)> {
        let parts = code::parts(&self.scenario).len();
        if classes.len() != parts {
            let message =
                format!("{parts} parts of the scenario need classes, not {}", classes.len());
            return Err(PyValueError::new_err(message));
        }
        let mut code = LoadedCode::default();
        if parts == 0 {
            return Ok((Arc::clone(&self.scenario), code));
        }
        let mut scenario = cwnd_scenario::Scenario::clone(&self.scenario);
        let python = classes.first().map(Bound::py);
        code.has_python = code::load(&mut scenario, classes, &code.failure)?;
        if let Some(py) = python.filter(|_| code.has_python) {
            code.failure.limit(py)?;
        }
        Ok((Arc::new(scenario), code))
    }

    fn begin_captures(
        &self,
        world: &mut World,
        files: &[(PathBuf, Vec<String>)],
    ) -> PyResult<Vec<Capture>> {
        let begin = |OpenCapture { capture, output: to, links }| {
            world.capture(&links, to).map_err(|error| capture.error(&error))?;
            Ok(capture)
        };
        self.open_captures(files)?.into_iter().map(begin).collect()
    }

    /// Creates capture files, each with the links that it records.
    fn open_captures(&self, files: &[(PathBuf, Vec<String>)]) -> PyResult<Vec<OpenCapture>> {
        let open = |(path, names): &(PathBuf, Vec<String>)| {
            let links = names.iter().map(|name| self.link(name)).collect::<PyResult<Vec<_>>>()?;
            let (capture, to) = Capture::create(path)?;
            Ok(OpenCapture { capture, output: to, links })
        };
        files.iter().map(open).collect()
    }

    fn link(&self, name: &str) -> PyResult<usize> {
        let found = self.scenario.links.iter().position(|link| link.name == name);
        found.ok_or_else(|| PyValueError::new_err(format!("there is no link `{name}`")))
    }
}

#[pymethods]
impl Cell {
    #[getter]
    fn index(&self) -> usize {
        self.index
    }

    #[getter]
    fn id(&self) -> &str {
        &self.id
    }

    #[getter]
    fn seed(&self) -> u64 {
        self.seed
    }

    #[getter]
    fn axes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        self.axes.iter().try_for_each(|a| dict.set_item(&a.axis, &a.label))?;
        Ok(dict)
    }

    #[getter]
    fn axis_values<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        self.axes.iter().try_for_each(|a| dict.set_item(&a.axis, a.value))?;
        Ok(dict)
    }

    #[getter]
    fn axis_units<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        self.axes.iter().try_for_each(|a| dict.set_item(&a.axis, a.unit))?;
        Ok(dict)
    }

    #[getter]
    fn resolved(&self) -> &str {
        &self.resolved
    }

    #[getter]
    fn duration_s(&self) -> f64 {
        self.scenario.run.duration.as_secs_f64()
    }

    #[getter]
    fn warmup_s(&self) -> f64 {
        self.scenario.run.warmup.as_secs_f64()
    }

    #[getter]
    fn routed_bit_s(&self) -> Option<f64> {
        self.scenario.routed_bit_s()
    }

    /// Names of the links, in the order of the results.
    #[getter]
    fn links(&self) -> Vec<&str> {
        self.scenario.links.iter().map(|link| link.name.as_str()).collect()
    }

    /// Names of the flow groups of connections, whose senders can be logged.
    #[getter]
    fn senders(&self) -> Vec<&str> {
        let groups = self.scenario.flows.iter().filter(|group| group.connects());
        groups.map(|group| group.name.as_str()).collect()
    }

    /// Parts whose code is the user's: place, kind, name of the source file, its text, and class;
    /// an empty class for code in C, or of an installed package: the kind is then `installed`, the
    /// text its description.
    #[getter]
    fn code(&self) -> Vec<code::Part<'_>> {
        code::parts(&self.scenario)
    }

    /// Simulates the run. `captures` lists files, each with the links whose packets it records;
    /// `classes` are those that `code` names, in its order, or a file with the compiled object for
    /// code in C, which only this run uses. `log` is a link, a window in nanoseconds, and a
    /// maximum number, for the packets of the result. `qlog` is a directory for logs of senders,
    /// and the groups with the first word of their files. Other Python threads keep running.
    /// Raises `Cancelled` if `control` stops it, `OSError` if a capture or log cannot be written,
    /// `ValueError` if the link has no queue, and what the code of a class raises.
    #[pyo3(signature = (
        control=None, captures=Vec::new(), *, classes=Vec::new(), log=None, qlog=None
    ))]
    fn run(
        &self,
        py: Python<'_>,
        control: Option<Bound<'_, Control>>,
        captures: Vec<(PathBuf, Vec<String>)>,
        classes: Vec<Bound<'_, PyAny>>,
        log: Option<(String, [u64; 2], usize)>,
        qlog: Option<(PathBuf, Vec<(String, String)>)>,
    ) -> PyResult<Result> {
        let control = control.map(|c| c.get().clone()).unwrap_or_default();
        let (scenario, code) = self.with_code(classes)?;
        let per_ns = 1.0 / scenario.run.duration.0 as f64;
        let of_run = code.clone();
        let simulate = move || {
            let go_on =
                |now: Time| !of_run.has_failed() && control.report_progress(now.0 as f64 * per_ns);
            let mut world = World::unbuilt(scenario);
            let built = world.build(go_on);
            let mut captures = self.begin_captures(&mut world, &captures)?;
            if let Some(qlog) = qlog {
                captures.push(Capture::begin_logs(&mut world, &self.scenario, qlog)?);
            }
            if let Some((link, window, limit)) = log
                && !world.log_packets(self.link(&link)?, window.map(Time), limit)
            {
                return Err(PyValueError::new_err(format!("link `{link}` has no queue")));
            }
            let records = built
                .and_then(|()| world.run(|now| go_on(now) && captures.iter().all(Capture::is_ok)));
            let packets = world.take_packets();
            free(world, &control);
            Ok::<_, PyErr>((records, captures, packets))
        };
        let (records, captures, packets) =
            if code.has_python { simulate() } else { py.detach(simulate) }?;
        if let Some(error) = code.failure.take() {
            return Err(error);
        }
        if let Some(error) = captures.iter().find_map(Capture::failed) {
            return Err(error);
        }
        match records {
            Ok(records) => Ok(Result::new(records).with_packets(packets)),
            Err(cwnd_sim::Cancelled) => Err(Cancelled::new_err(())),
        }
    }

    /// Runs on this machine's kernel, in real time. `captures` is as for `run`; `kernel` is the
    /// program that loads controllers, `objects` are compiled from those in C, in the order of
    /// `code`.
    #[pyo3(signature = (
        control=None, captures=Vec::new(), *, kernel=None, objects=Vec::new(), calibrate=true
    ))]
    fn run_on_linux(
        &self,
        py: Python<'_>,
        control: Option<Bound<'_, Control>>,
        captures: Vec<(PathBuf, Vec<String>)>,
        kernel: Option<PathBuf>,
        objects: Vec<PathBuf>,
        calibrate: bool,
    ) -> PyResult<Result> {
        let control = control.map(|c| c.get().clone()).unwrap_or_default();
        let opened = self.open_captures(&captures)?;
        testbed::run(py, Arc::clone(&self.scenario), control, opened, (kernel, objects), calibrate)
    }

    /// Simulates twice, step by step in turn, and compares every step; raises `Diverged` if they
    /// differ, `Cancelled` if `control` stops it. `classes` are those that `code` names, for the
    /// first run and then for the second.
    #[pyo3(signature = (control=None, classes=Vec::new()))]
    fn check(
        &self,
        py: Python<'_>,
        control: Option<Bound<'_, Control>>,
        mut classes: Vec<Bound<'_, PyAny>>,
    ) -> PyResult<Result> {
        let control = control.map(|c| c.get().clone()).unwrap_or_default();
        let of_other = classes.split_off(classes.len() / 2);
        let (scenario, code) = self.with_code(classes)?;
        let (other, code_of_other) = self.with_code(of_other)?;
        let per_ns = 1.0 / scenario.run.duration.0 as f64;
        let codes = [code, code_of_other];
        let of_runs = codes.clone();
        let compare = move || {
            let mut both = [scenario, other].map(Witness::new);
            let [one, other] = &mut both;
            let checked = cwnd_sim::compare(one, other, |now: Time| {
                !of_runs.iter().any(LoadedCode::has_failed)
                    && control.report_progress(now.0 as f64 * per_ns)
            });
            free(both, &control);
            checked
        };
        let checked = if codes[0].has_python { compare() } else { py.detach(compare) };
        if let Some(error) = codes.iter().find_map(|code| code.failure.take()) {
            return Err(error);
        }
        checked.map(Result::of_checked).map_err(|error| check_error(&error))
    }
}

/// Reads the text of a scenario file, with overrides (`path=value`) and a seed from the command
/// line. Each of the `classes` has four words: the key whose kind it is, its name in the scenario,
/// its own name, and its source file with the text. `installed` is asked for the names of
/// controllers that cwnd does not have, and returns the description of one that an installed
/// package has, or `None`.
#[pyfunction]
#[pyo3(signature = (
    text, *, name, base_dir=None, overrides=Vec::new(), seed=None, classes=Vec::new(),
    installed=None
))]
#[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
pub fn parse(
    py: Python<'_>,
    text: String,
    name: String,
    base_dir: Option<PathBuf>,
    overrides: Vec<String>,
    seed: Option<u64>,
    classes: Vec<[String; 4]>,
    installed: Option<Py<PyAny>>,
) -> PyResult<Scenario> {
    let base = base_dir.unwrap_or_default();
    let given = classes.into_iter();
    let given =
        given.map(|[key, name, class, source]| GivenClass { key, name, class, source }).collect();
    let installed = move |kind: &str| -> PyResult<Option<String>> {
        let Some(installed) = &installed else { return Ok(None) };
        Python::attach(|py| installed.call1(py, (kind,))?.extract(py))
    };
    interruptible(py, move || outline(&name, &text, &base, (&overrides, seed), given, &installed))?
        .map(|outline| Scenario { outline })
        .map_err(|diagnostics| scenario_error(py, diagnostics))
}

fn outline(
    name: &str,
    text: &str,
    base: &Path,
    (overrides, seed): (&[String], Option<u64>),
    classes: Vec<GivenClass>,
    installed: &dyn Fn(&str) -> PyResult<Option<String>>,
) -> core::result::Result<Outline, Diagnostics> {
    let files = |file: &str| {
        if let Some(kind) = file.strip_prefix(INSTALLED) {
            let found = installed(kind).map_err(|error| error.to_string())?;
            return found.ok_or_else(|| format!("no package has `{kind}`"));
        }
        let path = base.join(file);
        read(&path, MAX_TRACE_BYTES).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => {
                let looked_at = std::path::absolute(&path).unwrap_or(path);
                format!("{NOT_THERE}{}", looked_at.display())
            }
            _ => reason(&error),
        })
    };
    let mut document = Document::parse(name, text, &files)?.with_overrides(overrides)?;
    if let Some(seed) = seed {
        document = document.with_seed(seed)?;
    }
    document.with_classes(classes).outline()
}

/// Returns the JSON Schema of a scenario file. `installed` are descriptions of kinds of controllers
/// that installed packages have.
#[pyfunction]
#[pyo3(signature = (installed=Vec::new()))]
pub fn json_schema(installed: Vec<String>) -> PyResult<String> {
    Ok(cwnd_scenario::json_schema(&descriptions(&installed)?))
}

fn descriptions(texts: &[String]) -> PyResult<Vec<&'static Description>> {
    let read = |text: &String| described(text).map_err(PyValueError::new_err);
    texts.iter().map(read).collect()
}

/// Returns the descriptions of the controllers in the library of a package, as JSON. It is loaded:
/// a process of its own calls this.
#[pyfunction]
pub fn describe_library(path: PathBuf) -> PyResult<String> {
    code::describe(&path).map_err(PyValueError::new_err)
}

/// Returns the mechanisms of each kind of controller. Each has five words: kind, name, the
/// parameter that enables it, the parameter that holds otherwise, and the column of `flows` that
/// counts its actions; absent ones are empty. Then follow counters, for mechanisms without a
/// column, and the meaning of their staying zero.
#[pyfunction]
pub fn mechanisms() -> Vec<([&'static str; 5], Vec<&'static str>, &'static str)> {
    let mut found = Vec::new();
    for kind in ControllerParams::KINDS {
        let Some(params) = ControllerParams::of_kind(kind.name) else { continue };
        for m in params.info().mechanisms() {
            let (column, counters, if_zero) = match m.counted_in {
                ActionCount::Column(column) => (column, Vec::new(), ""),
                ActionCount::Counters { names, if_zero } => ("", names.to_vec(), if_zero),
            };
            let words = [kind.name, m.name, m.key.unwrap_or(""), m.base.unwrap_or(""), column];
            found.push((words, counters, if_zero));
        }
    }
    found
}

/// Returns the kinds of each part of a scenario: name, description, and the keys of its table.
#[pyfunction]
pub fn kinds() -> BTreeMap<&'static str, Vec<cwnd_scenario::KindInfo>> {
    cwnd_scenario::kinds()
}

/// Returns the reference of the scenario file, as Markdown. `installed` is as for `json_schema`.
#[pyfunction]
#[pyo3(signature = (installed=Vec::new()))]
pub fn reference_markdown(installed: Vec<String>) -> PyResult<String> {
    Ok(cwnd_scenario::reference_markdown(&descriptions(&installed)?))
}
