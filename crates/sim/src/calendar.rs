//! A calendar queue for keys far from the least: the cost of an insertion or of a bucket's removal
//! does not depend on the number of keys.

use crate::heap::{Heap, NOTHING};

/// A calendar queue (Brown 1988, "Calendar Queues") that returns the keys of a whole bucket at
/// once.
///
/// A bucket holds the keys of one interval. The width of the intervals adapts until a bucket holds
/// about [`FULL`] keys. The buckets form a ring that starts with the next one; keys beyond the ring
/// wait in a heap.
#[derive(Debug)]
pub struct Calendar {
    /// Ring of buckets; its length is a power of two.
    buckets: Vec<Vec<u128>>,
    /// Free list of the memory of removed buckets, the most recently used last, which is still in
    /// the cache.
    emptied: Vec<Vec<u128>>,
    /// Width of an interval as a power of two: a key's interval is `key >> shift`.
    shift: u32,
    /// Interval of the next bucket.
    next: u64,
    /// Number of keys in buckets, without those in `beyond`.
    len: usize,
    beyond: Heap,
    /// Value of `next` at the last check of the interval width. `taken` counts the keys removed
    /// since.
    tried: u64,
    taken: usize,
}

/// Target number of keys in a bucket.
pub const FULL: usize = 24;
/// Smallest `shift`, so that an interval's number fits a `u64`.
const LEAST_SHIFT: u32 = 64;
/// Ratio of buckets to those that would just hold all keys. With 4, the ring reaches four times as
/// far as the mean waiting time (Little's law).
const REACH: usize = 4;
/// Least number of buckets between two checks of the interval width.
const TRIAL: usize = 256;

impl Calendar {
    /// Creates a calendar of these keys, none of which is below `start`.
    pub fn new(mut numbers: Vec<u128>, start: u128) -> Self {
        let half = numbers.len() / 2;
        let (nearer, &mut middle, _) = numbers.select_nth_unstable(half);
        let least = nearer.iter().copied().min().unwrap_or(middle);
        // A first guess from the lower half of the keys; `fit` corrects it.
        let apart = (middle - least) / (half as u128).max(1);
        let shift = (apart * FULL as u128).max(1).ilog2();
        Self::with_shift(numbers, start, shift)
    }

    fn with_shift(numbers: Vec<u128>, start: u128, shift: u32) -> Self {
        let shift = shift.clamp(LEAST_SHIFT, u128::BITS - 1);
        let mut calendar = Self {
            buckets: vec![Vec::new(); Self::suitable_count(numbers.len())],
            emptied: Vec::new(),
            shift,
            next: (start >> shift) as u64,
            len: 0,
            beyond: Heap::default(),
            tried: (start >> shift) as u64,
            taken: 0,
        };
        numbers.into_iter().for_each(|number| calendar.push(number));
        calendar
    }

    const fn suitable_count(numbers: usize) -> usize {
        (numbers * REACH / FULL).next_power_of_two()
    }

    /// Lower bound of all keys in the calendar and of all keys still to come.
    pub fn start(&self) -> u128 {
        u128::from(self.next) << self.shift
    }

    /// Number of keys, in buckets and beyond.
    #[cfg_attr(feature = "parts", expect(clippy::len_without_is_empty, reason = "nobody asks"))]
    pub fn len(&self) -> usize {
        self.len + self.beyond.len()
    }

    /// Adds a key, which must not be below [`Calendar::start`].
    #[inline]
    pub fn push(&mut self, number: u128) {
        let interval = (number >> self.shift) as u64;
        if interval - self.next < self.buckets.len() as u64 {
            self.len += 1;
            let place = self.place(interval);
            let bucket = &mut self.buckets[place];
            if bucket.capacity() == 0 {
                *bucket = self.emptied.pop().unwrap_or_default();
            }
            bucket.push(number);
        } else {
            self.beyond.push(number);
        }
    }

    /// Advances to the next bucket that is not empty; returns its number of keys, or `None` if no
    /// key is left.
    pub fn next_bucket(&mut self) -> Option<usize> {
        loop {
            let least_beyond = self.beyond.least();
            if self.len == 0 {
                if least_beyond == NOTHING {
                    return None;
                }
                self.next = (least_beyond >> self.shift) as u64;
            }
            if least_beyond != NOTHING {
                self.draw_near();
            }
            let found = self.buckets[self.place(self.next)].len();
            if found > 0 {
                return Some(found);
            }
            self.next += 1;
        }
    }

    /// Removes the next bucket and passes its keys to `take`, unsorted.
    pub fn take_bucket(&mut self, take: impl FnOnce(&[u128])) {
        let place = self.place(self.next);
        let mut bucket = core::mem::take(&mut self.buckets[place]);
        take(&bucket);
        self.len -= bucket.len();
        self.taken += bucket.len();
        self.next += 1;
        bucket.clear();
        self.emptied.push(bucket);
    }

    /// Adapts the interval width and the number of buckets to the keys seen since the last check.
    /// No key below `start` may follow.
    pub fn fit(&mut self, start: u128) {
        // Empty buckets count, too: many keys at one instant must not narrow the intervals.
        let buckets = (self.next - self.tried) as usize;
        let numbers = self.taken;
        // Rebuilding handles all keys, so it must not be more work than was done since the last
        // check.
        if buckets < TRIAL || buckets.saturating_add(numbers) < self.len() {
            return;
        }
        (self.tried, self.taken) = (self.next, 0);
        let suitable = buckets.saturating_mul(FULL);
        let narrower = numbers.checked_div(suitable).and_then(usize::checked_ilog2).unwrap_or(0);
        let wider = (suitable / numbers.max(1)).checked_ilog2().unwrap_or(0);
        let shift = (self.shift + wider - narrower).max(LEAST_SHIFT);
        let count = Self::suitable_count(self.len());
        if shift != self.shift || count > 2 * self.buckets.len() || 4 * count < self.buckets.len() {
            *self = Self::with_shift(self.iter().collect(), start, shift);
        }
    }

    /// All keys, unsorted.
    pub fn iter(&self) -> impl Iterator<Item = u128> {
        self.buckets.iter().flatten().copied().chain(self.beyond.iter())
    }

    /// Moves keys that are no longer beyond the ring into their buckets.
    fn draw_near(&mut self) {
        loop {
            let number = self.beyond.least();
            if number == NOTHING
                || (number >> self.shift) as u64 - self.next >= self.buckets.len() as u64
            {
                return;
            }
            self.beyond.take_least();
            self.push(number);
        }
    }

    /// Index of the bucket for this interval.
    #[inline]
    const fn place(&self, interval: u64) -> usize {
        interval as usize & (self.buckets.len() - 1)
    }
}
