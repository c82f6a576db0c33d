//! An output that stays in memory; tests of other crates include this file, too.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

/// A shared buffer that records what is written to it.
#[derive(Clone, Default)]
pub struct Kept(Arc<Mutex<Vec<u8>>>);

impl Kept {
    /// Bytes written until now.
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
