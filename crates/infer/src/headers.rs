//! From a captured frame to what its TCP header says.

use std::net::{IpAddr, Ipv6Addr};

use cwnd_quantity::{Ecn, Time};
use etherparse::{IpNumber, LaxIpSlice, TcpOptionElement, TcpOptionsIterator};

use crate::capture::Frame;
use crate::digest::digest;

/// One end of a connection. IPv4 addresses are mapped into IPv6 (RFC 4291 § 2.5.5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Host {
    address: u128,
    /// The port.
    pub port: u16,
}

impl Host {
    /// An address and a port.
    #[must_use]
    pub fn new(address: IpAddr, port: u16) -> Self {
        let address = match address {
            IpAddr::V4(v4) => v4.to_ipv6_mapped(),
            IpAddr::V6(v6) => v6,
        };
        Self { address: address.to_bits(), port }
    }

    /// The address.
    #[must_use]
    pub fn address(self) -> IpAddr {
        Ipv6Addr::from_bits(self.address).to_canonical()
    }
}

/// What is in the header of a TCP segment that matters here.
#[derive(Clone, Copy, Debug)]
pub struct Segment {
    /// When it was captured.
    pub at: Time,
    /// Who sent it.
    pub from: Host,
    /// To whom.
    pub to: Host,
    /// Sequence number of its first byte.
    pub seq: u32,
    /// What it acknowledges, if ACK is set.
    pub ack: u32,
    /// FIN, SYN, RST, PSH, ACK as in byte 13 of the header.
    pub flags: u8,
    /// The window, not scaled.
    pub window: u16,
    /// Bytes of data, those that were not captured included.
    pub length: u32,
    /// TSval and TSecr (RFC 7323 § 3.2).
    pub timestamps: Option<(u32, u32)>,
    /// The maximum segment size, on a SYN.
    pub mss: Option<u16>,
    /// The window's shift, on a SYN (RFC 7323 § 2.2).
    pub scale: Option<u8>,
    /// The first two SACK blocks (RFC 2018).
    pub blocks: [Option<(u32, u32)>; 2],
    /// The identification of an IPv4 header.
    pub id: Option<u16>,
    /// The ECN field of the IP header (RFC 3168 § 5).
    pub ecn: Ecn,
    /// A digest of the headers, the same for each copy of a packet.
    pub digest: u64,
    /// The number of the file that it is from.
    pub file: u32,
}

/// Flags of a TCP header.
pub mod flag {
    /// No more data will come.
    pub const FIN: u8 = 0x01;
    /// The connection begins.
    pub const SYN: u8 = 0x02;
    /// It is torn down.
    pub const RST: u8 = 0x04;
    /// The sender had no more to send.
    pub const PSH: u8 = 0x08;
    /// The acknowledgement number counts.
    pub const ACK: u8 = 0x10;
    /// The receiver saw a mark (RFC 3168 § 6.1).
    pub const ECE: u8 = 0x40;
    /// The sender has reduced its window for one.
    pub const CWR: u8 = 0x80;
}

impl Segment {
    /// Whether all of these flags are set.
    #[must_use]
    pub const fn has(&self, flags: u8) -> bool {
        self.flags & flags == flags
    }

    /// The sequence numbers that it takes: its data, SYN and FIN.
    #[must_use]
    pub const fn space(&self) -> u32 {
        self.length + self.has(flag::SYN) as u32 + self.has(flag::FIN) as u32
    }

    /// `true` if it acknowledges what `other` brought, by SACK maybe.
    #[must_use]
    pub fn answers(&self, other: &Self) -> bool {
        let end = other.seq.wrapping_add(other.space());
        let in_block =
            |&(start, past): &(u32, u32)| !precedes(other.seq, start) && !precedes(past, end);
        other.space() > 0
            && self.has(flag::ACK)
            && self.from == other.to
            && self.to == other.from
            && (!precedes(self.ack, end) || self.blocks.iter().flatten().any(in_block))
    }

