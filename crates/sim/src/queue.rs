//! A priority queue of event keys that chooses one of three data structures by its size.

use crate::calendar::{Calendar, FULL};
use crate::heap::{Heap, NOTHING};

/// A priority queue of distinct keys, each below [`NOTHING`], that returns the least key first.
///
/// A few keys are kept in a sorted array, which is fastest. More keys are kept in a heap. Above
/// 512 keys, a [`Calendar`] holds them and one bucket after the other is sorted in advance. So at
/// least 16 of the next keys are known for prefetching.
#[derive(Debug)]
pub struct Queue {
    /// Sorted keys, the least last; all are below the keys elsewhere.
    front: [u128; ROOM],
    /// Number of keys in `front`.
    len: usize,
    /// Exclusive upper bound of the keys that belong in `front`.
    bound: u128,
    /// All other keys; with a calendar, only those that arrived in the interval of the current
    /// bucket.
    heap: Heap,
    crowd: Option<Box<Crowd>>,
    /// Capacity of `front` in the present structure.
    most: usize,
    /// Number of sorted keys at or below which more are sorted.
    in_sight: usize,
}

/// Most keys of a queue with more than [`CROWD`] keys.
#[derive(Debug)]
struct Crowd {
    calendar: Calendar,
    /// Exclusive upper bound of the keys that belong in `front`, `heap` or `bucket`.
    bound: u128,
    /// Rest of a bucket that was too full to be sorted into `front` at once; sorted, the least
    /// last.
    bucket: Vec<u128>,
}

/// Capacity of the sorted array; with more keys, moving them costs more than a heap.
const FRONT: usize = 8;
/// Size at which a shrinking heap becomes a sorted array again.
const FEW: usize = FRONT / 2;
/// Size above which a heap becomes a calendar.
const CROWD: usize = 512;
/// Size below which a shrinking calendar becomes a heap again.
const NO_CROWD: usize = CROWD / 4;
/// Largest bucket that is sorted at once: some buckets are fuller than intended.
const FULL_BUCKET: usize = 2 * FULL;
/// Least number of next keys that are known while there is a calendar.
const IN_SIGHT: usize = 16;
/// Size of the sorted array: the known keys, a bucket, and keys that arrive meanwhile.
const ROOM: usize = IN_SIGHT + FULL_BUCKET + 32;

impl Default for Queue {
    fn default() -> Self {
        Self {
            front: [NOTHING; ROOM],
            len: 0,
            bound: NOTHING,
            heap: Heap::default(),
            crowd: None,
            most: FRONT,
            in_sight: 0,
        }
    }
}

impl Queue {
    /// Adds a key.
    // One copy of the function for its many callers.
    #[inline(never)]
    pub fn push(&mut self, number: u128) {
        if number >= self.bound {
            return self.push_later(number);
        }
        if self.len == self.most {
            self.spill();
            if number >= self.bound {
                return self.push_later(number);
            }
        }
        let mut hole = self.len;
        self.len += 1;
        while let Some(&above) = self.front.get(hole.wrapping_sub(1))
            && above < number
        {
            self.front[hole] = above;
            hole -= 1;
        }
        self.front[hole] = number;
    }

    #[inline]
    fn push_later(&mut self, number: u128) {
        match &mut self.crowd {
            Some(crowd) if number >= crowd.bound => crowd.calendar.push(number),
            Some(_) => self.heap.push(number),
            None => {
                self.heap.push(number);
                if self.heap.len() > CROWD {
                    self.begin_crowd();
                }
            }
        }
    }

    /// Moves the greatest sorted key into the heap.
    #[cold]
    fn spill(&mut self) {
        self.bound = self.front[0];
        self.heap.push(self.bound);
        self.front.copy_within(1.., 0);
        self.len -= 1;
    }

    /// Returns the least key; [`NOTHING`] if the queue is empty.
    #[inline]
    pub fn least(&mut self) -> u128 {
        if self.len <= self.in_sight {
            return self.look_for_least();
        }
        self.front[self.len - 1]
    }

    /// Finds the least key when none, or too few, are sorted.
    #[inline(never)]
    fn look_for_least(&mut self) -> u128 {
        if self.crowd.is_some() {
            return self.least_of_crowd();
        }
        let least = self.heap.least();
        if self.heap.len() > FEW {
            self.bound = 0;
            return least;
        }
        self.bound = NOTHING;
        let mut next = least;
        while next != NOTHING {
            self.push(next);
            self.heap.take_least();
            next = self.heap.least();
        }
        least
    }

