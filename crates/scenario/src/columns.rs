//! Text tables: cells between commas, tabs or blanks, with or without a header.
//!
//! Errors give a position and quote nothing: a file named by mistake may be secret.

/// A table; all rows have the same number of cells. It stores no cells: each pass over its rows
/// splits the lines again.
#[derive(Debug)]
pub(crate) struct Columns<'t> {
    text: &'t str,
    /// The header row; `None` if the first row begins with a number.
    pub header: Option<Row<'t>>,
    /// The first row below the header.
    pub first: Row<'t>,
    /// Number of rows, without the header.
    pub length: usize,
    /// Number of cells in each row.
    pub width: usize,
}

/// A line of a table with its line number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row<'t> {
    pub line: usize,
    text: &'t str,
}

impl<'t> Columns<'t> {
    /// Parses a table; empty lines and those that begin with `#` are skipped. Fails without a row
    /// below the header, or if rows differ in their number of cells.
    pub fn read(text: &'t str) -> Result<Self, String> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let Some(top) = data_lines(text).next() else { return Err("it is empty".to_owned()) };
        let width = top.cells().count();
        let mut length = 0;
        for row in data_lines(text) {
            let found = row.cells().count();
            if found != width {
                let (line, before) = (row.line, top.line);
                return Err(format!(
                    "its line {line} has another number of columns ({found}) than its line \
                     {before} ({width})"
                ));
            }
            length += 1;
        }
        let header = top.cell(0).parse::<f64>().is_err().then_some(top);
        let skipped = usize::from(header.is_some());
        let Some(first) = data_lines(text).nth(skipped) else {
            return Err("it has a header and no rows".to_owned());
        };
        Ok(Self { text, header, first, length: length - skipped, width })
    }

    /// Iterates over the rows below the header.
    pub fn rows(&self) -> impl Iterator<Item = Row<'t>> {
        data_lines(self.text).skip(usize::from(self.header.is_some()))
    }

    /// Returns the column names as written; empty without a header.
    pub fn names(&self) -> Vec<&'t str> {
        self.header.map_or_else(Vec::new, |row| row.cells().collect())
    }

    /// Describes a wrong header, for an error.
    pub const fn header_error(&self) -> &'static str {
        match self.header {
            Some(_) => "its header has other columns",
            None => "it has no header",
        }
    }
}

/// Iterates over the lines that have cells.
fn data_lines(text: &str) -> impl Iterator<Item = Row<'_>> {
    let lines = text.lines().map(str::trim).enumerate();
    let data = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    data.map(|(i, text)| Row { line: i + 1, text })
}

impl<'t> Row<'t> {
    /// Iterates over its cells, without quotes and surrounding blanks.
    fn cells(self) -> impl Iterator<Item = &'t str> {
        let commas = self.text.contains(',');
        let ends = move |c: char| if commas { c == ',' } else { c.is_whitespace() };
        let cells = self.text.split(ends).map(str::trim);
        cells.filter(move |cell| commas || !cell.is_empty()).map(|cell| cell.trim_matches('"'))
    }

    /// Returns the cell of a column; empty if the row is shorter.
    pub fn cell(self, column: usize) -> &'t str {
        self.cells().nth(column).unwrap_or_default()
    }

    /// Returns an error message for one of its cells.
    pub fn error_at(self, column: usize, why: impl core::fmt::Display) -> String {
        format!("its line {}, column {}: {why}", self.line, column + 1)
    }

    /// Parses a finite number; `what` names the quantity in errors.
    pub fn number(self, column: usize, what: &str) -> Result<f64, String> {
        let number = self.cell(column).parse().ok().filter(|x: &f64| x.is_finite());
        number.ok_or_else(|| self.error_at(column, format_args!("no {what}")))
    }
}
