//! Connections that are not closed when their program ends. If their namespace were removed, their
//! peers would wait in vain, and later segments would reach the next user of the addresses.

use std::io;
use std::net::{IpAddr, Ipv6Addr};

use rustix::net::netlink::SOCK_DIAG;

use crate::linux::netlink::{DUMP, Netlink, Request};

/// Reader of the TCP connections of a network namespace.
#[derive(Debug)]
pub struct Connections(Netlink);

impl Connections {
    /// Opens a socket in the calling thread's network namespace.
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn here() -> io::Result<Self> {
        Ok(Self(Netlink::open(Some(SOCK_DIAG))?))
    }

    /// Returns the connections that may still send or receive: all sockets but those in TIME_WAIT,
    /// CLOSE and LISTEN.
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn unfinished(&mut self) -> io::Result<Vec<OpenConnection>> {
        let mut found = Vec::new();
        for family in [AF_INET, AF_INET6] {
            // `struct inet_diag_req_v2`.
            let request = Request::new(SOCK_DIAG_BY_FAMILY, DUMP)
                .put(&[family, IPPROTO_TCP, 0, 0])
                .number(!(1 << TIME_WAIT | 1 << CLOSE | 1 << LISTEN))
                .put(&[0; SOCKET_ID]);
            found.extend(self.0.request(&[request])?.into_iter().map(|(_, body)| {
                // Parts of `struct inet_diag_msg` without timers, which change all the time.
                let parts =
                    [body.get(..2), body.get(4..4 + SOCKET_ID), body.get(QUEUES..QUEUES + 8)];
                OpenConnection {
                    peer: peer_in(&body),
                    state: parts.into_iter().flatten().flatten().copied().collect(),
                }
            }));
        }
        Ok(found)
    }
}

/// A connection that may still send or receive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenConnection {
    /// Address of its peer, if the kernel reports it.
    pub peer: Option<IpAddr>,
    /// State that changes as it makes progress: address family, TCP state, ends, and lengths of its
    /// queues.
    pub state: Vec<u8>,
}

/// Returns the peer's address in a `struct inet_diag_msg`.
fn peer_in(body: &[u8]) -> Option<IpAddr> {
    let address: [u8; 16] = *body.get(PEER..)?.first_chunk()?;
    match *body.first()? {
        AF_INET => address.first_chunk::<4>().map(|&octets| octets.into()),
        _ => Some(Ipv6Addr::from(address).to_canonical()),
    }
}

/// Constants of linux/sock_diag.h and linux/inet_diag.h.
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;
const IPPROTO_TCP: u8 = 6;
const SOCKET_ID: usize = 48;
/// Offset of the peer's address in `struct inet_diag_msg`.
const PEER: usize = 24;
/// Offset of the queue lengths in `struct inet_diag_msg`.
const QUEUES: usize = 56;
/// TCP states of net/tcp_states.h.
const TIME_WAIT: u32 = 6;
const CLOSE: u32 = 7;
const LISTEN: u32 = 10;
