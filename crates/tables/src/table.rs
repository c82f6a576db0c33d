use crate::optional::Optional;

/// A value drawn from a small set of names, stored as its number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Name(pub u32);

/// A table as columns of equal length.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Its columns, in order.
    pub columns: Vec<Column>,
}

/// A named column.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Name with the unit as its end: `goodput_bit_s`.
    pub name: &'static str,
    /// The values.
    pub data: ColumnData,
    /// Whether it counts what most runs have none of: then a digest takes it in only where it is not zero everywhere, so that such a column
    /// may come without changing the digest of runs that it has nothing to tell of.
    pub rare: bool,
}

/// The values of a column.
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
    /// Names: numbers into `labels`.
    Name {
        /// One for each row.
        codes: Vec<Name>,
        /// What the numbers stand for.
        labels: Vec<String>,
    },
}

impl ColumnData {
    /// How many rows there are.
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

    /// Whether there are no rows.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether every value is zero, or missing, or the first of the names.
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
    /// How many rows it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.columns.first().map_or(0, |c| c.data.len())
    }

    /// Whether it has no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The column of this name.
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
    /// Takes in bytes.
    pub fn bytes(&mut self, bytes: &[u8]) {
        for &b in bytes {
            self.0 = (self.0 ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    fn number(&mut self, n: u64) {
        self.bytes(&n.to_le_bytes());
    }

    /// Takes in a whole table: names, values, and which are missing; of rare columns only those that tell something.
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

    /// The digest as hexadecimal digits.
    #[must_use]
    pub fn hex(self) -> String {
        format!("{:016x}", self.0)
    }
}
