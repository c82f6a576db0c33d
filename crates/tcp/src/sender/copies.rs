//! What was sent again and is still outstanding: no algorithm asks for it, only the truth about timeouts.

/// How often each byte of a connection went somewhere: of ranges, in the order in which they went.
#[derive(Clone, Debug, Default)]
pub struct Copies(Vec<Copy>);

#[derive(Clone, Copy, Debug)]
struct Copy {
    start: u64,
    end: u64,
    times: u64,
}

impl Copies {
    /// `[start, end)` goes; all below `una` is acknowledged and forgotten now and then.
    #[cold]
    pub fn add(&mut self, start: u64, end: u64, una: u64) {
        if let Some(last) = self.0.last_mut().filter(|last| (last.start, last.end) == (start, end))
        {
            last.times += 1;
            return;
        }
        // Only before it would grow: each is moved a constant number of times in the mean.
        if self.0.len() == self.0.capacity() {
            self.forget_below(una);
        }
        self.0.push(Copy { start, end, times: 1 });
    }

    /// Nobody will ask for what is below `una`.
    pub fn forget_below(&mut self, una: u64) {
        self.0.retain(|copy| copy.end > una);
    }

    /// How many ranges it holds.
    #[must_use]
    pub const fn ranges(&self) -> usize {
        self.0.len()
    }

    /// Whether anything from this byte on went.
    #[must_use]
    pub fn any_from(&self, byte: u64) -> bool {
        self.0.iter().any(|copy| copy.end > byte)
    }

    /// What went, from this byte on, as pairs of start and end; some of it several times.
    pub(super) fn from(&self, byte: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
        let left = self.0.iter().filter(move |copy| copy.end > byte);
        left.map(move |copy| (copy.start.max(byte), copy.end))
    }

    /// Whether anything of these bytes went.
    #[must_use]
    pub fn any_in(&self, start: u64, end: u64) -> bool {
        self.0.iter().any(|copy| copy.start < end && start < copy.end)
    }

    /// How often this byte went.
    #[must_use]
    pub fn of(&self, byte: u64) -> u64 {
        let there = self.0.iter().filter(|copy| copy.start <= byte && byte < copy.end);
        there.map(|copy| copy.times).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_byte_was_sent_again_as_often_as_a_range_with_it_was() {
        let mut copies = Copies::default();
        for (start, end) in [(0, 1000), (0, 1000), (1000, 2000), (0, 1000), (500, 1500)] {
            copies.add(start, end, 0);
        }
        let counts = [0, 499, 500, 999, 1000, 1499, 1500, 1999, 2000].map(|at| copies.of(at));
        assert_eq!(counts, [3, 3, 4, 4, 2, 2, 1, 1, 0]);
        assert!(copies.any_from(1999) && !copies.any_from(2000));
    }

    #[test]
    fn what_is_acknowledged_is_forgotten() {
        let mut copies = Copies::default();
        for k in 0..100_000 {
            copies.add(k * 1000, k * 1000 + 1000, k * 1000);
        }
        assert!(copies.0.capacity() < 100, "{}", copies.0.capacity());
        assert_eq!((copies.of(99_999_500), copies.of(99_000)), (1, 0));
    }
}
