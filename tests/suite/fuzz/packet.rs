//! Any bytes are a packet whose parts lie in them, or none.

use cwnd_packet::HeardQuench;
use cwnd_router::parse;

pub fn run(data: &[u8]) {
    if let Some(heard) = HeardQuench::read(data) {
        // It quotes an IPv4 header and eight bytes behind it.
        assert!(data.len() >= 56 && heard.level < 8, "{heard:?} of {} bytes", data.len());
    }
    let Some(read) = parse(data) else { return };
    assert!(read.length <= data.len() && read.length >= 20, "{read:?} of {} bytes", data.len());
    // What follows a packet is not looked at, and what is there of it is all that is needed.
    assert_eq!(parse(&data[..read.length]), Some(read));
    assert_eq!(parse(&data[..read.length - 1]), None);
}
