//! Packets as bytes: one reader of IP and TCP headers for router and captures; writers of IPv4 with
//! TCP, UDP or a source quench; capture files; and sets of byte numbers.
//!
//! Written payload is zero bytes everywhere and is left out: headers state its length, checksums
//! count it.
#![forbid(unsafe_code)]

pub mod adpm;
mod congestion_header;
mod contract;
mod ecn;
mod icmp;
mod ip;
mod ip_packet;
pub mod mlcp;
mod pcapng;
mod ranges;
mod sorted_map;
mod tcp;
mod tcp_header;
mod udp;

pub use congestion_header::{Echo, Guidance, Header, Rate48};
pub use contract::{Ability, Ask, Contract, Declares, Place};
pub use ecn::Ecn;
pub use icmp::{HeardQuench, SourceQuench};
pub use ip::{Endpoints, Headers};
pub use ip_packet::{
    Fragment, IpPacket, checksum_holds, ecn_of, ones_complement_sum, protocol, set_ecn,
    set_identification,
};
pub use pcapng::{Interface, Writer};
pub use ranges::{Range, Ranges};
pub use sorted_map::SortedMap;
pub use tcp::{Experiment, MAX_SACK_BLOCKS, Options, Tcp, window_scale};
pub use tcp_header::{HeaderError, TcpHeader, TcpHeaderOptions, flag};
pub use udp::Udp;