    /// Sorts the next keys of the calendar behind those already sorted.
    fn least_of_crowd(&mut self) -> u128 {
        while self.len <= self.in_sight
            && let Some(crowd) = &mut self.crowd
        {
            if self.heap.len() + crowd.bucket.len() > 0 {
                self.draw_near();
                continue;
            }
            crowd.calendar.fit(crowd.bound);
            let few = crowd.calendar.len() + self.len < NO_CROWD;
            let (false, Some(count)) = (few, crowd.calendar.next_bucket()) else {
                self.end_crowd();
                return self.look_for_least();
            };
            if count <= FULL_BUCKET {
                self.front.copy_within(..self.len, count);
                let front = &mut self.front[..count];
                crowd.calendar.take_bucket(|numbers| front.copy_from_slice(numbers));
                front.sort_unstable_by(|a, b| b.cmp(a));
                self.len += count;
            } else {
                crowd.calendar.take_bucket(|numbers| crowd.bucket.extend_from_slice(numbers));
                crowd.bucket.sort_unstable_by(|a, b| b.cmp(a));
            }
            crowd.bound = crowd.calendar.start();
            self.bound = crowd.bound;
        }
        self.front[self.len - 1]
    }

    /// Sorts the least keys of a full bucket, and of those that arrived in its interval, behind
    /// those already sorted.
    fn draw_near(&mut self) {
        let Some(crowd) = &mut self.crowd else { return };
        let count = FULL.min(self.heap.len() + crowd.bucket.len());
        self.front.copy_within(..self.len, count);
        self.len += count;
        for place in self.front[..count].iter_mut().rev() {
            let of_bucket = crowd.bucket.last().copied().unwrap_or(NOTHING);
            *place = self.heap.least().min(of_bucket);
            if *place == of_bucket {
                crowd.bucket.pop();
            } else {
                self.heap.take_least();
            }
        }
        let of_bucket = crowd.bucket.last().copied().unwrap_or(NOTHING);
        self.bound = self.heap.least().min(of_bucket).min(crowd.bound);
    }

    #[cold]
    fn begin_crowd(&mut self) {
        let numbers: Vec<u128> = self.iter().collect();
        let start = numbers.iter().copied().min().unwrap_or(0);
        let calendar = Calendar::new(numbers, start);
        let bound = calendar.start();
        let crowd = Some(Box::new(Crowd { calendar, bound, bucket: Vec::new() }));
        *self = Self { bound, crowd, most: ROOM, in_sight: IN_SIGHT, ..Self::default() };
    }

    #[cold]
    fn end_crowd(&mut self) {
        let mut heap = Heap::default();
        self.iter().for_each(|number| heap.push(number));
        *self = Self { heap, ..Self::default() };
    }

    /// Removes the key that [`Queue::least`] has just returned.
    #[inline]
    pub const fn take_least(&mut self) {
        if self.len > 0 {
            self.len -= 1;
        } else {
            self.heap.take_least();
        }
    }

    /// Key that comes out after `n` others unless smaller ones arrive; `None` if it is not sorted
    /// yet.
    #[inline]
    pub fn ahead(&self, n: usize) -> Option<u128> {
        self.front[..self.len].iter().nth_back(n).copied()
    }

    /// `true` while a calendar holds the keys, so that the next keys are known.
    #[inline]
    pub const fn is_crowded(&self) -> bool {
        self.crowd.is_some()
    }

    /// All keys, unsorted.
    pub fn iter(&self) -> impl Iterator<Item = u128> {
        let crowd = self
            .crowd
            .iter()
            .flat_map(|crowd| crowd.calendar.iter().chain(crowd.bucket.iter().copied()));
        self.front[..self.len].iter().copied().chain(self.heap.iter()).chain(crowd)
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
                        let least = queue.least();
                        proptest::prop_assert_eq!(least, model.pop_first().unwrap_or(NOTHING));
                        if least != NOTHING {
                            queue.take_least();
                        }
                    } else {
                        pushed += 1;
                        let number = ((high * 7919 + pushed * 104_729) % 1000) << 64 | pushed;
                        queue.push(number);
                        model.insert(number);
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
    fn the_least_of_a_crowd_comes_out_first() {
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
                        let number = (now + after) << 64 | pushed;
                        queue.push(number);
                        model.insert(number);
                    }
                    if model.len() > size || size == 0 {
                        let least = queue.least();
                        assert_eq!(Some(least), model.pop_first(), "spread {spread}, size {size}");
                        queue.take_least();
                        now = least >> 64;
                    }
                }
                let all: BTreeSet<u128> = queue.iter().collect();
                assert_eq!(all, model);
                if !(NO_CROWD..=CROWD).contains(&size) {
                    assert_eq!(queue.is_crowded(), size > CROWD, "spread {spread}, {size}");
                }
                if queue.is_crowded() {
                    let known: Vec<u128> = (0..IN_SIGHT).map_while(|n| queue.ahead(n)).collect();
                    assert_eq!(known.len(), IN_SIGHT, "spread {spread}, {size}");
                    assert!(known.iter().eq(model.iter().take(IN_SIGHT)));
                }
            }
        }
    }
}
