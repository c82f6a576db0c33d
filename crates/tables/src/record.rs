//! Definition of rows that are stored as columns.

/// Defines a row type and its table, which stores columns. Columns under `rare` are zero in most
/// runs and then count in no digest. Columns of numbers that are zero take no memory
/// ([`crate::values`]).
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
