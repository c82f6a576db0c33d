//! Settings and counters of a side's network namespace, in which the calling thread must be.

use std::fs;
use std::io;
use std::net::Ipv4Addr;

use cwnd_router::linux::Route;
use cwnd_router::linux::netlink::{Interface, Netlink, push_attribute};

/// A route to one address, with metrics for its connections.
#[derive(Clone, Copy, Debug)]
pub struct RouteTo {
    /// Destination address.
    pub destination: Ipv4Addr,
    /// Source address of packets.
    pub source: Ipv4Addr,
    /// `true` if connections opened from here request ECN.
    pub ecn: bool,
    /// Initial congestion window in segments, unless it is the kernel's default.
    pub initial_window: Option<u32>,
    /// Minimum retransmission timeout in ms, unless it is the kernel's default.
    pub rto_min_ms: Option<u32>,
    /// `true` if each segment received over it is acknowledged at once.
    pub quick_acks: bool,
}

/// Adds a route through an interface.
pub fn add_route(netlink: &mut Netlink, interface: Interface, route: &RouteTo) -> io::Result<()> {
    let mut metrics = Vec::new();
    if route.ecn {
        push_attribute(&mut metrics, RTAX_FEATURES, &RTAX_FEATURE_ECN.to_ne_bytes());
    }
    if let Some(segments) = route.initial_window {
        push_attribute(&mut metrics, RTAX_INITCWND, &segments.to_ne_bytes());
    }
    if let Some(ms) = route.rto_min_ms {
        push_attribute(&mut metrics, RTAX_RTO_MIN, &ms.to_ne_bytes());
    }
    if route.quick_acks {
        push_attribute(&mut metrics, RTAX_QUICKACK, &1_u32.to_ne_bytes());
    }
    let way = Route::to_host(route.destination.into());
    netlink.add_route(interface, &Route { source: Some(route.source.into()), metrics, ..way })
}

/// Reads a sysctl of the calling thread's namespace, with single spaces between its values; `None`
/// if the kernel lacks it.
pub fn sysctl(name: &str) -> Option<String> {
    let text = fs::read_to_string(sysctl_file(name)).ok()?;
    Some(text.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// Writes a sysctl of the calling thread's namespace.
pub fn set_sysctl(name: &str, value: &str) -> io::Result<()> {
    fs::write(sysctl_file(name), value)
        .map_err(|error| io::Error::new(error.kind(), format!("sysctl {name}={value}: {error}")))
}

fn sysctl_file(name: &str) -> String {
    format!("/proc/sys/{}", name.replace('.', "/"))
}

/// Returns the namespace's nonzero TCP counters, from `/proc/net/snmp` and `/proc/net/netstat`.
pub fn tcp_counters() -> Vec<(String, i64)> {
    let mut found = Vec::new();
    for file in ["/proc/thread-self/net/snmp", "/proc/thread-self/net/netstat"] {
        let text = fs::read_to_string(file).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        // Pairs of lines, names and values, each after the protocol.
        for pair in lines.chunks_exact(2).filter(|pair| pair[0].starts_with("Tcp")) {
            let (names, values) = (pair[0].split_whitespace(), pair[1].split_whitespace());
            for (name, value) in names.zip(values).skip(1) {
                if let Some(value) = value.parse().ok().filter(|&v: &i64| v != 0) {
                    found.push((name.to_owned(), value));
                }
            }
        }
    }
    found
}

// Constants of linux/rtnetlink.h.
const RTAX_INITCWND: u16 = 11;
const RTAX_FEATURES: u16 = 12;
const RTAX_FEATURE_ECN: u32 = 1;
const RTAX_RTO_MIN: u16 = 13;
const RTAX_QUICKACK: u16 = 15;
