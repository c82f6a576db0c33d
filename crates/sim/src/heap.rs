//! A 4-ary min-heap of event keys.

/// Result for an empty heap; larger than each key.
pub const NO_KEY: u128 = u128::MAX;

/// A 4-ary min-heap: half as deep as a binary heap.
///
/// The four children of a node share a cache line, so that a step down costs at most one miss.
/// Removing the least key leaves a hole at the root, which the next insertion mostly fills.
#[derive(Debug)]
pub struct Heap {
    /// Group 0 holds the root in its last place; group `g + 1` holds the children of node `g`.
    groups: Vec<Group>,
    /// Number of places in use, with the hole; the other places hold [`NO_KEY`].
    len: usize,
    /// `true` if the root is a hole.
    has_hole: bool,
}

const ARITY: usize = 4;
/// Place of the root, counting places through all groups.
const ROOT: usize = ARITY - 1;

#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Group([u128; ARITY]);

const _: () = assert!(size_of::<Group>() == 64, "a group must fit one cache line");
const EMPTY: Group = Group([NO_KEY; ARITY]);

impl Default for Heap {
    fn default() -> Self {
        Self { groups: vec![EMPTY], len: 0, has_hole: false }
    }
}

impl Heap {
    /// Adds a key.
    pub fn push(&mut self, key: u128) {
        if self.has_hole {
            self.has_hole = false;
            self.sift_down(key);
        } else {
            self.push_last(key);
        }
    }

    fn push_last(&mut self, key: u128) {
        let mut hole = ROOT + self.len;
        self.len += 1;
        if hole / ARITY == self.groups.len() {
            self.groups.push(EMPTY);
        }
        while hole > ROOT {
            let parent = hole / ARITY - 1 + ROOT;
            let above = *self.place(parent);
            if above <= key {
                break;
            }
            *self.place(hole) = above;
            hole = parent;
        }
        *self.place(hole) = key;
    }

    /// Returns the least key; [`NO_KEY`] if the heap is empty.
    #[inline]
    pub fn min(&mut self) -> u128 {
        if self.has_hole {
            self.fill_hole();
        }
        self.groups[0].0[ROOT]
    }

    /// Removes the key that [`Heap::min`] has just returned.
    #[inline]
    pub const fn remove_min(&mut self) {
        self.has_hole = true;
    }

    /// Number of keys.
    #[inline]
    #[cfg_attr(feature = "parts", expect(clippy::len_without_is_empty, reason = "nobody asks"))]
    pub fn len(&self) -> usize {
        self.len - usize::from(self.has_hole)
    }

    /// All keys, unsorted.
    pub fn iter(&self) -> impl Iterator<Item = u128> {
        let places = self.groups.iter().flat_map(|group| group.0);
        places.skip(ROOT + usize::from(self.has_hole)).filter(|&key| key != NO_KEY)
    }

    /// Fills the hole at the root with the last key.
    #[inline(never)]
    fn fill_hole(&mut self) {
        self.has_hole = false;
        self.len -= 1;
        let last = core::mem::replace(self.place(ROOT + self.len), NO_KEY);
        if self.len > 0 {
            self.sift_down(last);
        }
    }

    /// Sifts a key down from the hole at the root.
    fn sift_down(&mut self, key: u128) {
        let mut hole = ROOT;
        while let Some(Group([a, b, c, d])) = self.groups.get(hole - ROOT + 1) {
            // Pairwise minima need no unpredictable branches.
            let (ab, at_ab) = if b < a { (*b, 1) } else { (*a, 0) };
            let (cd, at_cd) = if d < c { (*d, 3) } else { (*c, 2) };
            let (least, at) = if cd < ab { (cd, at_cd) } else { (ab, at_ab) };
            if least >= key {
                break;
            }
            let below = (hole - ROOT + 1) * ARITY + at;
            *self.place(hole) = least;
            hole = below;
        }
        *self.place(hole) = key;
    }

    #[inline]
    fn place(&mut self, place: usize) -> &mut u128 {
        &mut self.groups[place / ARITY].0[place % ARITY]
    }
}
