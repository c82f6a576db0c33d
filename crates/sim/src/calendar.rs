//! Numbers far from the least, in buckets: neither putting one in nor taking a bucket out depends on how many there are.

use crate::heap::{Heap, NOTHING};

/// Numbers of which those of the next bucket come out together (Brown 1988, "Calendar Queues").
///
/// A bucket holds the numbers of one interval; the intervals are as wide as makes [`FULL`] numbers in each. The buckets are
/// a ring that begins with the next one; what lies beyond all of them waits in a heap.
#[derive(Debug)]
pub struct Calendar {
    /// As many as a power of two.
    buckets: Vec<Vec<u128>>,
    /// Memory of buckets that were taken, for those that are filled next: the last one is still in the cache.
    emptied: Vec<Vec<u128>>,
    /// A number's interval is what is left of it without so many bits.
    shift: u32,
    /// The interval of the next bucket.
    next: u64,
    /// How many numbers are in buckets.
    len: usize,
    beyond: Heap,
    /// The next interval, and the numbers taken since, when it was last seen whether the buckets suit.
    tried: u64,
    taken: usize,
}

/// Numbers in a bucket, about.
pub const FULL: usize = 24;
/// An interval is a `u64`.
const LEAST_SHIFT: u32 = 64;
/// How many times as many buckets as would hold all numbers: they reach four times as far as numbers wait on average
/// (Little's law).
const REACH: usize = 4;
/// So many buckets say whether they suit the numbers, if many numbers came out meanwhile.
const TRIAL: usize = 256;

impl Calendar {
    /// A calendar of these numbers, none of which is below `start`.
    pub fn new(mut numbers: Vec<u128>, start: u128) -> Self {
        let half = numbers.len() / 2;
        let (nearer, &mut middle, _) = numbers.select_nth_unstable(half);
        let least = nearer.iter().copied().min().unwrap_or(middle);
        // A first guess: what comes later corrects it.
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

    /// Every number in it is at least this, and every number that is to come.
    pub fn start(&self) -> u128 {
        u128::from(self.next) << self.shift
    }

    /// How many numbers there are.
    #[cfg_attr(feature = "parts", expect(clippy::len_without_is_empty, reason = "nobody asks"))]
    pub fn len(&self) -> usize {
        self.len + self.beyond.len()
    }

    /// Adds a number, not below [`Calendar::start`].
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

    /// How many numbers the next bucket holds that is not empty, which becomes the next; `None` if there is none.
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

    /// Hands over the numbers of that bucket, in no order.
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

    /// Makes other buckets if those that passed did not suit the numbers; nothing below `start` is to come.
    pub fn fit(&mut self, start: u128) {
        // Empty ones count, too: numbers that come many at an instant do not come close together for that.
        let buckets = (self.next - self.tried) as usize;
        let numbers = self.taken;
        // It is as much work as those were.
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

    /// All numbers, in no order.
    pub fn iter(&self) -> impl Iterator<Item = u128> {
        self.buckets.iter().flatten().copied().chain(self.beyond.iter())
    }

    /// What lay beyond the buckets and does no more comes in.
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

    /// Which bucket holds this interval.
    #[inline]
    const fn place(&self, interval: u64) -> usize {
        interval as usize & (self.buckets.len() - 1)
    }
}
