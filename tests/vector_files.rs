//! Files of `vectors/`, for the tests of crates that replay them.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// Returns the files of a kind, such as `queue`.
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
    texts.map(read).filter(|file: &Value| file["kind"] == kind).collect()
}
