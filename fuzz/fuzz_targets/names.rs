//! Fuzz target of the DNS relay: the system's file of name servers, and queries that no server
//! accepted.

#![cfg_attr(not(test), no_main)]

use cwnd_router::linux::{refusal, servers_in};

pub fn run(data: &[u8]) {
    if let Ok(file) = core::str::from_utf8(data) {
        let servers = servers_in(file);
        let named = |server: &std::net::IpAddr| {
            file.split_whitespace().any(|word| word.parse() == Ok(*server))
        };
        let this_host = servers.len() == 1 && servers[0].is_loopback();
        assert!(this_host || servers.iter().all(named), "{servers:?}");
        let mut once = servers.clone();
        once.sort_unstable();
        once.dedup();
        assert_eq!(once.len(), servers.len());
    }
    match refusal(data) {
        None => assert!(data.len() < 4),
        Some(answer) => {
            // The answer is the query with the response flag and the code "server failure"; nothing
            // else changes.
            assert_eq!((&answer[..2], &answer[4..]), (&data[..2], &data[4..]));
            assert_eq!((answer[2], answer[3]), (data[2] | 0x80, data[3] & 0xf0 | 2));
        }
    }
}

#[cfg(not(test))]
libfuzzer_sys::fuzz_target!(|data: &[u8]| run(data));
