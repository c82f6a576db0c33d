use std::path::{Path, PathBuf};
use std::sync::Arc;

use cwnd_scenario::{Diagnostics, Document, Plan};
use cwnd_sim::World;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::capture::Capture;
use crate::error::{Cancelled, as_dicts, check_error, scenario_error};
use crate::run::{Control, Result};

/// A scenario that was read and found valid.
#[pyclass(frozen, module = "cwnd._core")]
#[derive(Debug)]
pub struct Scenario {
    plan: Plan,
}

#[pymethods]
impl Scenario {
    #[getter]
    fn name(&self) -> &str {
        &self.plan.name
    }

    #[getter]
    fn description(&self) -> &str {
        &self.plan.description
    }

    #[getter]
    fn axes(&self) -> Vec<String> {
        self.plan.axes.clone()
    }

    #[getter]
    fn warnings<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        as_dicts(py, &self.plan.warnings)
    }

    #[getter]
    fn cells(&self) -> Vec<Cell> {
        self.plan.cells.iter().map(Cell::new).collect()
    }
}

/// One run of a scenario: one point of its sweep, one seed.
#[pyclass(frozen, module = "cwnd._core")]
#[derive(Clone, Debug)]
pub struct Cell {
    inner: Arc<cwnd_scenario::Cell>,
    scenario: Arc<cwnd_scenario::Scenario>,
}

impl Cell {
    fn new(cell: &cwnd_scenario::Cell) -> Self {
        Self { scenario: Arc::new(cell.scenario.clone()), inner: Arc::new(cell.clone()) }
    }

    fn begin_captures(
        &self,
        world: &mut World,
        files: &[(PathBuf, Vec<String>)],
    ) -> PyResult<Vec<Capture>> {
        let begin = |(path, names): &(PathBuf, Vec<String>)| {
            let links = names.iter().map(|name| self.link(name)).collect::<PyResult<Vec<_>>>()?;
            let (capture, output) = Capture::create(path)?;
            world.capture(&links, output).map_err(|error| capture.error(&error))?;
            Ok(capture)
        };
        files.iter().map(begin).collect()
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
        self.inner.index
    }

    #[getter]
    fn id(&self) -> &str {
        &self.inner.id
    }

    #[getter]
    fn seed(&self) -> u64 {
        self.inner.seed
    }

    #[getter]
    fn axes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        self.inner.axes.iter().try_for_each(|a| dict.set_item(&a.axis, &a.label))?;
        Ok(dict)
    }

    #[getter]
    fn axis_values<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        self.inner.axes.iter().try_for_each(|a| dict.set_item(&a.axis, a.value))?;
        Ok(dict)
    }

    #[getter]
    fn axis_units<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        self.inner.axes.iter().try_for_each(|a| dict.set_item(&a.axis, a.unit))?;
        Ok(dict)
    }

    #[getter]
    fn resolved(&self) -> &str {
        &self.inner.resolved_toml
    }

    #[getter]
    fn duration_s(&self) -> f64 {
        self.scenario.run.duration.as_secs_f64()
    }

    #[getter]
    fn warmup_s(&self) -> f64 {
        self.scenario.run.warmup.as_secs_f64()
    }

    /// Names of the links, in the order of the results.
    #[getter]
    fn links(&self) -> Vec<&str> {
        self.scenario.links.iter().map(|link| link.name.as_str()).collect()
    }

    /// Simulates; other Python threads go on meanwhile. `captures` are files and the links whose packets they get.
    #[pyo3(signature = (control=None, captures=Vec::new()))]
    fn run(
        &self,
        py: Python<'_>,
        control: Option<Bound<'_, Control>>,
        captures: Vec<(PathBuf, Vec<String>)>,
    ) -> PyResult<Result> {
        let control = control.map(|c| c.get().clone()).unwrap_or_default();
        let scenario = Arc::clone(&self.scenario);
        let end = scenario.run.duration.as_secs_f64();
        let (records, captures) = py.detach(move || {
            let mut world = World::new(scenario);
            let captures = self.begin_captures(&mut world, &captures)?;
            let records = world.run(|now| {
                control.tell(now.as_secs_f64(), end) && captures.iter().all(Capture::is_fine)
            });
            Ok::<_, PyErr>((records, captures))
        })?;
        if let Some(error) = captures.iter().find_map(Capture::failed) {
            return Err(error);
        }
        match records {
            Ok(records) => Ok(Result::new(records)),
            Err(cwnd_sim::Cancelled) => {
                let cancelled = Py::new(py, Cancelled)?;
                Err(PyErr::from_value(cancelled.into_bound(py).into_any()))
            }
        }
    }

    /// Simulates twice at once and compares every step.
    #[pyo3(signature = (control=None))]
    fn check(&self, py: Python<'_>, control: Option<Bound<'_, Control>>) -> PyResult<Result> {
        let control = control.map(|c| c.get().clone()).unwrap_or_default();
        let scenario = Arc::clone(&self.scenario);
        let end = scenario.run.duration.as_secs_f64();
        let checked = py
            .detach(move || cwnd_sim::check(&scenario, |now| control.tell(now.as_secs_f64(), end)));
        checked.map(Result::of_checked).map_err(|error| check_error(py, &error))
    }
}

/// Reads a scenario file's text, with the command line's overrides (`path=value`) and seed.
#[pyfunction]
#[pyo3(signature = (text, *, name, base_dir=None, overrides=Vec::new(), seed=None))]
pub fn parse(
    py: Python<'_>,
    text: &str,
    name: &str,
    base_dir: Option<PathBuf>,
    overrides: Vec<String>,
    seed: Option<u64>,
) -> PyResult<Scenario> {
    let base = base_dir.unwrap_or_default();
    plan(name, text, &base, &overrides, seed)
        .map(|plan| Scenario { plan })
        .map_err(|diagnostics| scenario_error(py, diagnostics))
}

fn plan(
    name: &str,
    text: &str,
    base: &Path,
    overrides: &[String],
    seed: Option<u64>,
) -> core::result::Result<Plan, Diagnostics> {
    let files = |file: &str| std::fs::read_to_string(base.join(file)).map_err(|e| e.to_string());
    let mut document = Document::parse(name, text, &files)?.with_overrides(overrides)?;
    if let Some(seed) = seed {
        document = document.with_seed(seed)?;
    }
    document.plan()
}

/// The JSON Schema of a scenario file.
#[pyfunction]
pub fn json_schema() -> PyResult<String> {
    let schema = serde_json::to_string_pretty(&cwnd_scenario::json_schema());
    schema.map_err(|e| pyo3::exceptions::PyRuntimeError::new_err(e.to_string()))
}

/// The reference of the scenario file, as Markdown.
#[pyfunction]
pub fn reference_markdown() -> String {
    cwnd_scenario::reference_markdown()
}
