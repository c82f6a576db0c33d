use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use cwnd_sim::{Checked, Records};
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
    /// Notes how far a run is; whether it is to go on.
    pub fn tell(&self, now_s: f64, end_s: f64) -> bool {
        let fraction = (now_s / end_s).min(1.0);
        self.shared.fraction.store(fraction.to_bits(), Ordering::Relaxed);
        !self.shared.cancelled.load(Ordering::Relaxed)
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
        f64::from_bits(self.shared.fraction.load(Ordering::Relaxed))
    }
}

/// What one run recorded.
#[pyclass(frozen, module = "cwnd._core")]
#[derive(Debug)]
pub struct Result {
    tables: [Table; 5],
    activity: Vec<(&'static str, u64)>,
    events: u64,
    delivered_packets: u64,
    digest: String,
    steps_hash: Option<String>,
}

impl Result {
    /// Takes the records over; columns are moved, not copied.
    pub fn new(records: Records) -> Self {
        Self {
            digest: records.digest(),
            tables: [
                records.flows,
                records.links,
                records.flow_series,
                records.link_series,
                records.qdelay,
            ]
            .map(Table::new),
            activity: records.activity,
            events: records.events,
            delivered_packets: records.delivered_data_packets,
            steps_hash: None,
        }
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
        self.tables[0].clone()
    }

    #[getter]
    fn links(&self) -> Table {
        self.tables[1].clone()
    }

    #[getter]
    fn flow_series(&self) -> Table {
        self.tables[2].clone()
    }

    #[getter]
    fn link_series(&self) -> Table {
        self.tables[3].clone()
    }

    #[getter]
    fn qdelay(&self) -> Table {
        self.tables[4].clone()
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
    fn digest(&self) -> &str {
        &self.digest
    }

    #[getter]
    fn steps_hash(&self) -> Option<&str> {
        self.steps_hash.as_deref()
    }
}
