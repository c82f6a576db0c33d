use std::collections::BTreeMap;

use cwnd_quantity::Duration;

/// A histogram of durations with buckets of constant relative width: each quantile is accurate to
/// 1/128 of its value. Mean and extremes are exact.
#[derive(Clone, Debug)]
pub struct Histogram {
    buckets: Buckets,
    n: u64,
    sum: u128,
    max: u64,
    /// Smallest value; `u64::MAX` before the first.
    min: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { buckets: Buckets::default(), n: 0, sum: 0, max: 0, min: u64::MAX }
    }
}

/// Numbers of durations in buckets.
///
/// A value v ≥ 128 ns falls into one of 128 equal parts of its octave [2^k, 2^(k+1)). Below 128 ns
/// buckets are 1 ns wide. Memory covers only the range of the values. Up to four buckets are
/// stored as pairs, since most flows are short.
#[derive(Clone, Debug)]
pub struct Buckets {
    /// Counts of the buckets from `first` on. If `first` is [`SPARSE`], pairs of bucket and count,
    /// in order.
    counts: Vec<u32>,
    first: usize,
}

impl Default for Buckets {
    fn default() -> Self {
        Self { counts: Vec::new(), first: SPARSE }
    }
}

/// Base-2 logarithm of the number of buckets in an octave.
const SUB_BITS: u32 = 7;
const SUB: u64 = 1 << SUB_BITS;
/// Number of buckets that are allocated together: a flow's RTTs are close to each other.
const STEP: usize = 8;
/// Value of `first` while pairs are stored: so far from all buckets that no difference to it is an
/// index of `counts`.
const SPARSE: usize = usize::MAX / 2;
/// Largest number of pairs.
const MAX_PAIRS: usize = 4;

/// Bucket of a value.
#[inline]
const fn bucket(ns: u64) -> usize {
    if ns < SUB {
        return ns as usize;
    }
    let octave = ns.ilog2() - SUB_BITS;
    (((octave as u64) << SUB_BITS) + (ns >> octave)) as usize
}

/// Smallest value of a bucket.
const fn floor(bucket: usize) -> u64 {
    let b = bucket as u64;
    if b < 2 * SUB {
        return b;
    }
    let octave = (b >> SUB_BITS) - 1;
    (SUB + (b & (SUB - 1))) << octave
}

impl Histogram {
    /// Prefetches the middle of the counts, where the next value probably falls.
    #[inline]
    pub fn prefetch(&self) {
        let counts = &self.buckets.counts;
        counts.get(counts.len() / 2).into_iter().for_each(cwnd_memory::prefetch);
    }

    /// Counts one value.
    #[inline]
    pub fn add(&mut self, value: Duration) {
        let ns = value.0;
        self.n += 1;
        self.sum += u128::from(ns);
        self.max = self.max.max(ns);
        self.min = self.min.min(ns);
        self.buckets.add(value);
    }

    /// Number of values counted.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.n
    }

    /// Exact mean, rounded down to a nanosecond; `None` without values.
    #[must_use]
    pub fn mean(&self) -> Option<Duration> {
        (self.n > 0).then(|| Duration((self.sum / u128::from(self.n)) as u64))
    }

    /// Exact largest value; `None` without values.
    #[must_use]
    pub fn max(&self) -> Option<Duration> {
        (self.n > 0).then_some(Duration(self.max))
    }

    /// Exact smallest value; `None` without values.
    #[must_use]
    pub fn min(&self) -> Option<Duration> {
        (self.n > 0).then_some(Duration(self.min))
    }

    /// The q-quantile, 0 ≤ q ≤ 1: the middle of its bucket, limited to the exact extremes; `None`
    /// without values.
    #[must_use]
    pub fn quantile(&self, q: f64) -> Option<Duration> {
        let min = self.min()?.0;
        let rank = ((q * self.n as f64).ceil() as u64).clamp(1, self.n);
        let mut seen = 0;
        for (low, count) in self.buckets.iter() {
            seen += count;
            if seen >= rank {
                return Some(Duration(middle(low).0.clamp(min, self.max)));
            }
        }
        self.max()
    }

    /// Buckets with values, in ascending order: smallest value of the bucket, and count.
    pub fn buckets(&self) -> impl Iterator<Item = (Duration, u64)> + '_ {
        self.buckets.iter()
    }

    /// Buckets with values, in ascending order: middle of the bucket, and count.
    pub fn middles(&self) -> impl Iterator<Item = (Duration, u64)> + '_ {
        self.buckets.middles()
    }

    /// Removes all values, as at the end of the warm-up.
    pub fn clear(&mut self) {
        *self = Self::default();
    }
}

