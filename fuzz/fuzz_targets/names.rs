#![no_main]

#[path = "../../tests/suite/fuzz/names.rs"]
mod names;

libfuzzer_sys::fuzz_target!(|data: &[u8]| names::run(data));
