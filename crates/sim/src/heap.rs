//! Numbers of which the least comes out first, laid out for the cache.

/// A set of numbers of which the least comes out first; no two are equal, and none is [`NOTHING`].
///
/// As long as there are only a few they are kept in order: nothing is faster. More are in a heap.
#[derive(Debug)]
pub struct Queue {
    /// Numbers in order, the least last; all are below those in the heap.
    front: [u128; FRONT],
    /// How many these are.
    len: usize,
    /// What is below this belongs among them.
    bound: u128,
    heap: Heap,
}

/// Larger than every number.
pub const NOTHING: u128 = u128::MAX;
/// How many numbers are kept in order; with more, moving them would cost more than a heap.
const FRONT: usize = 8;
/// A heap that has shrunk to this is put in order again.
const FEW: usize = FRONT / 2;

impl Default for Queue {
    fn default() -> Self {
        Self { front: [NOTHING; FRONT], len: 0, bound: NOTHING, heap: Heap::default() }
    }
}

impl Queue {
    /// Adds a number.
    // One function for all callers, of which there are many.
    #[inline(never)]
    pub fn push(&mut self, number: u128) {
        if number >= self.bound {
            return self.heap.push(number);
        }
        if self.len == FRONT {
            self.spill();
            if number >= self.bound {
                return self.heap.push(number);
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
        match self.front.get(self.len.wrapping_sub(1)) {
            Some(&least) => least,
            None => self.least_of_heap(),
        }
    }

    #[inline(never)]
    fn least_of_heap(&mut self) -> u128 {
        let least = self.heap.least();
        if self.heap.len > FEW {
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

    /// Takes out what [`Queue::least`] has just told.
    #[inline]
    pub const fn take_least(&mut self) {
        if self.len > 0 {
            self.len -= 1;
        } else {
            self.heap.take_least();
        }
    }

    /// All numbers, in no order.
    pub fn iter(&self) -> impl Iterator<Item = u128> {
        self.front[..self.len].iter().copied().chain(self.heap.iter())
    }
}

/// A 4-ary heap: half as deep as a binary one. The four children of a node share a cache line, so that a step down costs
/// one miss at most. Taking the least leaves its place open: mostly something else comes in at once, and takes it.
#[derive(Debug)]
pub struct Heap {
    /// The first group holds the least number, in its last place; the group `g + 1` holds the children of node `g`.
    groups: Vec<Group>,
    /// How many places are in use, an open one included; in the others is [`NOTHING`].
    len: usize,
    /// Whether the place of the least number is open.
    open: bool,
}

const ARITY: usize = 4;
/// Where the least number is, when places are counted through the groups.
const ROOT: usize = ARITY - 1;

#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Group([u128; ARITY]);

const _: () = assert!(size_of::<Group>() == 64, "a group must fit one cache line");
const EMPTY: Group = Group([NOTHING; ARITY]);

impl Default for Heap {
    fn default() -> Self {
        Self { groups: vec![EMPTY], len: 0, open: false }
    }
}

impl Heap {
    /// Adds a number.
    pub fn push(&mut self, number: u128) {
        if self.open {
            self.open = false;
            self.sift_down(number);
        } else {
            self.push_behind(number);
        }
    }

    fn push_behind(&mut self, number: u128) {
        let mut hole = ROOT + self.len;
        self.len += 1;
        if hole / ARITY == self.groups.len() {
            self.groups.push(EMPTY);
        }
        while hole > ROOT {
            let parent = hole / ARITY - 1 + ROOT;
            let above = *self.place(parent);
            if above <= number {
                break;
            }
            *self.place(hole) = above;
            hole = parent;
        }
        *self.place(hole) = number;
    }

    /// The least number; [`NOTHING`] if there is none.
    #[inline]
    pub fn least(&mut self) -> u128 {
        if self.open {
            self.close();
        }
        self.groups[0].0[ROOT]
    }

    /// Takes out what [`Heap::least`] has just told.
    #[inline]
    pub const fn take_least(&mut self) {
        self.open = true;
    }

    /// All numbers, in no order.
    pub fn iter(&self) -> impl Iterator<Item = u128> {
        let places = self.groups.iter().flat_map(|group| group.0);
        places.skip(ROOT + usize::from(self.open)).filter(|&number| number != NOTHING)
    }

    /// The last number comes to the open place.
    #[inline(never)]
    fn close(&mut self) {
        self.open = false;
        self.len -= 1;
        let last = core::mem::replace(self.place(ROOT + self.len), NOTHING);
        if self.len > 0 {
            self.sift_down(last);
        }
    }

    /// The number belongs in the open place, or below it.
    fn sift_down(&mut self, number: u128) {
        let mut hole = ROOT;
        while let Some(Group([a, b, c, d])) = self.groups.get(hole - ROOT + 1) {
            // Two by two, without a branch that nobody could foretell.
            let (ab, at_ab) = if b < a { (*b, 1) } else { (*a, 0) };
            let (cd, at_cd) = if d < c { (*d, 3) } else { (*c, 2) };
            let (least, at) = if cd < ab { (cd, at_cd) } else { (ab, at_ab) };
            if least >= number {
                break;
            }
            let below = (hole - ROOT + 1) * ARITY + at;
            *self.place(hole) = least;
            hole = below;
        }
        *self.place(hole) = number;
    }

    #[inline]
    fn place(&mut self, place: usize) -> &mut u128 {
        &mut self.groups[place / ARITY].0[place % ARITY]
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    proptest::proptest! {
        /// Runs of pushes and runs of pops, so that the heap fills and becomes empty again and again.
        #[test]
        fn the_least_comes_out_first(ops in proptest::collection::vec((0u128..1000, 0u8..6, 1usize..8), 1..300)) {
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
}