    /// `true` if it goes before `other`: it is earlier, or as early and `other` answers it.
    ///
    /// If the order in the file says nothing (`shuffled`), an acknowledgement goes before data of
    /// the same time that it does not acknowledge, and numbers of one end go up.
    #[must_use]
    pub fn precedes(&self, other: &Self, shuffled: bool) -> bool {
        if self.at != other.at {
            return self.at < other.at;
        }
        let (before, after) = (other.answers(self), self.answers(other));
        if before != after || !shuffled {
            return before && !after;
        }
        if self.from == other.from && self.to == other.to {
            let ahead = other.ack.wrapping_sub(self.ack).cast_signed();
            return ahead > 0 || (ahead == 0 && other.seq.wrapping_sub(self.seq).cast_signed() > 0);
        }
        self.from == other.to && self.to == other.from && self.space() == 0 && other.space() > 0
    }
}

/// `true` if a sequence number or timestamp is before another: their difference is signed
/// (RFC 9293 § 3.4, RFC 7323 § 5.2).
pub const fn precedes(a: u32, b: u32) -> bool {
    a.wrapping_sub(b).cast_signed() < 0
}

/// Why a frame is not looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Skip {
    /// It is of a link type that is not known here.
    Link,
    /// It is no TCP over IP.
    Other,
    /// A fragment of an IP packet.
    Fragment,
    /// So little was captured that its header is not whole.
    Short,
    /// Its headers contradict themselves.
    Malformed,
}

/// Reads the headers of a frame.
///
/// # Errors
/// Why it is not looked at.
#[inline]
pub fn segment(frame: &Frame<'_>) -> Result<Segment, Skip> {
    let (protocol, at) = network(frame)?;
    let Some(packet) = frame.data.get(at..) else { return Err(Skip::Short) };
    let cut = frame.data.len() < frame.length as usize;
    match protocol {
        Some(IPV4 | IPV6) | None => {}
        Some(_) => return Err(Skip::Other),
    }
    let wrong = if cut { Skip::Short } else { Skip::Malformed };
    let (ip, _) = LaxIpSlice::from_slice(packet).map_err(|_| wrong)?;
    let payload = ip.payload();
    if payload.ip_number != IpNumber::TCP {
        return Err(Skip::Other);
    }
    if payload.fragmented {
        return Err(Skip::Fragment);
    }
    let tcp = payload.payload;
    // Where TCP begins: what came before it is not counted in its length.
    let before = (tcp.as_ptr() as usize).saturating_sub(packet.as_ptr() as usize);
    let (from, to, id, ecn, whole) = match &ip {
        LaxIpSlice::Ipv4(v4) => {
            let header = v4.header();
            (
                IpAddr::V4(header.source_addr()),
                IpAddr::V4(header.destination_addr()),
                Some(header.identification()),
                Ecn::of_traffic_class(packet[1]),
                usize::from(header.total_len()),
            )
        }
        LaxIpSlice::Ipv6(v6) => {
            let header = v6.header();
            let length = usize::from(header.payload_length());
            let whole = if length == 0 { 0 } else { length + IPV6_HEADER };
            let (from, to) = (header.source_addr(), header.destination_addr());
            (IpAddr::V6(from), IpAddr::V6(to), None, Ecn::of_traffic_class(packet[1] >> 4), whole)
        }
    };
    // A packet that the network card is yet to cut has no length (Linux, BIG TCP).
    let whole = if whole == 0 { (frame.length as usize).saturating_sub(at) } else { whole };
    let length = whole.checked_sub(before).ok_or(Skip::Malformed)?;
    let mut segment = transport(tcp, length, wrong)?;
    segment.at = frame.at;
    segment.from = Host::new(from, segment.from.port);
    segment.to = Host::new(to, segment.to.port);
    (segment.id, segment.ecn) = (id, ecn);
    let end = before + header_length(tcp);
    segment.digest = digest(packet.get(..end).unwrap_or(packet));
    Ok(segment)
}

