//! Connections that have something to say after their program's end: who listens to them would wait in vain if they went,
//! and whoever has their addresses next hears them.

use std::io;
use std::net::{IpAddr, Ipv6Addr};

use rustix::net::netlink::SOCK_DIAG;

use crate::linux::netlink::{DUMP, Netlink, Request};

/// A look at the connections of a network.
#[derive(Debug)]
pub struct Connections(Netlink);

impl Connections {
    /// Those of the calling thread's network namespace.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn here() -> io::Result<Self> {
        Ok(Self(Netlink::open(Some(SOCK_DIAG))?))
    }

    /// Connections that have something to say, or to hear: all but those that are closed on both sides.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn unfinished(&mut self) -> io::Result<Vec<Unfinished>> {
        let mut found = Vec::new();
        for family in [AF_INET, AF_INET6] {
            // `struct inet_diag_req_v2`
            let request = Request::new(SOCK_DIAG_BY_FAMILY, DUMP)
                .put(&[family, IPPROTO_TCP, 0, 0])
                .number(!(1 << TIME_WAIT | 1 << CLOSE | 1 << LISTEN))
                .put(&[0; SOCKET_ID]);
            found.extend(self.0.request(&[request])?.into_iter().map(|(_, body)| {
                // `struct inet_diag_msg` without its timers
                let parts =
                    [body.get(..2), body.get(4..4 + SOCKET_ID), body.get(QUEUES..QUEUES + 8)];
                Unfinished {
                    peer: peer_in(&body),
                    state: parts.into_iter().flatten().flatten().copied().collect(),
                }
            }));
        }
        Ok(found)
    }
}

/// A connection that has something to say, or to hear.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfinished {
    /// Who is at its other end, if the kernel tells.
    pub peer: Option<IpAddr>,
    /// What changes while it gets on: its state, ends and what is not yet acknowledged.
    pub state: Vec<u8>,
}

/// The address of the other end in a `struct inet_diag_msg`.
fn peer_in(body: &[u8]) -> Option<IpAddr> {
    let address: [u8; 16] = *body.get(PEER..)?.first_chunk()?;
    match *body.first()? {
        AF_INET => address.first_chunk::<4>().map(|&octets| octets.into()),
        _ => Some(Ipv6Addr::from(address).to_canonical()),
    }
}

/// linux/sock_diag.h, linux/inet_diag.h
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;
const IPPROTO_TCP: u8 = 6;
const SOCKET_ID: usize = 48;
/// Where the other end's address is in `struct inet_diag_msg`.
const PEER: usize = 24;
/// Where the lengths of the queues are in `struct inet_diag_msg`.
const QUEUES: usize = 56;
/// net/tcp_states.h
const TIME_WAIT: u32 = 6;
const CLOSE: u32 = 7;
const LISTEN: u32 = 10;
