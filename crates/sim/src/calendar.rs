//! A calendar queue for keys far from the least: the mean cost of an insertion into its ring or of
//! a bucket's removal does not depend on the number of keys.

use crate::heap::{Heap, NO_KEY};

/// A calendar queue (Brown 1988, "Calendar Queues") that returns the keys of a whole bucket at
/// once.
///
/// A bucket holds the keys of one interval. The width of the intervals adapts until a bucket holds
/// about [`TARGET_FILL`] keys. The buckets form a ring that starts with the next one; keys beyond
/// the ring wait in a heap.
#[derive(Debug)]
pub struct Calendar {
    /// Ring of buckets; its length is a power of two.
    buckets: Vec<Vec<u128>>,
    /// Free list of the memory of removed buckets, the most recently used last, which is still in
    /// the cache.
    free_buckets: Vec<Vec<u128>>,
    /// Width of an interval as a power of two: a key's interval is `key >> shift`.
    shift: u32,
    /// Interval of the next bucket.
    next: u64,
    /// Number of keys in buckets, without those in `overflow`.
    len: usize,
    overflow: Heap,
    /// Value of `next` at the last check of the interval width. `removed_since` counts the keys
    /// removed since.
    checked: u64,
    removed_since: usize,
}

/// Target number of keys in a bucket.
pub const TARGET_FILL: usize = 24;
/// Smallest `shift`, so that an interval's number fits a `u64`.
const MIN_SHIFT: u32 = 64;
/// Least ratio of buckets to those that would just hold all keys. With 4, the ring reaches at least
/// four times as far as the mean waiting time (Little's law).
const REACH: usize = 4;
/// Minimum number of buckets between two checks of the interval width.
const BUCKETS_BETWEEN_CHECKS: usize = 256;

impl Calendar {
    /// Creates a calendar of these keys, at least one, none of which is below `start`.
    pub fn new(mut keys: Vec<u128>, start: u128) -> Self {
        let half = keys.len() / 2;
        let (nearer, &mut middle, _) = keys.select_nth_unstable(half);
        let least = nearer.iter().copied().min().unwrap_or(middle);
        // A first guess from the lower half of the keys; `fit` corrects it.
        let spacing = (middle - least) / (half as u128).max(1);
        let shift = (spacing * TARGET_FILL as u128).max(1).ilog2();
        Self::with_shift(keys, start, shift)
    }

    fn with_shift(keys: Vec<u128>, start: u128, shift: u32) -> Self {
        let shift = shift.clamp(MIN_SHIFT, u128::BITS - 1);
        let mut calendar = Self {
            buckets: vec![Vec::new(); Self::bucket_count(keys.len())],
            free_buckets: Vec::new(),
            shift,
            next: (start >> shift) as u64,
            len: 0,
            overflow: Heap::default(),
            checked: (start >> shift) as u64,
            removed_since: 0,
        };
        keys.into_iter().for_each(|key| calendar.push(key));
        calendar
    }

    const fn bucket_count(keys: usize) -> usize {
        (keys * REACH / TARGET_FILL).next_power_of_two()
    }

    /// Lower bound of all keys in the calendar and of all keys still to come.
    pub fn start(&self) -> u128 {
        u128::from(self.next) << self.shift
    }

    /// Number of keys, in buckets and in the overflow heap.
    #[cfg_attr(feature = "parts", expect(clippy::len_without_is_empty, reason = "nobody asks"))]
    pub fn len(&self) -> usize {
        self.len + self.overflow.len()
    }

    /// Adds a key, which must not be below [`Calendar::start`].
    #[inline]
    pub fn push(&mut self, key: u128) {
        let interval = (key >> self.shift) as u64;
        if interval - self.next < self.buckets.len() as u64 {
            self.len += 1;
            let index = self.bucket_index(interval);
            let bucket = &mut self.buckets[index];
            if bucket.capacity() == 0 {
                *bucket = self.free_buckets.pop().unwrap_or_default();
            }
            bucket.push(key);
        } else {
            self.overflow.push(key);
        }
    }

    /// Advances to the next bucket that is not empty; returns its number of keys, or `None` if no
    /// key is left.
    pub fn next_bucket(&mut self) -> Option<usize> {
        loop {
            let overflow_min = self.overflow.min();
            if self.len == 0 {
                if overflow_min == NO_KEY {
                    return None;
                }
                self.next = (overflow_min >> self.shift) as u64;
            }
            if overflow_min != NO_KEY {
                self.refill_from_overflow();
            }
            let found = self.buckets[self.bucket_index(self.next)].len();
            if found > 0 {
                return Some(found);
            }
            self.next += 1;
        }
    }

    /// Removes the next bucket and passes its keys to `take`, unsorted.
    pub fn take_bucket(&mut self, take: impl FnOnce(&[u128])) {
        let index = self.bucket_index(self.next);
        let mut bucket = core::mem::take(&mut self.buckets[index]);
        take(&bucket);
        self.len -= bucket.len();
        self.removed_since += bucket.len();
        self.next += 1;
        bucket.clear();
        self.free_buckets.push(bucket);
    }

    /// Adapts the interval width to the keys removed since the last check, and the number of
    /// buckets to the keys held. Does nothing if too little was removed since then. No key below
    /// `start` may follow.
    pub fn fit(&mut self, start: u128) {
        // Empty buckets count, too: many keys at one instant must not narrow the intervals.
        let buckets = (self.next - self.checked) as usize;
        let keys = self.removed_since;
        // Rebuilding handles all keys, so it must not be more work than was done since the last
        // check.
        if buckets < BUCKETS_BETWEEN_CHECKS || buckets.saturating_add(keys) < self.len() {
            return;
        }
        (self.checked, self.removed_since) = (self.next, 0);
        let suitable = buckets.saturating_mul(TARGET_FILL);
        let narrower = keys.checked_div(suitable).and_then(usize::checked_ilog2).unwrap_or(0);
        let wider = (suitable / keys.max(1)).checked_ilog2().unwrap_or(0);
        let shift = (self.shift + wider - narrower).max(MIN_SHIFT);
        let count = Self::bucket_count(self.len());
        if shift != self.shift || count > 2 * self.buckets.len() || 4 * count < self.buckets.len() {
            *self = Self::with_shift(self.iter().collect(), start, shift);
        }
    }

    /// All keys, unsorted.
    pub fn iter(&self) -> impl Iterator<Item = u128> {
        self.buckets.iter().flatten().copied().chain(self.overflow.iter())
    }

    /// Moves keys that are no longer beyond the ring into their buckets.
    fn refill_from_overflow(&mut self) {
        loop {
            let key = self.overflow.min();
            if key == NO_KEY || (key >> self.shift) as u64 - self.next >= self.buckets.len() as u64
            {
                return;
            }
            self.overflow.remove_min();
            self.push(key);
        }
    }

    /// Index of the bucket for this interval.
    #[inline]
    const fn bucket_index(&self, interval: u64) -> usize {
        interval as usize & (self.buckets.len() - 1)
    }
}
