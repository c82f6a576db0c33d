//! A priority queue of event keys that chooses one of three data structures by its size.

use crate::priority_queues::{Calendar, Heap, NO_KEY, TARGET_FILL};

/// A priority queue of distinct keys, each below [`NO_KEY`], that returns the least key first.
///
/// A few keys are kept in a sorted array, which is fastest. More keys are kept in a heap. From more
/// than 512 keys until fewer than 128 are left, a [`Calendar`] holds them, and one bucket after the
/// other is sorted in advance. So at least 16 of the next keys are known for prefetching.
#[derive(Debug)]
pub struct Queue {
    /// Sorted keys, the least last; all are below the keys elsewhere.
    sorted: [u128; ARRAY_SIZE],
    /// Number of keys in `sorted`.
    len: usize,
    /// Exclusive upper bound of the keys that belong in `sorted`.
    bound: u128,
    /// All other keys; with a calendar, only those from `bound` to below the `bound` of its part.
    heap: Heap,
    calendar: Option<Box<CalendarPart>>,
    /// Capacity of `sorted` in the present structure.
    capacity: usize,
    /// Number of sorted keys at or below which more are sorted.
    lookahead: usize,
}

/// Most keys of a queue with a calendar.
#[derive(Debug)]
struct CalendarPart {
    calendar: Calendar,
    /// Exclusive upper bound of the keys that belong in `sorted`, `heap` or `bucket`.
    bound: u128,
    /// Rest of a bucket that was too full to be sorted into `sorted` at once; sorted, the least
    /// last.
    bucket: Vec<u128>,
}

/// Capacity of the sorted array without a calendar; with more keys, moving them costs more than a
/// heap.
const SORTED_MAX: usize = 8;
/// Size at which a shrinking heap becomes a sorted array again.
const SORT_UP_TO: usize = SORTED_MAX / 2;
/// Size above which a heap becomes a calendar.
const CALENDAR_ABOVE: usize = 512;
/// Size below which a shrinking calendar becomes a heap again.
const HEAP_BELOW: usize = CALENDAR_ABOVE / 4;
/// Largest bucket that is sorted at once: some buckets are fuller than intended.
const MAX_SORTED_BUCKET: usize = 2 * TARGET_FILL;
/// Minimum number of next keys that are known while there is a calendar.
const LOOKAHEAD: usize = 16;
/// Size of the sorted array: the known keys, a bucket, and keys that arrive meanwhile.
const ARRAY_SIZE: usize = LOOKAHEAD + MAX_SORTED_BUCKET + 32;

impl Default for Queue {
    fn default() -> Self {
        Self {
            sorted: [NO_KEY; ARRAY_SIZE],
            len: 0,
            bound: NO_KEY,
            heap: Heap::default(),
            calendar: None,
            capacity: SORTED_MAX,
            lookahead: 0,
        }
    }
}

impl Queue {
    /// Adds a key.
    // One copy of the function for its many callers.
    #[inline(never)]
    pub fn push(&mut self, key: u128) {
        if key >= self.bound {
            return self.push_unsorted(key);
        }
        if self.len == self.capacity {
            self.spill();
            if key >= self.bound {
                return self.push_unsorted(key);
            }
        }
        let mut hole = self.len;
        self.len += 1;
        while let Some(&above) = self.sorted.get(hole.wrapping_sub(1))
            && above < key
        {
            self.sorted[hole] = above;
            hole -= 1;
        }
        self.sorted[hole] = key;
    }

    #[inline]
    fn push_unsorted(&mut self, key: u128) {
        match &mut self.calendar {
            Some(part) if key >= part.bound => part.calendar.push(key),
            Some(_) => self.heap.push(key),
            None => {
                self.heap.push(key);
                if self.heap.len() > CALENDAR_ABOVE {
                    self.switch_to_calendar();
                }
            }
        }
    }

