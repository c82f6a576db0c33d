#![no_main]

#[path = "../../tests/suite/fuzz/scenario.rs"]
mod scenario;

libfuzzer_sys::fuzz_target!(|data: &[u8]| scenario::run(data));
