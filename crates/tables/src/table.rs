use crate::optional::Optional;

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
    /// 32-bit numbers: identifiers.
    U32(Vec<u32>),
    /// 64-bit counts.
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
