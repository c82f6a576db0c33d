//! An ordered map that is fast while it is small, as most maps of a connection are.

use alloc::collections::{BTreeMap, VecDeque};

/// An ordered map: a deque up to `MOST_IN_DEQUE` entries, searched by bisection; a B-tree above.
///
/// Cost: O(1) at the ends of a deque, otherwise O(log n); an insertion or removal in a deque moves
/// up to `MOST_IN_DEQUE / 2` entries. Conversions between the forms take O(n). They are more than
/// `MOST_IN_DEQUE / 2` insertions or removals apart, so the amortised cost stays O(log n).
#[derive(Clone, Debug)]
pub struct SortedMap<K, V>(Form<K, V>);

#[derive(Clone, Debug)]
enum Form<K, V> {
    Deque(VecDeque<(K, V)>),
    Tree(BTreeMap<K, V>),
}

/// A key and its value, if there is such an entry.
type Entry<K, V> = Option<(K, V)>;

/// Most entries of the deque; a B-tree becomes a deque again at a quarter of that.
const MOST_IN_DEQUE: usize = 4096;

impl<K, V> Default for SortedMap<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K, V> SortedMap<K, V> {
    /// Creates an empty map.
    pub const fn new() -> Self {
        Self(Form::Deque(VecDeque::new()))
    }

    /// `true` if there is no entry.
    #[inline]
    pub fn is_empty(&self) -> bool {
        match &self.0 {
            Form::Deque(entries) => entries.is_empty(),
            Form::Tree(entries) => entries.is_empty(),
        }
    }

    /// Number of entries.
    #[inline]
    pub fn len(&self) -> usize {
        match &self.0 {
            Form::Deque(entries) => entries.len(),
            Form::Tree(entries) => entries.len(),
        }
    }

    /// Removes all entries.
    pub fn clear(&mut self) {
        match &mut self.0 {
            Form::Deque(entries) => entries.clear(),
            Form::Tree(_) => *self = Self::new(),
        }
    }

    /// Prefetches the first and the last entry of a deque.
    #[inline]
    pub fn prefetch(&self) {
        if let Form::Deque(entries) = &self.0 {
            entries.front().into_iter().chain(entries.back()).for_each(cwnd_memory::prefetch);
        }
    }
}

impl<K: Copy + Ord, V: Copy> SortedMap<K, V> {
    /// Returns the entry with the least key.
    #[inline]
    pub fn first(&self) -> Option<(K, V)> {
        match &self.0 {
            Form::Deque(entries) => entries.front().copied(),
            Form::Tree(entries) => entries.first_key_value().map(copy),
        }
    }

    /// Returns the entry with the greatest key.
    #[inline]
    pub fn last(&self) -> Option<(K, V)> {
        match &self.0 {
            Form::Deque(entries) => entries.back().copied(),
            Form::Tree(entries) => entries.last_key_value().map(copy),
        }
    }

    /// Returns the last entry with a key below `key`.
    // Neither this search nor `from` and `around` are inlined: one copy of the code stays in the
    // instruction cache.
    #[inline(never)]
    pub fn below(&self, key: K) -> Option<(K, V)> {
        match &self.0 {
            Form::Deque(entries) => entries.get(lower_bound(entries, key).checked_sub(1)?).copied(),
            Form::Tree(entries) => tree_below(entries, key),
        }
    }

    /// Returns the first entry with a key of `key` or above.
    #[inline(never)]
    pub fn from(&self, key: K) -> Option<(K, V)> {
        match &self.0 {
            Form::Deque(entries) => entries.get(lower_bound(entries, key)).copied(),
            Form::Tree(entries) => tree_from(entries, key),
        }
    }

    /// Returns both [`SortedMap::below`] and [`SortedMap::from`]; searches a deque once.
    #[inline(never)]
    pub fn around(&self, key: K) -> (Entry<K, V>, Entry<K, V>) {
        match &self.0 {
            Form::Deque(entries) => {
                let i = lower_bound(entries, key);
                let below = i.checked_sub(1).and_then(|before| entries.get(before));
                (below.copied(), entries.get(i).copied())
            }
            Form::Tree(entries) => (tree_below(entries, key), tree_from(entries, key)),
        }
    }

    /// Iterates over the entries from `from` up to, not including, `to`. Requires `from <= to`.
    pub fn range(&self, from: K, to: K) -> impl DoubleEndedIterator<Item = (K, V)> {
        let (deque, tree) = match &self.0 {
            Form::Deque(entries) => {
                let within = lower_bound(entries, from)..lower_bound(entries, to);
                (Some(entries.range(within)), None)
            }
            Form::Tree(entries) => (None, Some(entries.range(from..to))),
        };
        deque.into_iter().flatten().copied().chain(tree.into_iter().flatten().map(copy))
    }

