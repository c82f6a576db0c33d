//! Hints about memory to the processor (feature `prefetch`) and to the kernel. They change speed,
//! never results.

use core::ptr;

mod pages;

pub use pages::{reserve_one, with_capacity};

/// Size of a cache line, bytes.
const CACHE_LINE: usize = 64;

/// Prefetches the cache line in which a value begins.
#[inline(always)]
pub fn prefetch_line<T>(value: &T) {
    prefetch_address(ptr::from_ref(value).cast());
}

/// Prefetches all cache lines of a value, but not what it points to.
///
/// A prefetch does not block: it pays if some hundred instructions precede the read.
#[inline(always)]
pub fn prefetch<T>(value: &T) {
    let start = ptr::from_ref(value).cast::<u8>();
    for offset in (0..size_of::<T>()).step_by(CACHE_LINE) {
        prefetch_address(start.wrapping_add(offset));
    }
    if align_of::<T>() < CACHE_LINE {
        // An unaligned value may span one more line than its size has.
        prefetch_address(start.wrapping_add(size_of::<T>().saturating_sub(1)));
    }
}

#[cfg(feature = "prefetch")]
#[inline(always)]
fn prefetch_address(address: *const u8) {
    branches::prefetch_read_data::<u8, 0>(address);
}

#[cfg(not(feature = "prefetch"))]
#[inline(always)]
const fn prefetch_address(_: *const u8) {}
