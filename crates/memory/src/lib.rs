//! Hints about memory to the processor (feature `prefetch`) and to the kernel. They change speed,
//! never results.
//!
//! Random access to more than some thousand pages of 4 KiB mostly needs a page-table walk, which is
//! longer in a virtual machine. So large vectors are in large pages.

#![cfg_attr(not(test), no_std)]

extern crate alloc;

use alloc::vec::Vec;
use core::ptr;

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

/// Size below which vectors stay in small pages: their few pages are found quickly.
const LARGE_BYTES: usize = 4 << 20;

/// Creates an empty vector with this capacity; a large one in large pages, if the kernel has them.
#[must_use]
pub fn with_capacity<T>(capacity: usize) -> Vec<T> {
    let mut vec = Vec::with_capacity(capacity);
    if size_of::<T>() * capacity >= LARGE_BYTES {
        advise_large_pages(&mut vec);
    }
    vec
}

/// Makes room for one more element, as [`Vec::reserve`] does, but with large vectors in large
/// pages.
pub fn reserve_one<T>(vec: &mut Vec<T>) {
    if vec.len() == vec.capacity() {
        let mut larger = with_capacity((2 * vec.len()).max(4));
        larger.append(vec);
        *vec = larger;
    }
}

/// Advises the kernel to put the spare capacity of a vector into large pages, before anything is
/// written there.
#[cfg(target_os = "linux")]
fn advise_large_pages<T>(vec: &mut Vec<T>) {
    use rustix::mm::{Advice, madvise};

    let free = vec.spare_capacity_mut();
    let page = rustix::param::page_size();
    let start = free.as_mut_ptr().cast::<u8>();
    let skipped = start.align_offset(page);
    let bytes = size_of_val(free).saturating_sub(skipped) / page * page;
    // A kernel without large pages refuses the advice, which is harmless.
    #[expect(unsafe_code, reason = "a hint that the standard library does not have")]
    // SAFETY: the range lies within memory that `vec` alone owns, and this advice leaves its
    // contents as they are.
    let _ = unsafe { madvise(start.wrapping_add(skipped).cast(), bytes, Advice::LinuxHugepage) };
}

#[cfg(not(target_os = "linux"))]
const fn advise_large_pages<T>(_: &mut Vec<T>) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_there_is_still_there_after_a_vector_moved_to_large_pages() {
        let mut vec = Vec::new();
        let many = 3 * LARGE_BYTES as u64 / 8;
        for n in 0..many {
            reserve_one(&mut vec);
            vec.push(n);
        }
        assert!(vec.iter().copied().eq(0..many));
        assert!(vec.capacity() < 3 * many as usize);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_large_vector_is_in_large_pages_where_the_kernel_has_them() {
        let modes = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
        let Ok(modes) = modes else { return };
        if modes.contains("[never]") {
            return;
        }
        let mut vec = with_capacity::<u64>(4 * LARGE_BYTES / 8);
        vec.resize(vec.capacity(), 1);
        let start = vec.as_ptr() as usize;
        let maps = std::fs::read_to_string("/proc/self/smaps").expect("Linux has it");
        let mut inside = false;
        let huge_kb: u64 = maps
            .lines()
            .filter_map(|line| {
                let first = line.split(' ').next().unwrap_or("");
                if let Some((from, to)) = first.split_once('-')
                    && let (Ok(from), Ok(to)) =
                        (usize::from_str_radix(from, 16), usize::from_str_radix(to, 16))
                {
                    inside = (from..to).contains(&(start + LARGE_BYTES));
                }
                let kb = line.strip_prefix("AnonHugePages:")?.trim().strip_suffix(" kB")?;
                inside.then(|| kb.parse::<u64>().unwrap_or(0))
            })
            .sum();
        assert!(huge_kb > 0, "{maps}");
    }
}