    /// Iterates over all entries in the order of their keys.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (K, V)> {
        let (deque, tree) = match &self.0 {
            Form::Deque(entries) => (Some(entries.iter()), None),
            Form::Tree(entries) => (None, Some(entries.iter())),
        };
        deque.into_iter().flatten().copied().chain(tree.into_iter().flatten().map(copy))
    }

    /// Returns the value of a key.
    #[inline]
    pub fn get(&self, key: K) -> Option<V> {
        match &self.0 {
            Form::Deque(entries) => {
                entries.get(lower_bound(entries, key)).filter(|e| e.0 == key).map(|e| e.1)
            }
            Form::Tree(entries) => entries.get(&key).copied(),
        }
    }

    /// Sets the value of a key, replacing an earlier one.
    #[inline(never)]
    pub fn insert(&mut self, key: K, value: V) {
        match &mut self.0 {
            Form::Deque(entries) => {
                let i = lower_bound(entries, key);
                if let Some(entry) = entries.get_mut(i).filter(|entry| entry.0 == key) {
                    entry.1 = value;
                } else if entries.len() < MOST_IN_DEQUE {
                    entries.insert(i, (key, value));
                } else {
                    self.grow(key, value);
                }
            }
            Form::Tree(entries) => tree_insert(entries, key, value),
        }
    }

    #[cold]
    fn grow(&mut self, key: K, value: V) {
        let mut entries: BTreeMap<K, V> = self.iter().collect();
        entries.insert(key, value);
        self.0 = Form::Tree(entries);
    }

    /// Removes the entry of a key; returns its value.
    #[inline(never)]
    pub fn remove(&mut self, key: K) -> Option<V> {
        match &mut self.0 {
            Form::Deque(entries) => {
                let i = lower_bound(entries, key);
                entries.get(i).filter(|entry| entry.0 == key)?;
                entries.remove(i).map(|entry| entry.1)
            }
            Form::Tree(_) => self.remove_from_tree(|entries| entries.remove(&key)),
        }
    }

    /// Removes and returns the entry with the least key.
    #[inline]
    pub fn pop_first(&mut self) -> Option<(K, V)> {
        match &mut self.0 {
            Form::Deque(entries) => entries.pop_front(),
            Form::Tree(_) => self.remove_from_tree(BTreeMap::pop_first),
        }
    }

    #[cold]
    fn remove_from_tree<R>(
        &mut self,
        remove: impl FnOnce(&mut BTreeMap<K, V>) -> Option<R>,
    ) -> Option<R> {
        let Form::Tree(entries) = &mut self.0 else { return None };
        let removed = remove(entries);
        if entries.len() <= MOST_IN_DEQUE / 4 {
            self.shrink();
        }
        removed
    }

    #[cold]
    fn shrink(&mut self) {
        self.0 = Form::Deque(self.iter().collect());
    }
}

#[cold]
fn tree_below<K: Copy + Ord, V: Copy>(entries: &BTreeMap<K, V>, key: K) -> Option<(K, V)> {
    entries.range(..key).next_back().map(copy)
}

#[cold]
fn tree_from<K: Copy + Ord, V: Copy>(entries: &BTreeMap<K, V>, key: K) -> Option<(K, V)> {
    entries.range(key..).next().map(copy)
}

#[cold]
fn tree_insert<K: Ord, V>(entries: &mut BTreeMap<K, V>, key: K, value: V) {
    entries.insert(key, value);
}

fn copy<K: Copy, V: Copy>((&key, &value): (&K, &V)) -> (K, V) {
    (key, value)
}

/// Returns the number of entries with keys below `key`, by bisection.
///
/// First tries the most frequent results: all, all but one, none, and one.
#[inline]
fn lower_bound<K: Copy + Ord, V>(entries: &VecDeque<(K, V)>, key: K) -> usize {
    let is_below = |i: usize| entries.get(i).is_some_and(|entry| entry.0 < key);
    let len = entries.len();
    if len == 0 || is_below(len - 1) {
        len
    } else if len > 1 && is_below(len - 2) {
        len - 1
    } else if !is_below(0) {
        0
    } else if !is_below(1) {
        1
    } else {
        entries.partition_point(|entry| entry.0 < key)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]
        /// Compares with a B-tree, over sizes at which the form changes in both directions.
        #[test]
        fn it_is_an_ordered_map(
            seed in 0u64..1000,
            rounds in prop::collection::vec((0u64..3, 0usize..6000), 1..8),
        ) {
            let (mut map, mut tree) = (SortedMap::new(), BTreeMap::new());
            let mut draw = seed;
            let mut next = || {
                draw = draw.wrapping_mul(6_364_136_223_846_793_005);
                draw = draw.wrapping_add(1_442_695_040_888_963_407);
                (draw >> 33) % 20_000
            };
            for (kind, times) in rounds {
                for _ in 0..times {
                    let key = next();
                    match kind {
                        0 => {
                            map.insert(key, key + 1);
                            tree.insert(key, key + 1);
                        }
                        1 => {
                            let key = tree.range(key..).next().map_or(key, |entry| *entry.0);
                            prop_assert_eq!(map.remove(key), tree.remove(&key));
                        }
                        _ => prop_assert_eq!(map.pop_first(), tree.pop_first()),
                    }
                    prop_assert_eq!(map.get(key), tree.get(&key).copied());
                    prop_assert_eq!(map.below(key), tree.range(..key).next_back().map(copy));
                    prop_assert_eq!(map.from(key), tree.range(key..).next().map(copy));
                    prop_assert_eq!(map.around(key), (map.below(key), map.from(key)));
                }
                prop_assert!(map.iter().eq(tree.iter().map(copy)));
                let within = tree.range(1000..9000).rev().map(copy);
                prop_assert!(map.range(1000, 9000).rev().eq(within));
                prop_assert_eq!(map.first(), tree.first_key_value().map(copy));
                prop_assert_eq!(map.last(), tree.last_key_value().map(copy));
                prop_assert_eq!((map.len(), map.is_empty()), (tree.len(), tree.is_empty()));
            }
        }
    }
}