impl Buckets {
    /// Counts one value.
    #[inline]
    pub fn add(&mut self, value: Duration) {
        self.add_many(value, 1);
    }

    /// Counts a value several times.
    #[inline]
    pub fn add_many(&mut self, value: Duration, times: u32) {
        let i = bucket(value.0);
        match self.counts.get_mut(i.wrapping_sub(self.first)) {
            Some(count) => *count = count.saturating_add(times),
            None => self.count_slow(i, times),
        }
    }

    /// Counts a value in a pair, or in a bucket that has no memory yet.
    #[cold]
    fn count_slow(&mut self, i: usize, times: u32) {
        if self.first != SPARSE {
            return self.grow_and_count(i, times);
        }
        let (pairs, _) = self.counts.as_chunks_mut::<2>();
        let place = pairs.partition_point(|&[bucket, _]| (bucket as usize) < i);
        let has_room = pairs.len() < MAX_PAIRS;
        match pairs.get_mut(place) {
            Some([bucket, count]) if *bucket as usize == i => *count = count.saturating_add(times),
            _ if has_room => {
                self.counts.splice(2 * place..2 * place, [i as u32, times]);
            }
            _ => {
                let pairs = core::mem::take(&mut self.counts);
                for &[bucket, count] in pairs.as_chunks().0 {
                    self.grow_and_count(bucket as usize, count);
                }
                self.grow_and_count(i, times);
            }
        }
    }

    fn grow_and_count(&mut self, i: usize, count: u32) {
        let step = i - i % STEP;
        if self.counts.is_empty() {
            self.first = step;
        }
        if step < self.first {
            let more = self.first - step;
            self.counts.splice(0..0, core::iter::repeat_n(0, more));
            self.first = step;
        }
        let needed = step + STEP - self.first;
        if self.counts.len() < needed {
            self.counts.resize(needed, 0);
        }
        self.counts[i - self.first] += count;
    }

    /// Buckets with values, in ascending order: smallest value of the bucket, and count.
    pub fn iter(&self) -> impl Iterator<Item = (Duration, u64)> + '_ {
        let sparse = self.first == SPARSE;
        let (dense, pairs) =
            if sparse { (&[][..], &self.counts[..]) } else { (&self.counts[..], &[][..]) };
        (self.first..)
            .zip(dense.iter().copied())
            .chain(pairs.as_chunks().0.iter().map(|&[i, count]| (i as usize, count)))
            .filter(|&(_, count)| count > 0)
            .map(|(i, count)| (Duration(floor(i)), u64::from(count)))
    }

    /// Buckets with values, in ascending order: middle of the bucket, and count.
    pub fn middles(&self) -> impl Iterator<Item = (Duration, u64)> + '_ {
        self.iter().map(|(low, count)| (middle(low), count))
    }
}

/// Middle of the bucket with this smallest value.
fn middle(low: Duration) -> Duration {
    low + Duration((floor(bucket(low.0) + 1) - low.0) / 2)
}

/// Durations counted in buckets of constant relative width, 128 in each octave, as in DDSketch
/// (Masson, Rim & Lee, VLDB 2019).
///
/// The middle of a quantile's bucket differs from the exact quantile by at most 1/256, 0.4 %, or by
/// 1 ns. Counts, sums and maxima are exact. The memory is bounded, whatever the number of
/// durations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sketch(BTreeMap<usize, Bucket>);

/// Durations in one bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bucket {
    /// Number of durations.
    pub count: u64,
    /// Sum of the durations, ns.
    pub sum_ns: u128,
    /// Longest duration.
    pub longest: Duration,
}

impl Sketch {
    /// Counts a duration.
    pub fn add(&mut self, value: Duration) {
        let found = self.0.entry(bucket(value.0)).or_default();
        found.count += 1;
        found.sum_ns += u128::from(value.0);
        found.longest = found.longest.max(value);
    }

