//! Concatenation of the tables of several runs.

use crate::table::{ColumnData, Name, Table};

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
    use crate::table::Column;

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
