#![no_main]

#[path = "../../tests/suite/fuzz/bytes.rs"]
mod bytes;
#[path = "../../tests/suite/fuzz/queue.rs"]
mod queue;

libfuzzer_sys::fuzz_target!(|data: &[u8]| queue::run(data));
