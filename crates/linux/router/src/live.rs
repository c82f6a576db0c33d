//! Last rows of the time series of a running router.

use std::sync::{Arc, Mutex, PoisonError};

use cwnd_tables::LinkSampleRow;

/// Last row of the time series of each direction. Clones refer to the same rows.
#[derive(Clone, Debug, Default)]
pub struct Live(Arc<Mutex<[Option<LinkSampleRow>; 2]>>);

impl Live {
    /// Returns the last rows, from A to B and from B to A; `None` before the first.
    #[must_use]
    pub fn rows(&self) -> [Option<LinkSampleRow>; 2] {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn publish(&self, direction: usize, row: &LinkSampleRow) {
        // A reader holds the lock for a copy at most; the router does not wait for it.
        if let Ok(mut rows) = self.0.try_lock() {
            rows[direction] = Some(row.clone());
        }
    }
}
