#![no_main]

#[path = "../../tests/suite/fuzz/bytes.rs"]
mod bytes;
#[path = "../../tests/suite/fuzz/endpoint.rs"]
mod endpoint;

libfuzzer_sys::fuzz_target!(|data: &[u8]| endpoint::run(data));
