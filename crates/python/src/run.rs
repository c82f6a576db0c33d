use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use cwnd_sim::Checked;
use cwnd_tables::{Activity, Column, ColumnData, Records};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::table::Table;

/// Follows and stops a running cell from another thread.
#[pyclass(frozen, module = "cwnd._core")]
#[derive(Clone, Debug, Default)]
pub struct Control {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    cancelled: AtomicBool,
    /// Simulated time ÷ duration, as the bits of a float.
    fraction: AtomicU64,
}

impl Control {
    /// Notes which part of a run is done; whether it is to go on. It is called every few events.
    #[inline]
    pub fn tell(&self, fraction: f64) -> bool {
        self.shared.fraction.store(fraction.to_bits(), Ordering::Relaxed);
        !self.is_cancelled()
    }

    /// Tells whether the run is to stop.
    pub fn is_cancelled(&self) -> bool {
        self.shared.cancelled.load(Ordering::Relaxed)
    }
}

#[pymethods]
impl Control {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// Stops the run soon; it then raises `Cancelled`.
    fn cancel(&self) {
        self.shared.cancelled.store(true, Ordering::Relaxed);
    }

    /// Simulated time ÷ duration, 0 to 1.
    #[getter]
    fn fraction(&self) -> f64 {
        f64::from_bits(self.shared.fraction.load(Ordering::Relaxed)).min(1.0)
    }
}

/// What the tables of a run are called, in their order.
const TABLES: [&str; 9] = [
    "flows",
    "links",
    "reasons",
    "series",
    "link_series",
    "qdelay",
    "requests",
    "sketches",
    "unrecorded",
];

/// What one run recorded.
#[pyclass(frozen, module = "cwnd._core")]
#[derive(Debug)]
pub struct Result {
    tables: [cwnd_tables::Table; TABLES.len()],
    activity: Activity,
    events: u64,
    delivered_packets: u64,
    request_count: u64,
    requests_without_row: u64,
    digest: String,
    steps_hash: Option<String>,
    facts: Option<String>,
}

impl Result {
    /// Takes the records over.
    pub fn new(records: Records) -> Self {
        Self {
            digest: records.digest(),
            request_count: records.request_count,
            requests_without_row: records.request_count - records.requests.len() as u64,
            tables: [
                records.flows,
                records.links,
                records.reasons,
                records.flow_series,
                records.link_series,
                records.qdelay,
                records.requests,
                records.sketches,
                records.unrecorded,
            ],
            activity: records.activity,
            events: records.events,
            delivered_packets: records.delivered_data_packets,
            steps_hash: None,
            facts: None,
        }
    }

    /// The same with what else is known of the run, as JSON.
    pub fn with_facts(self, facts: String) -> Self {
        Self { facts: Some(facts), ..self }
    }

    /// Takes the records of a checked run over.
    pub fn of_checked(checked: Checked) -> Self {
        let steps_hash = Some(format!("{:016x}", checked.chain));
        Self { steps_hash, ..Self::new(checked.records) }
    }
}

#[pymethods]
impl Result {
    #[getter]
    fn flows(&self) -> Table {
        Table::new(self.tables[0].clone())
    }

    #[getter]
    fn links(&self) -> Table {
        Table::new(self.tables[1].clone())
    }

    #[getter]
    fn reasons(&self) -> Table {
        Table::new(self.tables[2].clone())
    }

    #[getter]
    fn flow_series(&self) -> Table {
        Table::new(self.tables[3].clone())
    }

    #[getter]
    fn link_series(&self) -> Table {
        Table::new(self.tables[4].clone())
    }

    #[getter]
    fn qdelay(&self) -> Table {
        Table::new(self.tables[5].clone())
    }

    #[getter]
    fn requests(&self) -> Table {
        Table::new(self.tables[6].clone())
    }

    #[getter]
    fn sketches(&self) -> Table {
        Table::new(self.tables[7].clone())
    }

    #[getter]
    fn unrecorded(&self) -> Table {
        Table::new(self.tables[8].clone())
    }

    #[getter]
    fn activity<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        self.activity.iter().try_for_each(|(name, count)| dict.set_item(name, count))?;
        Ok(dict)
    }

    #[getter]
    const fn events(&self) -> u64 {
        self.events
    }

    #[getter]
    const fn delivered_packets(&self) -> u64 {
        self.delivered_packets
    }

    #[getter]
    const fn request_count(&self) -> u64 {
        self.request_count
    }

    #[getter]
    const fn requests_without_row(&self) -> u64 {
        self.requests_without_row
    }

    #[getter]
    fn digest(&self) -> &str {
        &self.digest
    }

    #[getter]
    fn steps_hash(&self) -> Option<&str> {
        self.steps_hash.as_deref()
    }

    #[getter]
    fn facts(&self) -> Option<&str> {
        self.facts.as_deref()
    }
}

/// Records of several runs, one below the other in the same columns.
#[pyclass(frozen, module = "cwnd._core")]
#[derive(Debug, Default)]
pub struct Gathered {
    inner: Mutex<Runs>,
}

#[derive(Debug)]
struct Runs {
    count: u32,
    tables: [cwnd_tables::Table; TABLES.len()],
    /// For each row of each table the run that it is from.
    run: [Vec<u32>; TABLES.len()],
}

impl Default for Runs {
    fn default() -> Self {
        let empty = || cwnd_tables::Table { columns: Vec::new() };
        Self { count: 0, tables: TABLES.map(|_| empty()), run: TABLES.map(|_| Vec::new()) }
    }
}

#[pymethods]
impl Gathered {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// Puts the rows of a run below those that are there.
    fn add(&self, result: &Result) {
        let mut runs = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let Runs { count, tables, run } = &mut *runs;
        for ((mine, run), theirs) in tables.iter_mut().zip(run).zip(&result.tables) {
            mine.append(theirs);
            run.resize(mine.len(), *count);
        }
        *count += 1;
    }

    /// Rows of all tables together.
    #[getter]
    fn rows(&self) -> usize {
        let runs = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        runs.run.iter().map(Vec::len).sum()
    }

    /// Hands the tables over, by name, and begins anew. Their first column counts the runs from 0, in the order in
    /// which they were added.
    fn take<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let runs = core::mem::take(&mut *self.inner.lock().unwrap_or_else(PoisonError::into_inner));
        let dict = PyDict::new(py);
        for ((name, mut table), run) in TABLES.into_iter().zip(runs.tables).zip(runs.run) {
            table
                .columns
                .insert(0, Column { name: "run", data: ColumnData::U32(run), rare: false });
            dict.set_item(name, Bound::new(py, Table::new(table))?)?;
        }
        Ok(dict)
    }
}
