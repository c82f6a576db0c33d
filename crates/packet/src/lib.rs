//! Packet formats: a reader of IP and TCP headers, shared by router and captures; writers of IPv4
//! packets with TCP, UDP or a source quench; pcapng files; and sets of byte numbers.
//!
//! Written payload consists of zero bytes and is left out. The headers' lengths and checksums count
//! it.
//!
//! A part of a path declares a [`Contract`]: the abilities that it requires of the path, and those
//! that it provides. `cwnd_scenario` reports an unmet need as an error and an unmet wish as a
//! warning.
#![cfg_attr(not(any(test, feature = "pcapng")), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod adpm;
mod congestion_header;
mod contract;
mod icmp;
mod ip;
mod ip_packet;
pub mod mlcp;
#[cfg(feature = "pcapng")]
mod pcapng;
mod ranges;
mod sorted_map;
mod tcp;

pub use congestion_header::{CongestionHeader, Echo, Guidance, Rate48};
pub use contract::{Ability, Contract, HasContract, Place, Requirement};
pub use icmp::{ReceivedQuench, SourceQuench};
pub use ip::{Ecn, Endpoints, Headers, Udp};
pub use ip_packet::{
    Fragment, IpPacket, checksum_holds, ecn_of, ones_complement_sum, protocol, set_ecn,
    set_identification,
};
#[cfg(feature = "pcapng")]
pub use pcapng::{Interface, Writer};
pub use ranges::{Range, Ranges};
pub use sorted_map::SortedMap;
pub use tcp::{
    Experiment, HeaderError, MAX_SACK_BLOCKS, Options, Tcp, TcpHeader, TcpHeaderOptions, flag,
    window_scale,
};
