//! Runs for Python: their control and their results, and work in a separate thread, without Python,
//! for which the caller can stop waiting.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use cwnd_sim::Checked;
use cwnd_tables::{Activity, Column, ColumnData, Records};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::table::Table;

/// Shows the progress of a run or an inference, and stops it, from another thread.
#[pyclass(frozen, module = "cwnd._core")]
#[derive(Clone, Debug, Default)]
pub struct Control {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    cancelled: AtomicBool,
    /// Progress as the bits of a float: simulated time divided by the duration, or bytes read
    /// divided by those of all captures.
    fraction: AtomicU64,
}

impl Control {
    /// Records the progress; returns `true` while the work is to go on. A simulation calls it every
    /// few events.
    #[inline]
    pub fn report_progress(&self, fraction: f64) -> bool {
        self.shared.fraction.store(fraction.to_bits(), Ordering::Relaxed);
        !self.is_cancelled()
    }

    /// `true` if the run or inference is to stop.
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

    /// Stops the run or inference soon; it then raises `Cancelled`.
    fn cancel(&self) {
        self.shared.cancelled.store(true, Ordering::Relaxed);
    }

    /// Progress, 0 to 1: simulated time divided by the duration, or the part of captures read.
    #[getter]
    fn fraction(&self) -> f64 {
        f64::from_bits(self.shared.fraction.load(Ordering::Relaxed)).min(1.0)
    }
}

/// Names of the tables of a run, in order.
const TABLES: [&str; 10] = [
    "flows",
    "links",
    "reasons",
    "series",
    "link_series",
    "qdelay",
    "delays",
    "requests",
    "sketches",
    "unrecorded",
];

/// Records of one run.
#[pyclass(frozen, module = "cwnd._core")]
#[derive(Debug)]
pub struct Result {
    tables: [cwnd_tables::Table; TABLES.len()],
    activity: Activity,
    events: u64,
    delivered_packets: u64,
    end_s: f64,
    request_count: u64,
    requests_without_row: u64,
    digest: String,
    steps_hash: Option<String>,
    facts: Option<String>,
    packets: Option<cwnd_tables::Table>,
}

impl Result {
    /// Creates the result from the records of a run.
    pub fn new(records: Records) -> Self {
        Self {
            digest: records.digest(),
            end_s: records.end.as_secs_f64(),
            request_count: records.request_count,
            requests_without_row: records.request_count - records.requests.len() as u64,
            tables: [
                records.flows,
                records.links,
                records.reasons,
                records.flow_series,
                records.link_series,
                records.qdelay,
                records.delays,
                records.requests,
                records.sketches,
                records.unrecorded,
            ],
            activity: records.activity,
            events: records.events,
            delivered_packets: records.delivered_data_packets,
            steps_hash: None,
            facts: None,
            packets: None,
        }
    }

    /// Adds further facts on the run, as JSON.
    pub fn with_facts(self, facts: String) -> Self {
        Self { facts: Some(facts), ..self }
    }

    /// Adds the logged packets.
    pub fn with_packets(self, packets: Option<cwnd_tables::Table>) -> Self {
        Self { packets, ..self }
    }

    /// Creates the result from the records of a checked run, with the hash of its steps.
    pub fn of_checked(checked: Checked) -> Self {
        let steps_hash = Some(format!("{:016x}", checked.chain));
        Self { steps_hash, ..Self::new(checked.records) }
    }
}

#[pymethods]
impl Result {
    #[getter]
    fn flows(&self) -> PyResult<Table> {
        Table::new(self.tables[0].clone())
    }

    #[getter]
    fn links(&self) -> PyResult<Table> {
        Table::new(self.tables[1].clone())
    }

    #[getter]
    fn reasons(&self) -> PyResult<Table> {
        Table::new(self.tables[2].clone())
    }

    #[getter]
    fn flow_series(&self) -> PyResult<Table> {
        Table::new(self.tables[3].clone())
    }

    #[getter]
    fn link_series(&self) -> PyResult<Table> {
        Table::new(self.tables[4].clone())
    }

