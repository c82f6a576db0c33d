#![no_main]

#[path = "../../tests/suite/fuzz/bytes.rs"]
mod bytes;
#[path = "../../tests/suite/fuzz/events.rs"]
mod events;

libfuzzer_sys::fuzz_target!(|data: &[u8]| events::run(data));
