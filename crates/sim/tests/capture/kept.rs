//! An output that stays in memory. Other crates' tests have it from here.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

/// An output that the test keeps.
#[derive(Clone, Default)]
pub struct Kept(Arc<Mutex<Vec<u8>>>);

impl Kept {
    /// What was written.
    pub fn bytes(&self) -> Vec<u8> {
        self.0.lock().expect("nobody panicked with it").clone()
    }
}

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("nobody panicked with it").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
