//! A log of random draws.

use std::sync::{Arc, Mutex, PoisonError};

/// One draw from a named stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draw {
    /// Name of the stream.
    pub stream: Arc<str>,
    /// The 64 bits drawn from the generator, before any transformation.
    pub bits: u64,
}

/// A log that collects draws until they are taken; clones share it.
#[derive(Clone, Debug, Default)]
pub struct DrawLog(Arc<Mutex<Vec<Draw>>>);

impl DrawLog {
    /// Adds a draw. The lock is never contended, as a run is one thread.
    pub(crate) fn add(&self, stream: &Arc<str>, bits: u64) {
        let mut draws = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        draws.push(Draw { stream: Arc::clone(stream), bits });
    }

    /// Moves all draws since the last call into `into`, in order, replacing its contents.
    pub fn take(&self, into: &mut Vec<Draw>) {
        into.clear();
        let mut draws = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        core::mem::swap(&mut *draws, into);
    }
}
