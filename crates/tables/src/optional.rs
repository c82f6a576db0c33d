//! Values of which some are missing.

/// Values of which some are missing, in Arrow's layout.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Optional<T> {
    /// One a row, zero where it is missing.
    values: Vec<T>,
    /// A bit a row, the lowest of a byte first: whether it is there.
    present: Vec<u8>,
}

impl<T: Copy> Optional<T> {
    /// From its two parts.
    pub(crate) const fn new(values: Vec<T>, present: Vec<u8>) -> Self {
        Self { values, present }
    }

    /// How many rows there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there are no rows.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The value of a row; none if it is missing, or the row is.
    #[must_use]
    pub fn get(&self, row: usize) -> Option<T> {
        let bit = self.present.get(row / 8)? >> (row % 8) & 1;
        if bit == 1 { self.values.get(row).copied() } else { None }
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = Option<T>> + '_ {
        (0..self.len()).map(|row| self.get(row))
    }

    /// The values, zero where they are missing, and a bit a row, the lowest of a byte first: whether it is there.
    #[must_use]
    pub fn into_parts(self) -> (Vec<T>, Vec<u8>) {
        (self.values, self.present)
    }

    /// Puts these values below.
    pub(crate) fn append(&mut self, other: &Self) {
        for row in 0..other.len() {
            set(&mut self.present, self.values.len() + row, other.get(row).is_some());
        }
        self.values.extend_from_slice(&other.values);
    }
}

impl<T: Copy + Default> FromIterator<Option<T>> for Optional<T> {
    fn from_iter<I: IntoIterator<Item = Option<T>>>(values: I) -> Self {
        let mut present = Vec::new();
        let values = values.into_iter().enumerate().map(|(row, value)| {
            set(&mut present, row, value.is_some());
            value.unwrap_or_default()
        });
        Self { values: values.collect(), present }
    }
}

/// Notes of the next row whether its value is there.
#[inline]
pub(crate) fn set(present: &mut Vec<u8>, row: usize, is: bool) {
    if row.is_multiple_of(8) {
        present.push(0);
    }
    if let Some(byte) = present.last_mut() {
        *byte |= u8::from(is) << (row % 8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_neither_zero_nor_what_is_beyond_the_end() {
        let values: Vec<Option<f64>> =
            (0..21).map(|i| (i % 3 != 0).then_some(f64::from(i % 2))).collect();
        let column: Optional<f64> = values.iter().copied().collect();
        assert_eq!(column.iter().collect::<Vec<_>>(), values);
        assert_eq!((column.get(1), column.get(0), column.get(21)), (Some(1.0), None, None));
        let mut twice = column.clone();
        twice.append(&column);
        assert_eq!(twice.iter().collect::<Vec<_>>(), [values.clone(), values].concat());
    }
}
