//! Comparison of expanded code in tests.

use proc_macro2::TokenStream;

/// Asserts that expanded code contains each of these parts; trailing commas are ignored.
pub fn holds(expanded: &str, parts: &[TokenStream]) {
    let expanded = without_trailing_commas(expanded);
    for part in parts {
        let part = without_trailing_commas(&part.to_string());
        let part = part.trim_end_matches(" ,");
        assert!(expanded.contains(part), "`{part}` is not in `{expanded}`");
    }
}

fn without_trailing_commas(code: &str) -> String {
    code.replace(" ,)", ")").replace(" , }", " }").replace(" ,]", "]").replace(" , ]", "]")
}
