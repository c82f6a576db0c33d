//! Identifier of the engine: changes with code, not with comments, layout or file names.

use std::fs;

#[path = "../../crates/python/engine_id.rs"]
mod identify;

use identify::identify;

const CODE: &str = "fn rate(bytes: u64) -> u64 { let shift = 3; bytes << shift }\n";

fn of(source: &str) -> String {
    identify([source]).expect("it is Rust")
}

#[test]
fn comments_docs_and_layout_do_not_change_it() {
    let commented = "//! A module.
#![doc = \"x\"]

/// Rate, bit/s.
fn rate(
    bytes: u64,
) -> u64 {
    // Eight bits a byte.
    let shift /* 2^3 */ = 3;
    bytes << shift
}
";
    assert_eq!(of(CODE), of(commented));
}

#[test]
fn numbers_names_attributes_and_brackets_change_it() {
    let others = [
        CODE.replace('3', "4"),
        CODE.replace("shift", "bits"),
        format!("#[inline]\n{CODE}"),
        CODE.replace("bytes << shift", "(bytes << shift)"),
        CODE.replace("{ let", "{ #![inline] let"),
    ];
    let mut ids: Vec<String> = others.iter().map(|source| of(source)).collect();
    ids.push(of(CODE));
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), others.len() + 1);
}

#[test]
fn the_order_of_files_does_not_change_it_but_each_file_does() {
    let id = identify([CODE, "struct Queue;"]).expect("it is Rust");
    assert_eq!(id, identify(["struct Queue;", CODE]).expect("it is Rust"));
    assert_ne!(id, of(CODE));
    assert_ne!(id, identify([CODE, "struct Queue;", "struct Queue;"]).expect("it is Rust"));
    assert_eq!(identify([CODE, "fn ("]), Err(1), "the file that is not Rust");
}

/// Removes the lines of comments as text, without the lexer.
#[test]
fn a_real_module_has_the_identifier_of_its_lines_without_comments() {
    let source = fs::read_to_string("../crates/cc/src/copa.rs").expect("Copa is there");
    let is_comment = |line: &&str| line.trim_start().starts_with("//");
    assert!(source.lines().filter(is_comment).count() > 10);
    let code: Vec<&str> = source.lines().filter(|line| !is_comment(line)).collect();
    assert_eq!(of(&source), of(&code.join("\n")));
}