    #[getter]
    fn qdelay(&self) -> PyResult<Table> {
        Table::new(self.tables[5].clone())
    }

    #[getter]
    fn delays(&self) -> PyResult<Table> {
        Table::new(self.tables[6].clone())
    }

    #[getter]
    fn requests(&self) -> PyResult<Table> {
        Table::new(self.tables[7].clone())
    }

    #[getter]
    fn sketches(&self) -> PyResult<Table> {
        Table::new(self.tables[8].clone())
    }

    /// Logged packets; `None` without a log.
    #[getter]
    fn packets(&self) -> PyResult<Option<Table>> {
        self.packets.clone().map(Table::new).transpose()
    }

    #[getter]
    fn unrecorded(&self) -> PyResult<Table> {
        Table::new(self.tables[9].clone())
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
    const fn end_s(&self) -> f64 {
        self.end_s
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

/// Records of several runs, concatenated table by table.
#[pyclass(frozen, module = "cwnd._core")]
#[derive(Debug, Default)]
pub struct Gathered {
    inner: Mutex<Runs>,
}

#[derive(Debug)]
struct Runs {
    count: u32,
    tables: [cwnd_tables::Table; TABLES.len()],
    /// Run number of each row, by table.
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

    /// Appends the rows of a run.
    fn add(&self, result: &Result) {
        let mut runs = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let Runs { count, tables, run } = &mut *runs;
        for ((mine, run), theirs) in tables.iter_mut().zip(run).zip(&result.tables) {
            mine.append(theirs);
            run.resize(mine.len(), *count);
        }
        *count += 1;
    }

    /// Number of rows of all tables together.
    #[getter]
    fn rows(&self) -> usize {
        let runs = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        runs.run.iter().map(Vec::len).sum()
    }

    /// Returns the tables by name, and starts again without rows. Their first column, `run`,
    /// numbers the runs since the last call from 0 in the order in which they were added.
    fn take<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let runs = core::mem::take(&mut *self.inner.lock().unwrap_or_else(PoisonError::into_inner));
        let dict = PyDict::new(py);
        for ((name, mut table), run) in TABLES.into_iter().zip(runs.tables).zip(runs.run) {
            table
                .columns
                .insert(0, Column { name: "run", data: ColumnData::U32(run), rare: false });
            dict.set_item(name, Bound::new(py, Table::new(table)?)?)?;
        }
        Ok(dict)
    }
}

/// Interval at which the waiting thread checks whether to go on.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Work that runs in a thread. If it panics, nothing that it touched is used afterwards.
struct Work<T>(Receiver<thread::Result<T>>);

impl<T: Send + 'static> Work<T> {
    fn spawn(work: impl FnOnce() -> T + Send + 'static) -> PyResult<Self> {
        let (done, result) = sync_channel(1);
        thread::Builder::new().spawn(move || {
            // The receiver is gone if the caller stopped waiting.
            let _ = done.send(catch_unwind(AssertUnwindSafe(work)));
        })?;
        Ok(Self(result))
    }

    /// Waits up to one interval for the result; `None` if the work goes on.
    fn wait(&mut self) -> Option<thread::Result<T>> {
        self.0.recv_timeout(POLL_INTERVAL).ok()
    }
}

/// Runs work that may take long. Ctrl-C ends the wait; the work itself runs on to its end.
///
/// # Errors
/// Raises the exception of a signal handler, or `OSError` if no thread can be started.
pub fn interruptible<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> T + Send + 'static,
) -> PyResult<T> {
    let mut work = Work::spawn(work)?;
    loop {
        match py.detach(|| work.wait()) {
            Some(Ok(result)) => return Ok(result),
            Some(Err(panic)) => resume_unwind(panic),
            None => py.check_signals()?,
        }
    }
}

/// Frees the memory of a run, and stops waiting for that once the run is cancelled: a million flows
/// take seconds.
pub fn free<T: Send + 'static>(run: T, control: &Control) {
    // Without a thread the failed call has freed it already.
    let Ok(mut work) = Work::spawn(move || drop(run)) else { return };
    while !control.is_cancelled() && work.wait().is_none() {}
}
