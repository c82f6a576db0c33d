//! Rows that are stored as columns.

use crate::table::{ColumnData, Name};

/// A type whose vectors are columns. `labels` are the names behind a [`Name`] column.
pub trait Cell: Sized {
    fn column(values: Vec<Self>, labels: Vec<String>) -> ColumnData;
}

macro_rules! cell {
    ($ty:ty, $variant:ident) => {
        impl Cell for $ty {
            fn column(values: Vec<Self>, _labels: Vec<String>) -> ColumnData {
                ColumnData::$variant(values)
            }
        }
    };
}
cell!(u32, U32);
cell!(u64, U64);
cell!(f64, F64);
cell!(Option<f64>, OptionalF64);
cell!(Option<u64>, OptionalU64);

impl Cell for Name {
    fn column(codes: Vec<Self>, labels: Vec<String>) -> ColumnData {
        ColumnData::Name { codes, labels }
    }
}

/// Defines a row and the columns that store it; those under `rare` count what most runs have none of.
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
            $( $field: Vec<$ty>, )+
            $($( $rare: Vec<$rare_ty>, )+)?
        }

        impl $table {
            /// What each column means, in order: name and description.
            pub const COLUMNS: &'static [(&'static str, &'static str)] = &[
                $( (stringify!($field), concat!($($doc),+)), )+
                $($( (stringify!($rare), concat!($($rare_doc),+)), )+)?
            ];

            /// Adds a row.
            #[inline]
            pub fn push(&mut self, row: $row) {
                $( self.$field.push(row.$field); )+
                $($( self.$rare.push(row.$rare); )+)?
            }

            /// Makes room for so many rows more, and no others.
            pub fn reserve(&mut self, rows: usize) {
                $( self.$field.reserve_exact(rows); )+
                $($( self.$rare.reserve_exact(rows); )+)?
            }

            /// The finished table; `labels` gives the names behind each name column.
            #[must_use]
            pub fn into_table(self, labels: impl Fn(&str) -> Vec<String>) -> $crate::table::Table {
                $crate::table::Table {
                    columns: vec![
                        $( $crate::table::Column {
                            name: stringify!($field),
                            data: $crate::record::Cell::column(
                                self.$field,
                                labels(stringify!($field)),
                            ),
                            rare: false,
                        }, )+
                        $($( $crate::table::Column {
                            name: stringify!($rare),
                            data: $crate::record::Cell::column(
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