    /// Moves the greatest sorted key into the heap.
    #[cold]
    fn spill(&mut self) {
        self.bound = self.sorted[0];
        self.heap.push(self.bound);
        self.sorted.copy_within(1.., 0);
        self.len -= 1;
    }

    /// Returns the least key; [`NO_KEY`] if the queue is empty.
    #[inline]
    pub fn min(&mut self) -> u128 {
        if self.len <= self.lookahead {
            return self.find_min();
        }
        self.sorted[self.len - 1]
    }

    /// Finds the least key when none, or too few, are sorted.
    #[inline(never)]
    fn find_min(&mut self) -> u128 {
        if self.calendar.is_some() {
            return self.sort_from_calendar();
        }
        let least = self.heap.min();
        if self.heap.len() > SORT_UP_TO {
            self.bound = 0;
            return least;
        }
        self.bound = NO_KEY;
        let mut next = least;
        while next != NO_KEY {
            self.push(next);
            self.heap.remove_min();
            next = self.heap.min();
        }
        least
    }

    /// Sorts the next keys of the calendar behind those already sorted.
    fn sort_from_calendar(&mut self) -> u128 {
        while self.len <= self.lookahead
            && let Some(part) = &mut self.calendar
        {
            if self.heap.len() + part.bucket.len() > 0 {
                self.merge_bucket();
                continue;
            }
            part.calendar.fit(part.bound);
            let few = part.calendar.len() + self.len < HEAP_BELOW;
            let (false, Some(count)) = (few, part.calendar.next_bucket()) else {
                self.switch_to_heap();
                return self.find_min();
            };
            if count <= MAX_SORTED_BUCKET {
                self.sorted.copy_within(..self.len, count);
                let sorted = &mut self.sorted[..count];
                part.calendar.take_bucket(|keys| sorted.copy_from_slice(keys));
                sorted.sort_unstable_by(|a, b| b.cmp(a));
                self.len += count;
            } else {
                part.calendar.take_bucket(|keys| part.bucket.extend_from_slice(keys));
                part.bucket.sort_unstable_by(|a, b| b.cmp(a));
            }
            part.bound = part.calendar.start();
            self.bound = part.bound;
        }
        self.sorted[self.len - 1]
    }

    /// Sorts the least keys of a full bucket, and of those that arrived in its interval, behind
    /// those already sorted.
    fn merge_bucket(&mut self) {
        let Some(part) = &mut self.calendar else { return };
        let count = TARGET_FILL.min(self.heap.len() + part.bucket.len());
        self.sorted.copy_within(..self.len, count);
        self.len += count;
        for entry in self.sorted[..count].iter_mut().rev() {
            let bucket_min = part.bucket.last().copied().unwrap_or(NO_KEY);
            *entry = self.heap.min().min(bucket_min);
            if *entry == bucket_min {
                part.bucket.pop();
            } else {
                self.heap.remove_min();
            }
        }
        let bucket_min = part.bucket.last().copied().unwrap_or(NO_KEY);
        self.bound = self.heap.min().min(bucket_min).min(part.bound);
    }

    #[cold]
    fn switch_to_calendar(&mut self) {
        let keys: Vec<u128> = self.iter().collect();
        let start = keys.iter().copied().min().unwrap_or(0);
        let calendar = Calendar::new(keys, start);
        let bound = calendar.start();
        let part = Some(Box::new(CalendarPart { calendar, bound, bucket: Vec::new() }));
        *self = Self {
            bound,
            calendar: part,
            capacity: ARRAY_SIZE,
            lookahead: LOOKAHEAD,
            ..Self::default()
        };
    }

    #[cold]
    fn switch_to_heap(&mut self) {
        let mut heap = Heap::default();
        self.iter().for_each(|key| heap.push(key));
        *self = Self { heap, ..Self::default() };
    }

    /// Removes the key that [`Queue::min`] has just returned.
    #[inline]
    pub const fn remove_min(&mut self) {
        if self.len > 0 {
            self.len -= 1;
        } else {
            self.heap.remove_min();
        }
    }

