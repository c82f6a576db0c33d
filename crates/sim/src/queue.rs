//! Numbers of which the least comes out first, in one of three ways, by how many there are.

use crate::calendar::{Calendar, FULL};
use crate::heap::{Heap, NOTHING};

/// A set of numbers of which the least comes out first; no two are equal, and none is [`NOTHING`].
///
/// As long as there are only a few they are kept in order: nothing is faster. More are in a heap. A crowd is in a
/// [`Calendar`], of which one bucket after the other is put in order, before it is its turn: some of the numbers that come
/// next are always known.
#[derive(Debug)]
pub struct Queue {
    /// Numbers in order, the least last; all are below the others.
    front: [u128; ROOM],
    /// How many these are.
    len: usize,
    /// What is below this belongs among them.
    bound: u128,
    /// All others; of a crowd those that came into the interval of the bucket whose turn it is.
    heap: Heap,
    crowd: Option<Box<Crowd>>,
    /// How many are kept in order at most.
    most: usize,
    /// With no more than these in order, others are put in order behind them.
    in_sight: usize,
}

/// Most of the numbers, if they are many.
#[derive(Debug)]
struct Crowd {
    calendar: Calendar,
    /// What is below this belongs nearer.
    bound: u128,
    /// What is left of a bucket that was too full, in order, the least last.
    bucket: Vec<u128>,
}

/// How many numbers are kept in order; with more, moving them would cost more than a heap.
const FRONT: usize = 8;
/// A heap that has shrunk to this is put in order again.
const FEW: usize = FRONT / 2;
/// A heap that has grown to this is a crowd.
const CROWD: usize = 512;
/// A crowd that has shrunk to this is none any more.
const NO_CROWD: usize = CROWD / 4;
/// The most numbers of a bucket that are put in order at once: some buckets are fuller than they should be.
const FULL_BUCKET: usize = 2 * FULL;
/// So many of the next numbers of a crowd are known at least.
const IN_SIGHT: usize = 16;
/// Room for all these, and for what comes meanwhile.
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
    /// Adds a number.
    // One function for all callers, of which there are many.
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

    /// The greatest of those in order goes into the heap.
    #[cold]
    fn spill(&mut self) {
        self.bound = self.front[0];
        self.heap.push(self.bound);
        self.front.copy_within(1.., 0);
        self.len -= 1;
    }

    /// The least number; [`NOTHING`] if there is none.
    #[inline]
    pub fn least(&mut self) -> u128 {
        if self.len <= self.in_sight {
            return self.look_for_least();
        }
        self.front[self.len - 1]
    }

    /// The least number, when none or too few are in order.
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

    /// Puts the next numbers of a crowd in order, behind those that are.
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

    /// Puts the least of a full bucket and of what came into its interval in order, behind those that are.
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

    /// Takes out what [`Queue::least`] has just told.
    #[inline]
    pub const fn take_least(&mut self) {
        if self.len > 0 {
            self.len -= 1;
        } else {
            self.heap.take_least();
        }
    }

    /// The number that comes out after `n` others, unless smaller ones come in; it is known of a crowd.
    #[inline]
    pub fn ahead(&self, n: usize) -> Option<u128> {
        self.front[..self.len].iter().nth_back(n).copied()
    }

    /// Whether there are so many that it is known what comes next.
    #[inline]
    pub const fn is_crowded(&self) -> bool {
        self.crowd.is_some()
    }

    /// All numbers, in no order.
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
        /// Runs of pushes and runs of pops, so that the heap fills and becomes empty again and again.
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

    /// A crowd that grows and shrinks, whose numbers lie close, far, all in one place or in two.
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
                    // One comes out for each that goes in, once there are as many as there should be.
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
