//! Priority queues of event keys: a 4-ary min-heap, and a calendar queue for keys far from the
//! least. In the calendar, the mean cost of an insertion into its ring or of a bucket's removal
//! does not depend on the number of keys.

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

#[cfg(target_pointer_width = "64")]
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
    /// Value of `next` at the last check of the interval width, or at the start. `removed_since`
    /// counts the keys removed since.
    checked: u64,
    removed_since: usize,
}

/// Target number of keys in a bucket.
pub const TARGET_FILL: usize = 24;
/// Smallest `shift`, so that an interval's number fits a `u64`.
const MIN_SHIFT: u32 = 64;
/// Least ratio, when a ring is built, of its buckets to those that would just hold all keys. With 4
/// and full buckets, the ring reaches about four mean waiting times (Little's law).
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
