//! Columns with missing values.

/// Values of which some are missing, in Arrow's layout.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Optional<T> {
    /// Value of each row; zero if it is missing.
    values: Vec<T>,
    /// Validity bitmap: one bit a row, lowest bit of a byte first, set if the value is present.
    present: Vec<u8>,
}

impl<T: Copy> Optional<T> {
    /// Creates a column of its values and validity bitmap.
    pub(crate) const fn new(values: Vec<T>, present: Vec<u8>) -> Self {
        Self { values, present }
    }

    /// Number of rows.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.values.len()
    }

    /// `true` if there are no rows.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Value of a row; `None` if it is missing or the row does not exist.
    #[must_use]
    pub fn get(&self, row: usize) -> Option<T> {
        let bit = self.present.get(row / 8)? >> (row % 8) & 1;
        if bit == 1 { self.values.get(row).copied() } else { None }
    }

    /// Values of all rows, `None` where missing.
    pub fn iter(&self) -> impl Iterator<Item = Option<T>> + '_ {
        (0..self.len()).map(|row| self.get(row))
    }

    /// Returns the values, zero where missing, and the validity bitmap: one bit a row, lowest bit
    /// of a byte first.
    #[must_use]
    pub fn into_parts(self) -> (Vec<T>, Vec<u8>) {
        (self.values, self.present)
    }

    /// Appends the rows of another column.
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

/// Appends a row's bit to a validity bitmap.
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
