//! Fuzzer input read as numbers.

/// Reader that takes numbers off the front of the input; they are zero once it is exhausted.
pub struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    pub const fn new(data: &'a [u8]) -> Self {
        Self(data)
    }

    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub const fn byte(&mut self) -> u8 {
        match self.0.split_first() {
            Some((&first, rest)) => {
                self.0 = rest;
                first
            }
            None => 0,
        }
    }

    pub const fn flag(&mut self) -> bool {
        self.byte() & 1 == 1
    }

    /// Reads a number below `n`, which is at most 256.
    pub fn below(&mut self, n: usize) -> usize {
        usize::from(self.byte()) % n.max(1)
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    pub fn short(&mut self) -> u64 {
        u64::from(self.byte()) << 8 | u64::from(self.byte())
    }

    /// Reads a number of any magnitude: 16 bits, shifted by up to 31.
    pub fn wide(&mut self) -> u64 {
        let shift = self.byte() % 32;
        self.short() << shift
    }
}