    /// Key that comes out after `n` others unless smaller ones arrive; `None` if it is not sorted
    /// yet.
    #[inline]
    pub fn peek(&self, n: usize) -> Option<u128> {
        self.sorted[..self.len].iter().nth_back(n).copied()
    }

    /// `true` while a calendar holds the keys, so that the next keys are known.
    #[inline]
    pub const fn has_calendar(&self) -> bool {
        self.calendar.is_some()
    }

    /// All keys, unsorted.
    pub fn iter(&self) -> impl Iterator<Item = u128> {
        let part = self
            .calendar
            .iter()
            .flat_map(|part| part.calendar.iter().chain(part.bucket.iter().copied()));
        self.sorted[..self.len].iter().copied().chain(self.heap.iter()).chain(part)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use cwnd_quantity::{Duration, Rng};

    use super::*;

    proptest::proptest! {
        /// Pushes and pops in series, so that the heap fills and empties again and again.
        #[test]
        fn the_least_comes_out_first(
            ops in proptest::collection::vec((0u128..1000, 0u8..6, 1usize..8), 1..300)
        ) {
            let mut queue = Queue::default();
            let mut model = BTreeSet::new();
            let mut pushed = 0;
            for (high, op, times) in ops {
                for _ in 0..times {
                    if op < 3 {
                        let least = queue.min();
                        proptest::prop_assert_eq!(least, model.pop_first().unwrap_or(NO_KEY));
                        if least != NO_KEY {
                            queue.remove_min();
                        }
                    } else {
                        pushed += 1;
                        let key = ((high * 7919 + pushed * 104_729) % 1000) << 64 | pushed;
                        queue.push(key);
                        model.insert(key);
                    }
                    let all: BTreeSet<u128> = queue.iter().collect();
                    proptest::prop_assert_eq!(&all, &model);
                }
            }
        }
    }

    /// A calendar that grows and shrinks, with keys close together, far apart, at one instant or at
    /// two.
    #[test]
    fn the_least_key_of_a_calendar_comes_out_first() {
        let mut rng = Rng::named(1, "crowd");
        for spread in [1, 1 << 10, 1 << 30, 1 << 50] {
            let mut queue = Queue::default();
            let mut model = BTreeSet::new();
            let (mut now, mut pushed) = (0, 0);
            for size in [20_000, 300, 3_000, 10, 50_000, 0] {
                let mut turns = 0;
                while model.len() != size || turns < 2 * size {
                    turns += 1;
                    // Each push is followed by a pop once the queue has its size.
                    if model.len() <= size && size > 0 {
                        pushed += 1;
                        let far = if rng.chance(0.1) { spread * 100 } else { spread };
                        let after = u128::from(rng.duration_up_to(Duration(far)).0);
                        let key = (now + after) << 64 | pushed;
                        queue.push(key);
                        model.insert(key);
                    }
                    if model.len() > size || size == 0 {
                        let least = queue.min();
                        assert_eq!(Some(least), model.pop_first(), "spread {spread}, size {size}");
                        queue.remove_min();
                        now = least >> 64;
                    }
                }
                let all: BTreeSet<u128> = queue.iter().collect();
                assert_eq!(all, model);
                if !(HEAP_BELOW..=CALENDAR_ABOVE).contains(&size) {
                    assert_eq!(
                        queue.has_calendar(),
                        size > CALENDAR_ABOVE,
                        "spread {spread}, {size}"
                    );
                }
                if queue.has_calendar() {
                    let known: Vec<u128> = (0..LOOKAHEAD).map_while(|n| queue.peek(n)).collect();
                    assert_eq!(known.len(), LOOKAHEAD, "spread {spread}, {size}");
                    assert!(known.iter().eq(model.iter().take(LOOKAHEAD)));
                }
            }
        }
    }
}
