//! Hints about memory to the processor and to the kernel. They change when something is there, never what it is.

use core::ptr;

mod pages;

pub use pages::{make_room, with_capacity};

/// Bytes that a processor fetches at once.
const CACHE_LINE: usize = 64;

/// Asks the processor for the cache line where a value begins, which will be read soon.
#[inline(always)]
pub fn line_soon<T>(value: &T) {
    branches::prefetch_read_data::<u8, 0>(ptr::from_ref(value).cast());
}

/// Asks the processor for a value that will be read soon, all of its cache lines; what it points to is not asked for.
///
/// A request waits for no answer: it pays when some hundred instructions lie between it and the reading.
#[inline(always)]
pub fn soon<T>(value: &T) {
    let start = ptr::from_ref(value).cast::<u8>();
    for offset in (0..size_of::<T>()).step_by(CACHE_LINE) {
        branches::prefetch_read_data::<u8, 0>(start.wrapping_add(offset));
    }
    if align_of::<T>() < CACHE_LINE {
        // It may reach into one line more than it is lines long.
        branches::prefetch_read_data::<u8, 0>(start.wrapping_add(size_of::<T>().saturating_sub(1)));
    }
}
