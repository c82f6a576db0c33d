//! Rows that are stored as columns.

/// Defines a row and the columns that store it; those under `rare` count what most runs have none of, and then take no memory
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
            /// What each column means, in order: name and description.
            pub const COLUMNS: &'static [(&'static str, &'static str)] = &[
                $( (stringify!($field), concat!($($doc),+)), )+
                $($( (stringify!($rare), concat!($($rare_doc),+)), )+)?
            ];

            /// Adds a row.
            #[inline]
            pub fn push(&mut self, row: $row) {
                $( $crate::values::Collect::push(&mut self.$field, row.$field); )+
                $($( $crate::values::Collect::push(&mut self.$rare, row.$rare); )+)?
            }

            /// Makes room for so many rows more, and no others.
            pub fn reserve(&mut self, rows: usize) {
                $( $crate::values::Collect::reserve(&mut self.$field, rows); )+
                $($( $crate::values::Collect::reserve(&mut self.$rare, rows); )+)?
            }

            /// The finished table; `labels` gives the names behind each name column.
            #[must_use]
            pub fn into_table(self, labels: impl Fn(&str) -> Vec<String>) -> $crate::table::Table {
                $crate::table::Table {
                    columns: vec![
                        $( $crate::table::Column {
                            name: stringify!($field),
                            data: $crate::values::Collect::finish(
                                self.$field,
                                labels(stringify!($field)),
                            ),
                            rare: false,
                        }, )+
                        $($( $crate::table::Column {
                            name: stringify!($rare),
                            data: $crate::values::Collect::finish(
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
