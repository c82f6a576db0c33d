#![no_main]

#[path = "../../tests/suite/fuzz/keeper.rs"]
mod keeper;

libfuzzer_sys::fuzz_target!(|data: &[u8]| keeper::run(data));
