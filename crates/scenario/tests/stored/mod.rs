//! Comparison of texts with stored files, which `UPDATE=1` rewrites.

use std::fs;
use std::path::Path;

/// Compares the stored file at path `name` in the repository with `text`; `UPDATE=1` writes it
/// first.
pub fn check(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name);
    let text = format!("{}\n", text.trim_end());
    #[expect(clippy::disallowed_methods, reason = "a test that refreshes files asks to be told so")]
    let update = std::env::var("UPDATE").is_ok_and(|v| v == "1");
    if update {
        fs::create_dir_all(path.parent().expect("the file is in a folder")).expect("a folder");
        fs::write(&path, &text).expect("the checkout can be written");
    }
    let stored = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        stored == text,
        "{name} is stale; if the change is intended, refresh it with\n\
         UPDATE=1 cargo test -p cwnd-scenario --no-fail-fast\n{}",
        first_difference(&stored, &text)
    );
}

/// Describes the first line that differs, in both texts.
fn first_difference(stored: &str, text: &str) -> String {
    let equal = stored.lines().zip(text.lines()).take_while(|(old, new)| old == new).count();
    let [old, new] =
        [stored, text].map(|text| text.lines().nth(equal).unwrap_or("(end of the file)"));
    format!("line {}\n  stored: {old}\n  found:  {new}", equal + 1)
}
