//! Fuzz target of the packet parser: any bytes are a packet whose parts lie within them, or none.

#![cfg_attr(not(test), no_main)]

use cwnd_packet::ReceivedQuench;
use cwnd_router::parse;

pub fn run(data: &[u8]) {
    if let Some(heard) = ReceivedQuench::read(data) {
        // It quotes an IPv4 header and the eight bytes after it.
        assert!(data.len() >= 56 && heard.level < 8, "{heard:?} of {} bytes", data.len());
    }
    let Some(read) = parse(data) else { return };
    assert!(read.length <= data.len() && read.length >= 20, "{read:?} of {} bytes", data.len());
    // Bytes after the packet have no effect, and every byte of the packet is needed.
    assert_eq!(parse(&data[..read.length]), Some(read));
    assert_eq!(parse(&data[..read.length - 1]), None);
}

#[cfg(not(test))]
libfuzzer_sys::fuzz_target!(|data: &[u8]| run(data));