const IPV6_HEADER: usize = 40;
const TCP_HEADER: usize = 20;
/// EtherTypes.
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
/// 802.1Q, 802.1ad and what was used for QinQ before.
const TAGS: [u16; 3] = [0x8100, 0x88a8, 0x9100];
/// <https://www.tcpdump.org/linktypes.html>
mod link {
    pub const NULL: i32 = 0;
    pub const ETHERNET: i32 = 1;
    pub const RAW: i32 = 101;
    /// What captures of BSD and OpenBSD call it.
    pub const RAW_BSD: [i32; 2] = [12, 14];
    pub const LOOP: i32 = 108;
    pub const LINUX_SLL: i32 = 113;
    pub const IPV4: i32 = 228;
    pub const IPV6: i32 = 229;
    pub const LINUX_SLL2: i32 = 276;
}

/// What is said to follow the link's header, and where that begins.
fn network(frame: &Frame<'_>) -> Result<(Option<u16>, usize), Skip> {
    let short = |at: usize| u16_at(frame.data, at).ok_or(Skip::Short);
    let (mut protocol, mut at) = match frame.link {
        link::ETHERNET => (short(12)?, 14),
        link::LINUX_SLL => (short(14)?, 16),
        link::LINUX_SLL2 => (short(0)?, 20),
        // The address family, whose numbers differ: the version of IP tells.
        link::NULL | link::LOOP => return Ok((None, 4)),
        link::RAW | link::IPV4 | link::IPV6 => return Ok((None, 0)),
        other if link::RAW_BSD.contains(&other) => return Ok((None, 0)),
        _ => return Err(Skip::Link),
    };
    while TAGS.contains(&protocol) {
        protocol = short(at + 2)?;
        at += 4;
    }
    Ok((Some(protocol), at))
}

/// The length of a TCP header with its options, from its data offset.
fn header_length(tcp: &[u8]) -> usize {
    tcp.get(12).map_or(0, |byte| usize::from(byte >> 4) * 4)
}

fn transport(tcp: &[u8], length: usize, wrong: Skip) -> Result<Segment, Skip> {
    let header: &[u8; TCP_HEADER] = tcp.first_chunk().ok_or(wrong)?;
    let word = |at: usize| {
        u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
    };
    let half = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    let offset = header_length(header);
    if offset < TCP_HEADER {
        return Err(Skip::Malformed);
    }
    let length = length.checked_sub(offset).ok_or(Skip::Malformed)?;
    // The addresses stand in the IP header: who read that one fills them in.
    let port = |at: usize| Host { address: 0, port: half(at) };
    let mut segment = Segment {
        at: Time::ZERO,
        from: port(0),
        to: port(2),
        seq: word(4),
        ack: word(8),
        flags: header[13],
        window: half(14),
        length: u32::try_from(length).map_err(|_| Skip::Malformed)?,
        timestamps: None,
        mss: None,
        scale: None,
        blocks: [None; 2],
        id: None,
        ecn: Ecn::NotEct,
        digest: 0,
        file: 0,
    };
    let options = tcp.get(TCP_HEADER..offset.min(tcp.len())).unwrap_or_default();
    read_options(options, &mut segment);
    Ok(segment)
}

/// The options as far as they are whole.
fn read_options(options: &[u8], segment: &mut Segment) {
    // As nearly all segments have them (RFC 7323, appendix A).
    if let [1, 1, 8, 10, value @ ..] = options
        && let [a, b, c, d, e, f, g, h] = *value
    {
        let value = u32::from_be_bytes([a, b, c, d]);
        segment.timestamps = Some((value, u32::from_be_bytes([e, f, g, h])));
        return;
    }
    for option in TcpOptionsIterator::from_slice(options) {
        match option {
            Ok(TcpOptionElement::Timestamp(value, echo)) => {
                segment.timestamps = Some((value, echo));
            }
            Ok(TcpOptionElement::MaximumSegmentSize(mss)) => segment.mss = Some(mss),
            Ok(TcpOptionElement::WindowScale(scale)) => segment.scale = Some(scale.min(14)),
            Ok(TcpOptionElement::SelectiveAcknowledgement(first, more)) => {
                segment.blocks = [Some(first), more[0]];
            }
            Ok(_) => {}
            Err(_) => break,
        }
    }
}

fn u16_at(data: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*data.get(at)?, *data.get(at + 1)?]))
}
