//! State of a side's network namespace, in which the calling thread must be: settings and counters,
//! and `struct tcp_info` of its TCP sockets, read through sock_diag(7).

use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};

use cwnd_router::linux::Route;
use cwnd_router::linux::netlink::{ACK, Interface, Netlink, Request, attribute, push_attribute};
use rustix::io::Errno;

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
    counters("Tcp")
}

/// Returns the number of datagrams that full receive buffers dropped in the namespace.
pub fn receive_buffer_drops() -> u64 {
    let drops = counters("Udp:").into_iter().find(|(name, _)| name == "RcvbufErrors");
    drops.map_or(0, |(_, count)| count.cast_unsigned())
}

/// Returns the namespace's nonzero counters of a protocol.
fn counters(protocol: &str) -> Vec<(String, i64)> {
    let mut found = Vec::new();
    for file in ["/proc/thread-self/net/snmp", "/proc/thread-self/net/netstat"] {
        let text = fs::read_to_string(file).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        // Pairs of lines, names and values, each after the protocol.
        for pair in lines.chunks_exact(2).filter(|pair| pair[0].starts_with(protocol)) {
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

/// Part of `struct tcp_info` (linux/tcp.h). Fields newer than the running kernel are `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpInfo {
    /// State from `TCP_CA_Open` to `TCP_CA_Loss`.
    pub ca_state: u8,
    /// Retransmission timeout including backoff, µs.
    pub rto_us: u32,
    /// Payload of a full segment sent, bytes.
    pub snd_mss: u32,
    /// Unacknowledged segments.
    pub unacked: u32,
    /// Unacknowledged segments that were acknowledged selectively.
    pub sacked: u32,
    /// Unacknowledged segments presumed lost.
    pub lost: u32,
    /// Unacknowledged segments that were retransmitted.
    pub retrans: u32,
    /// Smoothed RTT, µs; 0 before the first sample.
    pub rtt_us: u32,
    /// RTT variation, µs.
    pub rttvar_us: u32,
    /// Slow-start threshold, segments.
    pub snd_ssthresh: u32,
    /// Congestion window, segments.
    pub snd_cwnd: u32,
    /// Segments retransmitted so far.
    pub total_retrans: u32,
    /// Minimum RTT, µs; `u32::MAX` before the first sample.
    pub min_rtt_us: Option<u32>,
    /// Data segments received so far.
    pub data_segs_in: Option<u32>,
    /// Data segments sent so far, including retransmissions.
    pub data_segs_out: Option<u32>,
    /// Payload sent so far, including retransmissions, bytes.
    pub bytes_sent: Option<u64>,
    /// Delivered packets whose ACK carried ECE.
    pub delivered_ce: Option<u32>,
    /// Expiries of the retransmission timer (Linux 6.7).
    pub total_rto: Option<u16>,
    /// Recoveries from timeouts, including unfinished ones; timeouts in a row count once (Linux
    /// 6.7).
    pub total_rto_recoveries: Option<u16>,
    /// Segments received with CE (Linux 6.18).
    pub received_ce: Option<u32>,
    /// Bytes written by the application that are not acknowledged.
    pub unacked_bytes: u32,
}

impl TcpInfo {
    /// Reads a `struct inet_diag_msg` and its attributes; `None` if it lacks fields that all
    /// kernels have.
    #[must_use]
    pub fn read(answer: &[u8]) -> Option<Self> {
        let unacked_bytes = u32_at(answer, WQUEUE)?;
        let info = attribute(answer.get(INET_DIAG_MSG..)?, INET_DIAG_INFO)?;
        let word = |index: usize| u32_at(info, 8 + 4 * index);
        Some(Self {
            ca_state: *info.get(1)?,
            rto_us: word(0)?,
            snd_mss: word(2)?,
            unacked: word(4)?,
            sacked: word(5)?,
            lost: word(6)?,
            retrans: word(7)?,
            rtt_us: word(15)?,
            rttvar_us: word(16)?,
            snd_ssthresh: word(17)?,
            snd_cwnd: word(18)?,
            total_retrans: word(23)?,
            min_rtt_us: u32_at(info, 148),
            data_segs_in: u32_at(info, 152),
            data_segs_out: u32_at(info, 156),
            delivered_ce: u32_at(info, 196),
            bytes_sent: u64_at(info, 200),
            total_rto: u16_at(info, 240),
            total_rto_recoveries: u16_at(info, 242),
            received_ce: u32_at(info, 248),
            unacked_bytes,
        })
    }

    /// Returns the segments presumed in the network, as the kernel's `tcp_packets_in_flight`.
    #[must_use]
    pub const fn in_flight(&self) -> u32 {
        let out = self.unacked.saturating_add(self.retrans);
        out.saturating_sub(self.sacked.saturating_add(self.lost))
    }
}

/// Reads the state of a socket of the namespace in which `netlink` was opened; `None` if no socket
/// has these addresses any more.
pub fn tcp_info(
    netlink: &mut Netlink,
    local: SocketAddrV4,
    remote: SocketAddrV4,
) -> io::Result<Option<TcpInfo>> {
    let answers = match netlink.request(&[request(local, remote)]) {
        Err(error) if error.raw_os_error() == Some(Errno::NOENT.raw_os_error()) => return Ok(None),
        answered => answered?,
    };
    Ok(answers.first().and_then(|(_, body)| TcpInfo::read(body)))
}

/// Encodes `struct inet_diag_req_v2` for one socket.
fn request(local: SocketAddrV4, remote: SocketAddrV4) -> Request {
    let address = |a: SocketAddrV4| [a.ip().octets(), [0; 4], [0; 4], [0; 4]].concat();
    Request::new(SOCK_DIAG_BY_FAMILY, ACK)
        .put(&[AF_INET, IPPROTO_TCP, 1 << (INET_DIAG_INFO - 1), 0])
        .number(u32::MAX)
        .put(&local.port().to_be_bytes())
        .put(&remote.port().to_be_bytes())
        .put(&address(local))
        .put(&address(remote))
        // Any interface, any cookie.
        .number(0)
        .put(&[u8::MAX; 8])
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|b| u16::from_ne_bytes(*b))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|b| u32::from_ne_bytes(*b))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|b| u64::from_ne_bytes(*b))
}

// Constants of linux/rtnetlink.h.
const RTAX_INITCWND: u16 = 11;
const RTAX_FEATURES: u16 = 12;
const RTAX_FEATURE_ECN: u32 = 1;
const RTAX_RTO_MIN: u16 = 13;
const RTAX_QUICKACK: u16 = 15;

const SOCK_DIAG_BY_FAMILY: u16 = 20;
const AF_INET: u8 = 2;
const IPPROTO_TCP: u8 = 6;
const INET_DIAG_INFO: u16 = 2;
/// Size of `struct inet_diag_msg`, and offset of its `idiag_wqueue`: written and unacknowledged
/// bytes of a connection.
const INET_DIAG_MSG: usize = 72;
const WQUEUE: usize = 60;
