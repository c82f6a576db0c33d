//! Files of `vectors/`, for the tests of crates that replay them.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

/// Returns the files of a kind, such as `queue`. Events, which are rows of the file's `columns`,
/// become objects; a file without columns stays as it is.
pub fn of_kind(kind: &str) -> Vec<Value> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors");
    let files = fs::read_dir(folder)
        .expect("vectors/ is there")
        .map(|entry| entry.expect("vectors/ can be listed").path());
    let texts = files.filter(|path| path.extension().is_some_and(|end| end == "json"));
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).expect("a vector can be read");
        serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
    };
    texts.map(read).filter(|file: &Value| file["kind"] == kind).map(with_objects).collect()
}

fn with_objects(mut file: Value) -> Value {
    let columns = file["columns"].take();
    if columns.is_null() {
        return file;
    }
    for case in file["cases"].as_array_mut().expect("there are cases") {
        for event in case["events"].as_array_mut().expect("a case has events") {
            let row = event.as_array().expect("an event is a row");
            let name = row[0].as_str().expect("a row begins with the kind of the event");
            let mut fields = object(&columns, name, &row[1..]);
            fields.insert("event".to_owned(), row[0].clone());
            *event = Value::Object(fields);
        }
    }
    file
}

/// Names the values of a row; omits nulls. A value whose column has columns of its own is a row,
/// too.
fn object(columns: &Value, name: &str, row: &[Value]) -> Map<String, Value> {
    let names = columns[name].as_array().expect("each kind of event has columns");
    assert!(row.len() <= names.len(), "{name}: {row:?}");
    let name_of = |name: &Value| name.as_str().expect("a column is a name").to_owned();
    let fields = names.iter().map(name_of).zip(row).filter(|(_, value)| !value.is_null());
    let named = |(key, value): (String, &Value)| {
        let inner = columns.get(&key).and_then(|_| value.as_array());
        let value = inner.map_or_else(|| value.clone(), |row| object(columns, &key, row).into());
        (key, value)
    };
    fields.map(named).collect()
}
