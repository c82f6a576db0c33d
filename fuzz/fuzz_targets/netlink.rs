//! Fuzz target of the netlink reader: any bytes are complete messages or none, and interfaces,
//! addresses, routes and sockets are never read beyond their messages.

#![cfg_attr(not(test), no_main)]

#[cfg(test)]
use super::bytes;
#[cfg(not(test))]
#[path = "../bytes.rs"]
mod bytes;

use cwnd_router::linux::netlink::{Replies, attribute, dropped_in, prefixes_in, push_attribute};
use cwnd_testbed::TcpInfo;

use bytes::Bytes;

/// Generates a plausible kernel reply, so that not all input is noise: messages with attributes of
/// the expected kinds.
fn reply(bytes: &mut Bytes<'_>) -> Vec<u8> {
    let mut reply = Vec::new();
    while !bytes.is_empty() {
        let header = bytes.pick(&[0, 4, 8, 12, 16, 72]);
        let mut body: Vec<u8> = (0..header).map(|_| bytes.byte()).collect();
        for _ in 0..bytes.below(4) {
            let kind = bytes.pick(&[1, 2, 23, 8 | 0x8000]);
            let length = bytes.pick(&[0, 4, 8, 16, 64, 200, 252]);
            let fill = bytes.byte();
            push_attribute(&mut body, kind, &vec![fill; length]);
        }
        let length = match bytes.below(8) {
            0 => bytes.short() as usize,
            _ => 16 + body.len(),
        };
        reply.extend((length as u32).to_ne_bytes());
        reply.extend(bytes.pick(&[2_u16, 3, 16, 20, 24]).to_ne_bytes());
        reply.extend(bytes.pick(&[0_u16, 2]).to_ne_bytes());
        reply.extend(u32::from(bytes.byte() % 4).to_ne_bytes());
        reply.extend([0; 4]);
        reply.extend(body);
    }
    reply
}

fn look(body: &[u8]) {
    assert!(dropped_in(body).is_none() || body.len() >= 16 + 4 + 64);
    for (address, prefix) in prefixes_in(body) {
        assert!(body[1] == prefix && body.len() > if address.is_ipv4() { 8 } else { 20 });
    }
    for kind in [1, 2, 23] {
        if let Some(value) = attribute(body, kind) {
            assert!(value.len() + 4 <= body.len());
        }
    }
    if let Some(info) = TcpInfo::read(body) {
        assert!(info.in_flight() <= info.unacked.saturating_add(info.retrans));
    }
}

pub fn run(data: &[u8]) {
    let made = match data.split_first() {
        Some((0..128, rest)) => reply(&mut Bytes::new(rest)),
        Some((_, rest)) => rest.to_vec(),
        None => return,
    };
    let mut replies = Replies { pending: vec![0, 1, 2, 3], answers: Vec::new() };
    let outcome = replies.read(&made);
    assert!(outcome.is_ok() || outcome.is_err_and(|error| error.raw_os_error() != Some(0)));
    assert!(replies.answers.iter().map(|(_, body)| body.len() + 16).sum::<usize>() <= made.len());
    for (_, body) in &replies.answers {
        look(body);
    }
    look(&made);
}

#[cfg(not(test))]
libfuzzer_sys::fuzz_target!(|data: &[u8]| run(data));
