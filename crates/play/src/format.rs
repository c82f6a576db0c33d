//! Tables as bytes: the length of a JSON head (u32, little-endian), the head, zeros up to a
//! multiple of 8 bytes, and the columns as little-endian f64, in the order of the head.

use cwnd_tables::{ColumnData, Table};
use serde_json::{Value as Json, json};

/// Alignment of numbers, for arrays that are views of the bytes.
const ALIGNMENT: usize = 8;

/// Formats tables. The head gets a key `tables` with their names, rows and columns, and the labels
/// of columns of names. Missing values are NaN. Counts above 2⁵³ lose precision.
pub fn tables(mut head: Json, tables: &[(&str, &Table)]) -> Vec<u8> {
    let described = tables.iter().map(|(name, table)| {
        let columns = table.columns.iter().map(|column| match &column.data {
            ColumnData::Name { labels, .. } => json!({ "name": column.name, "labels": labels }),
            _ => json!({ "name": column.name }),
        });
        json!({ "name": name, "rows": table.len(), "columns": columns.collect::<Vec<_>>() })
    });
    head["tables"] = described.collect::<Vec<_>>().into();
    let head = head.to_string();
    let mut bytes = (head.len() as u32).to_le_bytes().to_vec();
    bytes.extend(head.as_bytes());
    bytes.resize(bytes.len().next_multiple_of(ALIGNMENT), 0);
    for column in tables.iter().flat_map(|(_, table)| &table.columns) {
        let mut push = |value: f64| bytes.extend(value.to_le_bytes());
        match &column.data {
            ColumnData::U32(values) => values.iter().for_each(|&n| push(f64::from(n))),
            ColumnData::U64(values) => values.iter().for_each(|&n| push(n as f64)),
            ColumnData::F64(values) => values.iter().for_each(|&x| push(x)),
            ColumnData::OptionalF64(values) => {
                values.iter().for_each(|x| push(x.unwrap_or(f64::NAN)));
            }
            ColumnData::OptionalU64(values) => {
                values.iter().for_each(|n| push(n.map_or(f64::NAN, |n| n as f64)));
            }
            ColumnData::Name { codes, .. } => codes.iter().for_each(|n| push(f64::from(n.0))),
        }
    }
    bytes
}
