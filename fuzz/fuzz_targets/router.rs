#![no_main]

#[path = "../../tests/suite/fuzz/bytes.rs"]
mod bytes;
#[path = "../../tests/suite/fuzz/router.rs"]
mod router;

libfuzzer_sys::fuzz_target!(|data: &[u8]| router::run(data));
