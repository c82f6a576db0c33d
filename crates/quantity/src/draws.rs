//! Who is told of random draws.

use std::sync::{Arc, Mutex, PoisonError};

/// One draw from a named stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draw {
    /// Name of the stream.
    pub stream: Arc<str>,
    /// The 64 bits that were drawn, before they became a number of some distribution.
    pub bits: u64,
}

/// Remembers draws until they are taken; its copies are the same log.
#[derive(Clone, Debug, Default)]
pub struct DrawLog(Arc<Mutex<Vec<Draw>>>);

impl DrawLog {
    /// Adds a draw. A run is one thread, so nobody ever waits here.
    pub(crate) fn add(&self, stream: &Arc<str>, bits: u64) {
        let mut draws = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        draws.push(Draw { stream: Arc::clone(stream), bits });
    }

    /// Takes all draws since the last call, in their order, in exchange for an empty vector.
    pub fn take(&self, into: &mut Vec<Draw>) {
        into.clear();
        let mut draws = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        core::mem::swap(&mut *draws, into);
    }
}
