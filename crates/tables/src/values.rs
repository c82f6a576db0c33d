//! Columns that grow row by row, and the definition of rows that are stored in them.

use std::fmt::Debug;

use crate::table::{self, ColumnData, Name, Optional};

/// Type of a row's field.
pub trait Cell: Sized {
    /// Column type that collects these fields.
    type Column: ColumnBuilder<Self>;
}

/// A column that grows row by row.
pub trait ColumnBuilder<T>: Clone + Debug + Default {
    fn push(&mut self, value: T);
    /// Reserves memory for this many more rows.
    fn reserve(&mut self, rows: usize);
    /// Returns the finished column; `labels` are the names behind a [`Name`] column.
    fn finish(self, labels: Vec<String>) -> ColumnData;
}

/// A number type whose zero has only zero bits.
pub trait Number: Copy + Debug + Default {
    /// `true` if no bit is set; a float's negative zero has one.
    fn is_zero_bits(self) -> bool;
}

/// Numbers of which none is stored before one is not zero.
///
/// A column of zeros takes no memory while it grows. When it is finished, its zeros are allocated
/// by the system as zeroed pages, which take no memory before a write.
#[derive(Clone, Debug, Default)]
pub struct NumberBuilder<T> {
    /// Number of zeros before anything is stored.
    zeros: usize,
    /// Number of rows to reserve memory for at the first store.
    reserved: usize,
    stored: Vec<T>,
}

impl<T: Number> NumberBuilder<T> {
    #[inline]
    fn push(&mut self, value: T) {
        if !self.stored.is_empty() {
            self.stored.push(value);
        } else if value.is_zero_bits() {
            self.zeros += 1;
        } else {
            self.begin(value);
        }
    }

    #[cold]
    fn begin(&mut self, value: T) {
        self.store();
        self.stored.push(value);
    }

    /// Starts to store values, with the zeros until now.
    fn store(&mut self) {
        self.stored = vec![T::default(); self.reserved.max(self.zeros + 1)];
        self.stored.truncate(self.zeros);
    }

    /// Sets the value of an existing row.
    fn put(&mut self, row: usize, value: T) {
        if self.stored.is_empty() {
            self.store();
        }
        self.stored[row] = value;
    }

    fn reserve(&mut self, rows: usize) {
        if self.stored.is_empty() {
            self.reserved = self.zeros + rows;
        } else {
            self.stored.reserve_exact(rows);
        }
    }

    fn finish(self) -> Vec<T> {
        if self.stored.is_empty() { vec![T::default(); self.zeros] } else { self.stored }
    }
}

/// Values of which some are missing, while the column grows.
#[derive(Clone, Debug, Default)]
pub struct OptionalNumberBuilder<T> {
    values: NumberBuilder<T>,
    rows: usize,
    present: Vec<u8>,
}

impl<T: Number> OptionalNumberBuilder<T> {
    #[inline]
    fn push(&mut self, value: Option<T>) {
        table::push_validity(&mut self.present, self.rows, value.is_some());
        self.rows += 1;
        self.values.push(value.unwrap_or_default());
    }

    /// Number of rows.
    pub const fn len(&self) -> usize {
        self.rows
    }

    /// Sets the missing value of a row; a row that does not exist is ignored.
    pub fn fill_in(&mut self, row: usize, value: T) {
        if row < self.rows {
            self.present[row / 8] |= 1 << (row % 8);
            self.values.put(row, value);
        }
    }

    fn finish(self) -> Optional<T> {
        Optional::new(self.values.finish(), self.present)
    }
}

macro_rules! number {
    ($ty:ty, $value:ident => $is_zero:expr, $variant:ident $(, $optional:ident)?) => {
        impl Number for $ty {
            #[inline]
            fn is_zero_bits(self) -> bool {
                let $value = self;
                $is_zero
            }
        }

        impl Cell for $ty {
            type Column = NumberBuilder<$ty>;
        }

        impl ColumnBuilder<$ty> for NumberBuilder<$ty> {
            #[inline]
            fn push(&mut self, value: $ty) {
                NumberBuilder::push(self, value);
            }

            fn reserve(&mut self, rows: usize) {
                NumberBuilder::reserve(self, rows);
            }

            fn finish(self, _labels: Vec<String>) -> ColumnData {
                ColumnData::$variant(NumberBuilder::finish(self))
            }
        }

        $(
            impl Cell for Option<$ty> {
                type Column = OptionalNumberBuilder<$ty>;
            }

            impl ColumnBuilder<Option<$ty>> for OptionalNumberBuilder<$ty> {
                #[inline]
                fn push(&mut self, value: Option<$ty>) {
                    OptionalNumberBuilder::push(self, value);
                }

                fn reserve(&mut self, rows: usize) {
                    self.values.reserve(rows);
                    self.present.reserve_exact(rows.div_ceil(8));
                }

                fn finish(self, _labels: Vec<String>) -> ColumnData {
                    ColumnData::$optional(OptionalNumberBuilder::finish(self))
                }
            }
        )?
    };
}
number!(u32, x => x == 0, U32);
number!(u64, x => x == 0, U64, OptionalU64);
number!(f64, x => x.to_bits() == 0, F64, OptionalF64);

