//! Tables as columns, columns with missing values, and concatenation of the tables of several runs.

/// A name from a small set, stored as its index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Name(pub u32);

/// A table as columns of equal length.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Columns, in order.
    pub columns: Vec<Column>,
}

/// A named column.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Name with the unit as its end: `goodput_bit_s`.
    pub name: &'static str,
    /// Values.
    pub data: ColumnData,
    /// `true` if the column is zero in most runs. A digest omits it where it is zero in all rows.
    /// So a new column of this kind changes no digest of runs that it does not concern.
    pub rare: bool,
}

/// Values of a column, by type.
#[derive(Clone, Debug, PartialEq)]
pub enum ColumnData {
    /// 32-bit numbers: identifiers and flags.
    U32(Vec<u32>),
    /// 64-bit whole numbers, mostly counts.
    U64(Vec<u64>),
    /// Measured quantities.
    F64(Vec<f64>),
    /// Measured quantities that may be missing.
    OptionalF64(Optional<f64>),
    /// Counts that may be missing.
    OptionalU64(Optional<u64>),
    /// Names, as indices into `labels`.
    Name {
        /// Index of each row's name.
        codes: Vec<Name>,
        /// Names by index.
        labels: Vec<String>,
    },
}

impl ColumnData {
    /// Number of rows.
    #[must_use]
    pub const fn len(&self) -> usize {
        match self {
            Self::U32(v) => v.len(),
            Self::U64(v) => v.len(),
            Self::F64(v) => v.len(),
            Self::OptionalF64(v) => v.len(),
            Self::OptionalU64(v) => v.len(),
            Self::Name { codes, .. } => codes.len(),
        }
    }

    /// `true` if there are no rows.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// `true` if each value is zero, missing, or the first of the names.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        match self {
            Self::U32(v) => v.iter().all(|&x| x == 0),
            Self::U64(v) => v.iter().all(|&x| x == 0),
            Self::F64(v) => v.iter().all(|&x| x == 0.0),
            Self::OptionalF64(v) => v.iter().all(|x| x.is_none_or(|x| x == 0.0)),
            Self::OptionalU64(v) => v.iter().all(|x| x.is_none_or(|x| x == 0)),
            Self::Name { codes, .. } => codes.iter().all(|code| code.0 == 0),
        }
    }
}

impl Table {
    /// Number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.columns.first().map_or(0, |c| c.data.len())
    }

    /// `true` if there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Column with this name; `None` without one.
    #[must_use]
    pub fn column(&self, name: &str) -> Option<&ColumnData> {
        self.columns.iter().find(|c| c.name == name).map(|c| &c.data)
    }
}

/// A 64-bit FNV-1a digest of records: equal for equal bytes, on any machine.
#[derive(Clone, Copy, Debug)]
pub struct Digest(u64);

