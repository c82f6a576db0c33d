//! Any bytes are a packet whose parts lie in them, or none.

use cwnd_router::parse;

pub fn run(data: &[u8]) {
    let Some(read) = parse(data) else { return };
    assert!(read.length <= data.len() && read.length >= 20, "{read:?} of {} bytes", data.len());
    // What follows a packet is not looked at, and what is there of it is all that is needed.
    assert_eq!(parse(&data[..read.length]), Some(read));
    assert_eq!(parse(&data[..read.length - 1]), None);
}
