//! Messages to and from the privileged process of a link: valid ones are read, others are rejected,
//! as their sender is not trusted.
#![cfg(target_os = "linux")]

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use cwnd_router::linux::RelayedServer;
use cwnd_router::linux::privileged::{Answer, Event, Make, Order, Request, Start};
use proptest::prelude::*;

fn name() -> impl Strategy<Value = RelayedServer> {
    let server = prop_oneof![
        any::<u32>().prop_map(|bits| IpAddr::from(Ipv4Addr::from_bits(bits))),
        any::<u128>().prop_map(|bits| IpAddr::from(Ipv6Addr::from_bits(bits))),
    ];
    (server, any::<u16>(), any::<u16>()).prop_map(|(server, udp, tcp)| RelayedServer {
        server,
        udp,
        tcp,
    })
}

fn request() -> impl Strategy<Value = Request> {
    let make = (any::<u32>(), any::<Option<bool>>())
        .prop_map(|(user, ecn)| Request::Make(Make { user, ecn }));
    let start = (
        any::<[bool; 4]>(),
        0_u16..0o1000,
        0_u32..=60_000,
        prop::collection::vec(name(), 0..=8),
        prop::collection::vec(any::<[u64; 2]>(), 0..=16),
    );
    let start = start.prop_map(|(flags, umask, patience_ms, names, limits)| {
        let [allow_sudo, terminal, foreground, directory] = flags;
        Request::Start(Start {
            allow_sudo,
            terminal,
            foreground,
            directory,
            umask,
            patience_ms,
            names,
            limits,
        })
    });
    prop_oneof![make, start]
}

proptest! {
    #[test]
    fn a_request_is_read_as_it_was_written(request in request()) {
        let read = Request::of_bytes(&request.to_bytes());
        prop_assert_eq!(read.expect("as written"), request);
    }

    #[test]
    fn a_request_with_more_or_less_in_it_is_refused(request in request(), more in any::<u8>()) {
        let mut bytes = request.to_bytes();
        for length in 0..bytes.len() {
            prop_assert!(Request::of_bytes(&bytes[..length]).is_err());
        }
        bytes.push(more);
        prop_assert!(Request::of_bytes(&bytes).is_err());
    }

    #[test]
    fn whatever_comes_it_is_a_request_within_bounds_or_none(
        bytes in prop::collection::vec(any::<u8>(), 0..600)
    ) {
        if let Ok(request) = Request::of_bytes(&bytes) {
            if let Request::Start(start) = &request {
                prop_assert!(start.names.len() <= 8 && start.limits.len() <= 16);
                prop_assert!(start.umask <= 0o777 && start.patience_ms <= 60_000);
                prop_assert!(start.descriptors() <= 7);
            }
            prop_assert_eq!(request.to_bytes(), bytes);
        }
    }

    #[test]
    fn a_damaged_request_is_another_one_or_none(
        request in request(),
        at in any::<prop::sample::Index>(),
        bit in 0_u32..8,
    ) {
        let mut bytes = request.to_bytes();
        let at = at.index(bytes.len());
        bytes[at] ^= 1 << bit;
        if let Ok(other) = Request::of_bytes(&bytes) {
            prop_assert_eq!(other.to_bytes(), bytes);
        }
    }

    #[test]
    fn other_messages_of_any_bytes_are_read_or_refused(
        bytes in prop::collection::vec(any::<u8>(), 0..200)
    ) {
        let _ = Answer::of_bytes(&bytes);
        let event = Event::of_bytes(&bytes).map(Event::to_bytes);
        let order = Order::of_bytes(&bytes).map(Order::to_bytes);
        for written in [event, order].into_iter().flatten() {
            prop_assert_eq!(&written[..], &bytes[..]);
        }
    }
}