impl Default for Digest {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Digest {
    /// Hashes bytes.
    pub fn bytes(&mut self, bytes: &[u8]) {
        for &b in bytes {
            self.0 = (self.0 ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    fn number(&mut self, n: u64) {
        self.bytes(&n.to_le_bytes());
    }

    /// Hashes a whole table: names, values and missing values, all labels of names included. Rare
    /// columns that are zero are omitted.
    pub fn table(&mut self, table: &Table) {
        for column in table.columns.iter().filter(|c| !(c.rare && c.data.is_zero())) {
            self.bytes(column.name.as_bytes());
            self.number(column.data.len() as u64);
            match &column.data {
                ColumnData::U32(v) => v.iter().for_each(|&x| self.number(u64::from(x))),
                ColumnData::U64(v) => v.iter().for_each(|&x| self.number(x)),
                ColumnData::F64(v) => v.iter().for_each(|x| self.number(x.to_bits())),
                ColumnData::OptionalF64(v) => {
                    v.iter().for_each(|x| self.optional(x.map(f64::to_bits)))
                }
                ColumnData::OptionalU64(v) => v.iter().for_each(|x| self.optional(x)),
                ColumnData::Name { codes, labels } => {
                    labels.iter().for_each(|l| self.bytes(l.as_bytes()));
                    codes.iter().for_each(|c| self.number(u64::from(c.0)));
                }
            }
        }
    }

    fn optional(&mut self, value: Option<u64>) {
        self.bytes(&[u8::from(value.is_some())]);
        self.number(value.unwrap_or(0));
    }

    /// The digest as 16 hexadecimal digits.
    #[must_use]
    pub fn hex(self) -> String {
        format!("{:016x}", self.0)
    }
}

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
            push_validity(&mut self.present, self.values.len() + row, other.get(row).is_some());
        }
        self.values.extend_from_slice(&other.values);
    }
}

impl<T: Copy + Default> FromIterator<Option<T>> for Optional<T> {
    fn from_iter<I: IntoIterator<Item = Option<T>>>(values: I) -> Self {
        let mut present = Vec::new();
        let values = values.into_iter().enumerate().map(|(row, value)| {
            push_validity(&mut present, row, value.is_some());
            value.unwrap_or_default()
        });
        Self { values: values.collect(), present }
    }
}

/// Appends a row's bit to a validity bitmap.
#[inline]
pub(crate) fn push_validity(present: &mut Vec<u8>, row: usize, is: bool) {
    if row.is_multiple_of(8) {
        present.push(0);
    }
    if let Some(byte) = present.last_mut() {
        *byte |= u8::from(is) << (row % 8);
    }
}

impl Table {
    /// Appends the rows of a table with the same columns. A table without columns takes over the
    /// other's.
    ///
    /// # Panics
    /// If the columns differ in number, name or type: tables of one kind always have the same ones.
    pub fn append(&mut self, other: &Self) {
        if self.columns.is_empty() {
            self.columns.clone_from(&other.columns);
            return;
        }
        assert_eq!(self.columns.len(), other.columns.len(), "tables of two kinds");
        for (mine, theirs) in self.columns.iter_mut().zip(&other.columns) {
            assert_eq!(mine.name, theirs.name, "tables of two kinds");
            mine.data.append(&theirs.data);
        }
    }
}

impl ColumnData {
    fn append(&mut self, other: &Self) {
        match (self, other) {
            (Self::U32(a), Self::U32(b)) => a.extend_from_slice(b),
            (Self::U64(a), Self::U64(b)) => a.extend_from_slice(b),
            (Self::F64(a), Self::F64(b)) => a.extend_from_slice(b),
            (Self::OptionalF64(a), Self::OptionalF64(b)) => a.append(b),
            (Self::OptionalU64(a), Self::OptionalU64(b)) => a.append(b),
            (Self::Name { codes: a, labels: mine }, Self::Name { codes: b, labels: theirs }) => {
                append_names(a, mine, b, theirs);
            }
            _ => unreachable!("a column of one name has one type"),
        }
    }
}

fn append_names(codes: &mut Vec<Name>, labels: &mut Vec<String>, more: &[Name], named: &[String]) {
    // The runs of a sweep mostly have the same names.
    if labels == named {
        codes.extend_from_slice(more);
        return;
    }
    let renumbered: Vec<Name> = named
        .iter()
        .map(|label| {
            let known = labels.iter().position(|mine| mine == label);
            Name(known.unwrap_or_else(|| {
                labels.push(label.clone());
                labels.len() - 1
            }) as u32)
        })
        .collect();
    codes.extend(more.iter().map(|code| renumbered[code.0 as usize]));
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

    fn names(codes: &[u32], labels: &[&str]) -> Table {
        let codes = codes.iter().map(|&code| Name(code)).collect();
        let labels = labels.iter().map(|&label| label.to_owned()).collect();
        Table {
            columns: vec![Column {
                name: "group",
                data: ColumnData::Name { codes, labels },
                rare: false,
            }],
        }
    }

    fn read(table: &Table) -> Vec<&str> {
        match table.column("group") {
            Some(ColumnData::Name { codes, labels }) => {
                codes.iter().map(|code| labels[code.0 as usize].as_str()).collect()
            }
            _ => Vec::new(),
        }
    }

    #[test]
    fn names_keep_their_meaning_when_their_numbers_differ() {
        let mut table = names(&[0, 1], &["web", "video"]);
        table.append(&names(&[0, 1, 2], &["video", "web", "voice"]));
        table.append(&names(&[1], &["web", "video"]));
        assert_eq!(read(&table), ["web", "video", "video", "web", "voice", "video"]);
    }

    #[test]
    fn rows_come_below_each_other() {
        let numbers = |v: &[u32], m: &[Option<f64>]| Table {
            columns: vec![
                Column { name: "flow_id", data: ColumnData::U32(v.to_vec()), rare: false },
                Column {
                    name: "fct_s",
                    data: ColumnData::OptionalF64(m.iter().copied().collect()),
                    rare: false,
                },
            ],
        };
        let mut table = Table { columns: Vec::new() };
        table.append(&numbers(&[0, 1], &[None, Some(2.5)]));
        table.append(&numbers(&[], &[]));
        table.append(&numbers(&[0], &[Some(1.0)]));
        assert_eq!(table, numbers(&[0, 1, 0], &[None, Some(2.5), Some(1.0)]));
    }

    #[test]
    #[should_panic(expected = "tables of two kinds")]
    fn tables_of_two_kinds_do_not_mix() {
        let table = |name| Table {
            columns: vec![Column { name, data: ColumnData::U32(vec![]), rare: false }],
        };
        table("flow_id").append(&table("link_id"));
    }
}
