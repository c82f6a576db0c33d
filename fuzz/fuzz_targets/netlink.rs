#![no_main]

#[path = "../../tests/suite/fuzz/bytes.rs"]
mod bytes;
#[path = "../../tests/suite/fuzz/netlink.rs"]
mod netlink;

libfuzzer_sys::fuzz_target!(|data: &[u8]| netlink::run(data));
