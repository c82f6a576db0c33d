#![no_main]

#[path = "../../tests/suite/fuzz/packet.rs"]
mod packet;

libfuzzer_sys::fuzz_target!(|data: &[u8]| packet::run(data));