    /// Buckets with durations, in ascending order: start of the bucket, start of the next one, and
    /// contents.
    pub fn buckets(&self) -> impl Iterator<Item = (Duration, Duration, Bucket)> + '_ {
        let edge = |bucket: usize| Duration(floor(bucket));
        self.0.iter().map(move |(&i, &found)| (edge(i), edge(i + 1), found))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_follow_each_other_without_gap_or_overlap() {
        for ns in (0..5000).chain([1 << 20, (1 << 40) + 12_345, u64::MAX / 2]) {
            let i = bucket(ns);
            assert!(floor(i) <= ns && ns < floor(i + 1), "{ns} in bucket {i}");
        }
    }

    proptest::proptest! {
        #[test]
        fn buckets_hold_what_was_counted_however_few_there_are(
            values in proptest::collection::vec(100u64..140, 0..60)
        ) {
            let mut h = Histogram::default();
            let mut model = BTreeMap::new();
            for &v in &values {
                h.add(Duration(v));
                *model.entry(Duration(floor(bucket(v)))).or_insert(0) += 1;
                let counted = model.iter().map(|(&low, &count)| (low, count));
                proptest::prop_assert!(h.buckets().eq(counted));
            }
        }

        #[test]
        fn quantiles_are_within_a_128th_of_the_exact_ones(
            mut values in proptest::collection::vec(0u64..1 << 36, 1..400)
        ) {
            let mut h = Histogram::default();
            for &v in &values {
                h.add(Duration(v));
            }
            values.sort_unstable();
            for q in [0.0, 0.1, 0.5, 0.9, 0.99, 1.0] {
                let rank = ((q * values.len() as f64).ceil() as usize).clamp(1, values.len());
                let exact = values[rank - 1];
                let found = h.quantile(q).unwrap().0;
                let error = found.abs_diff(exact);
                proptest::prop_assert!(error <= exact / 128 + 1, "{q}: {found} for {exact}");
            }
            let mean = values.iter().map(|&v| u128::from(v)).sum::<u128>() / values.len() as u128;
            proptest::prop_assert_eq!(h.mean().unwrap().0 as u128, mean);
        }
    }

    proptest::proptest! {
        #[test]
        fn the_middle_of_a_bucket_is_a_256th_from_the_exact_quantile_at_most(
            mut values in proptest::collection::vec(1_000u64..1 << 40, 1..300)
        ) {
            let mut sketch = Sketch::default();
            values.iter().for_each(|&ns| sketch.add(Duration(ns)));
            values.sort_unstable();
            for q in [0.0, 0.5, 0.9, 0.99, 1.0] {
                let rank = ((q * values.len() as f64).ceil() as u64).clamp(1, values.len() as u64);
                let mut seen = 0;
                let found = sketch.buckets().find(|(_, _, bucket)| {
                    seen += bucket.count;
                    seen >= rank
                });
                let (from, to, _) = found.unwrap();
                let (middle, exact) = ((from.0 + to.0) / 2, values[rank as usize - 1]);
                let error = middle.abs_diff(exact);
                proptest::prop_assert!(error <= exact / 256 + 1, "{q}: {middle} for {exact}");
            }
        }

        #[test]
        fn numbers_sums_and_the_longest_are_exact(
            values in proptest::collection::vec(0u64..1 << 50, 0..200)
        ) {
            let mut sketch = Sketch::default();
            values.iter().for_each(|&ns| sketch.add(Duration(ns)));
            let all: Vec<_> = sketch.buckets().collect();
            let counted: u64 = all.iter().map(|b| b.2.count).sum();
            proptest::prop_assert_eq!(counted, values.len() as u64);
            let sum: u128 = all.iter().map(|b| b.2.sum_ns).sum();
            proptest::prop_assert_eq!(sum, values.iter().map(|&ns| u128::from(ns)).sum::<u128>());
            let longest = all.iter().map(|b| b.2.longest.0).max();
            proptest::prop_assert_eq!(longest, values.iter().copied().max());
            for (from, to, bucket) in all {
                proptest::prop_assert!(from <= bucket.longest && bucket.longest < to);
            }
        }
    }
}
