//! Text tables: cells between commas, tabs or blanks, with a header or without one.

/// A table; all rows have the same number of cells.
#[derive(Debug)]
pub(crate) struct Columns<'t> {
    /// Names of the columns and their line, unless the first row begins with a number.
    pub header: Option<Row<'t>>,
    pub rows: Vec<Row<'t>>,
}

/// The cells of a line, without quotes and blanks around them.
#[derive(Debug)]
pub(crate) struct Row<'t> {
    pub line: usize,
    pub cells: Vec<&'t str>,
}

impl<'t> Columns<'t> {
    /// Reads a table; empty lines and those that begin with `#` are skipped.
    pub fn read(text: &'t str) -> Result<Self, String> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let lines = text.lines().map(str::trim).enumerate();
        let written = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        let mut rows: Vec<Row<'t>> =
            written.map(|(i, line)| Row { line: i + 1, cells: cells(line) }).collect();
        let Some(first) = rows.first() else { return Err("it is empty".to_owned()) };
        let columns = first.cells.len();
        if let Some(row) = rows.iter().find(|row| row.cells.len() != columns) {
            let (line, found) = (row.line, row.cells.len());
            let before = first.line;
            return Err(format!(
                "its line {line} has another number of columns ({found}) than its line {before} \
                 ({columns})"
            ));
        }
        let header = first.cells[0].parse::<f64>().is_err().then(|| rows.remove(0));
        if rows.is_empty() {
            return Err("it has a header and no rows".to_owned());
        }
        Ok(Self { header, rows })
    }

    /// Number of cells in each row.
    pub fn width(&self) -> usize {
        self.rows[0].cells.len()
    }

    /// Names of the columns as they are written; empty without a header.
    pub fn names(&self) -> &[&'t str] {
        self.header.as_ref().map_or(&[], |row| &row.cells)
    }
}

impl Row<'_> {
    /// An error in one of its cells.
    pub fn wrong(&self, column: usize, why: impl core::fmt::Display) -> String {
        format!("its line {}, column {}: {why}", self.line, column + 1)
    }

    /// A finite number of a column that has `what`.
    pub fn number(&self, column: usize, what: &str) -> Result<f64, String> {
        let cell = self.cells[column];
        let number = cell.parse().ok().filter(|x: &f64| x.is_finite());
        number.ok_or_else(|| self.wrong(column, self.is_no(column, what)))
    }

    /// The message that a cell has no `what`; of a long cell it has the beginning.
    pub fn is_no(&self, column: usize, what: &str) -> String {
        let start: String = self.cells[column].chars().take(20).collect();
        format!("`{start}` is no {what}")
    }
}

fn cells(line: &str) -> Vec<&str> {
    if line.contains(',') {
        line.split(',').map(|cell| cell.trim().trim_matches('"')).collect()
    } else {
        line.split_whitespace().map(|cell| cell.trim_matches('"')).collect()
    }
}