impl Cell for Name {
    type Column = Vec<Self>;
}

impl ColumnBuilder<Name> for Vec<Name> {
    #[inline]
    fn push(&mut self, value: Name) {
        Self::push(self, value);
    }

    fn reserve(&mut self, rows: usize) {
        self.reserve_exact(rows);
    }

    fn finish(self, labels: Vec<String>) -> ColumnData {
        ColumnData::Name { codes: self, labels }
    }
}

/// Defines a row type and its table, which stores columns. Columns under `rare` are zero in most
/// runs and then count in no digest. Columns of numbers that are zero take no memory
/// ([`NumberBuilder`]).
macro_rules! record {
    (
        $(#[doc = $row_doc:literal])* row $row:ident
        $(#[doc = $table_doc:literal])* table $table:ident
        { $( $(#[doc = $doc:literal])+ $field:ident : $ty:ty, )+ }
        $( rare { $( $(#[doc = $rare_doc:literal])+ $rare:ident : $rare_ty:ty, )+ } )?
    ) => {
        $(#[doc = $row_doc])*
        #[derive(Clone, Debug, Default)]
        pub struct $row {
            $( $(#[doc = $doc])+ pub $field: $ty, )+
            $($( $(#[doc = $rare_doc])+ pub $rare: $rare_ty, )+)?
        }

        $(#[doc = $table_doc])*
        #[derive(Clone, Debug, Default)]
        pub struct $table {
            $( $field: <$ty as $crate::values::Cell>::Column, )+
            $($( $rare: <$rare_ty as $crate::values::Cell>::Column, )+)?
        }

        impl $table {
            /// Name and description of each column, in order.
            pub const COLUMNS: &'static [(&'static str, &'static str)] = &[
                $( (stringify!($field), concat!($($doc),+)), )+
                $($( (stringify!($rare), concat!($($rare_doc),+)), )+)?
            ];

            /// Appends a row.
            #[inline]
            pub fn push(&mut self, row: $row) {
                $( $crate::values::ColumnBuilder::push(&mut self.$field, row.$field); )+
                $($( $crate::values::ColumnBuilder::push(&mut self.$rare, row.$rare); )+)?
            }

            /// Reserves memory for exactly this many more rows.
            pub fn reserve(&mut self, rows: usize) {
                $( $crate::values::ColumnBuilder::reserve(&mut self.$field, rows); )+
                $($( $crate::values::ColumnBuilder::reserve(&mut self.$rare, rows); )+)?
            }

            /// Returns the finished table; `labels` gives the names behind each name column, and is
            /// called for each column.
            #[must_use]
            pub fn into_table(self, labels: impl Fn(&str) -> Vec<String>) -> $crate::table::Table {
                $crate::table::Table {
                    columns: vec![
                        $( $crate::table::Column {
                            name: stringify!($field),
                            data: $crate::values::ColumnBuilder::finish(
                                self.$field,
                                labels(stringify!($field)),
                            ),
                            rare: false,
                        }, )+
                        $($( $crate::table::Column {
                            name: stringify!($rare),
                            data: $crate::values::ColumnBuilder::finish(
                                self.$rare,
                                labels(stringify!($rare)),
                            ),
                            rare: true,
                        }, )+)?
                    ],
                }
            }
        }
    };
}
pub(crate) use record;

#[cfg(test)]
mod tests {
    use super::*;

    fn collected<T: Cell>(values: impl IntoIterator<Item = T>) -> ColumnData {
        let mut column = T::Column::default();
        values.into_iter().for_each(|value| column.push(value));
        column.finish(Vec::new())
    }

    #[test]
    fn what_was_pushed_comes_out_whatever_it_begins_with() {
        for values in [vec![], vec![0, 0], vec![0, 0, 7, 0], vec![5], vec![5, 0]] {
            assert_eq!(collected(values.clone()), ColumnData::U64(values));
        }
        let some = [None, Some(3), Some(0), None];
        assert_eq!(collected(some), ColumnData::OptionalU64(some.into_iter().collect()));
        let ColumnData::F64(zeros) = collected([0.0, -0.0]) else { panic!() };
        assert_eq!(zeros.iter().map(|x| x.to_bits()).collect::<Vec<_>>(), [0, 1 << 63]);
    }

    #[test]
    fn nothing_is_stored_before_the_first_that_is_not_zero() {
        let mut column = NumberBuilder::<u64>::default();
        column.reserve(10);
        (0..5).for_each(|_| column.push(0));
        assert_eq!((column.stored.capacity(), column.zeros), (0, 5));
        column.push(1);
        assert_eq!(
            (column.stored.capacity(), column.stored.as_slice()),
            (10, &[0, 0, 0, 0, 0, 1][..])
        );
    }

    #[test]
    fn what_was_missing_may_be_filled_in() {
        let mut column = OptionalNumberBuilder::<f64>::default();
        (0..9).for_each(|_| column.push(None));
        column.fill_in(8, 2.0);
        column.fill_in(9, 3.0);
        let values = OptionalNumberBuilder::finish(column);
        assert_eq!((values.len(), values.get(7), values.get(8)), (9, None, Some(2.0)));
    }
}
