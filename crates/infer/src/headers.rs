//! Reader of a captured frame's headers, down to the TCP options, and their digest.
//!
//! Number of packets sent in between, from IPv4 identifications of senders that number their
//! packets, as Linux does for each connection.

use std::net::{IpAddr, Ipv6Addr};

pub use cwnd_packet::flag;
use cwnd_packet::{Ecn, Fragment, HeaderError, IpPacket, TcpHeader, protocol};
use cwnd_quantity::Time;

use crate::capture::Frame;

/// Address and port of one end of a connection. IPv4 addresses are mapped into IPv6 (RFC 4291 §
/// 2.5.5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Host {
    address: u128,
    /// TCP port.
    pub port: u16,
}

impl Host {
    /// Creates an end from an address and a port.
    #[must_use]
    pub fn new(address: IpAddr, port: u16) -> Self {
        let address = match address {
            IpAddr::V4(v4) => v4.to_ipv6_mapped(),
            IpAddr::V6(v6) => v6,
        };
        Self { address: address.to_bits(), port }
    }

    /// Returns the address, as IPv4 if it was mapped.
    #[must_use]
    pub fn address(self) -> IpAddr {
        Ipv6Addr::from_bits(self.address).to_canonical()
    }
}

/// Fields of a captured TCP segment.
#[derive(Clone, Copy, Debug)]
pub struct Segment {
    /// Capture time.
    pub at: Time,
    /// Address and port of its sender.
    pub from: Host,
    /// Address and port of its destination.
    pub to: Host,
    /// Sequence number of the first byte.
    pub seq: u32,
    /// Acknowledgment number, valid if ACK is set.
    pub ack: u32,
    /// Flags of byte 13 of the header.
    pub flags: u8,
    /// Window, unscaled.
    pub window: u16,
    /// Payload bytes, including those that were not captured.
    pub length: u32,
    /// Bytes of the headers of IP and TCP.
    pub headers: u16,
    /// TSval and TSecr (RFC 7323 § 3.2).
    pub timestamps: Option<(u32, u32)>,
    /// MSS option, which a SYN has.
    pub mss: Option<u16>,
    /// Window scale option, which a SYN has (RFC 7323 § 2.2).
    pub scale: Option<u8>,
    /// First two SACK blocks (RFC 2018).
    pub blocks: [Option<(u32, u32)>; 2],
    /// Identification field of the IPv4 header; `None` for IPv6.
    pub id: Option<u16>,
    /// ECN field of the IP header (RFC 3168 § 5).
    pub ecn: Ecn,
    /// Digest of the headers from IP to TCP, the same for each copy of a packet.
    pub digest: u64,
    /// Number of the file that contains it; the reader of files sets it.
    pub file: u32,
}

impl Segment {
    /// `true` if all of these flags are set.
    #[must_use]
    pub const fn has(&self, flags: u8) -> bool {
        self.flags & flags == flags
    }

    /// Returns its length in sequence numbers: data, SYN and FIN.
    #[must_use]
    pub const fn space(&self) -> u32 {
        self.length + self.has(flag::SYN) as u32 + self.has(flag::FIN) as u32
    }

    /// `true` if it acknowledges all data, SYN and FIN of `other`, cumulatively or by SACK.
    #[must_use]
    pub fn receiver(&self, other: &Self) -> bool {
        let end = other.seq.wrapping_add(other.space());
        let in_block =
            |&(start, past): &(u32, u32)| !precedes(other.seq, start) && !precedes(past, end);
        other.space() > 0
            && self.has(flag::ACK)
            && self.from == other.to
            && self.to == other.from
            && (!precedes(self.ack, end) || self.blocks.iter().flatten().any(in_block))
    }

    /// `true` if it sorts before `other`: it is earlier, or equally early and acknowledged by
    /// `other`.
    ///
    /// In a file out of order (`shuffled`), an ACK sorts before data of the same time that it does
    /// not acknowledge. Packets of one end then sort by their numbers.
    #[must_use]
    pub fn precedes(&self, other: &Self, shuffled: bool) -> bool {
        if self.at != other.at {
            return self.at < other.at;
        }
        let (before, after) = (other.receiver(self), self.receiver(other));
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

/// `true` if a sequence number or timestamp is before another, by their signed difference (RFC 9293
/// § 3.4, RFC 7323 § 5.2).
pub const fn precedes(a: u32, b: u32) -> bool {
    a.wrapping_sub(b).cast_signed() < 0
}

/// Reason why a frame is skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Skip {
    /// Its link-layer type is not supported.
    Link,
    /// It is not TCP over IP.
    Other,
    /// It is a fragment of an IP packet.
    Fragment,
    /// Its headers were not captured entirely.
    Short,
    /// Its headers are inconsistent.
    Malformed,
}

/// Reads the headers of a frame down to TCP.
///
/// # Errors
/// If the frame is skipped, with the reason.
#[inline]
pub fn segment(frame: &Frame<'_>) -> Result<Segment, Skip> {
    let (ip, packet, whole) = ip_packet(frame)?;
    let wrong = refusal(frame);
    if ip.protocol != protocol::TCP {
        return Err(Skip::Other);
    }
    if ip.fragment != Fragment::Whole {
        return Err(Skip::Fragment);
    }
    let content = whole.checked_sub(ip.header_bytes).ok_or(Skip::Malformed)?;
    let tcp = TcpHeader::read(ip.content).map_err(|error| match error {
        HeaderError::Short => wrong,
        HeaderError::DataOffset => Skip::Malformed,
    })?;
    let length = content.checked_sub(tcp.header_bytes).ok_or(Skip::Malformed)?;
    let headers = ip.header_bytes + tcp.header_bytes;
    let options = tcp.options();
    Ok(Segment {
        at: frame.at,
        from: Host::new(ip.source, tcp.source_port),
        to: Host::new(ip.destination, tcp.destination_port),
        seq: tcp.sequence,
        ack: tcp.acknowledgment,
        flags: tcp.flags,
        window: tcp.window,
        length: u32::try_from(length).map_err(|_| Skip::Malformed)?,
        headers: u16::try_from(headers).map_err(|_| Skip::Malformed)?,
        timestamps: options.timestamps,
        mss: options.mss,
        scale: options.window_scale,
        blocks: [options.sack[0], options.sack[1]],
        id: ip.identification,
        ecn: ip.ecn,
        digest: digest(packet.get(..headers).unwrap_or(packet)),
        file: 0,
    })
}

/// Reads the IP header of a frame. Returns it, the captured packet from that header on, and the
/// length of the whole packet in bytes.
///
/// # Errors
/// If the frame is skipped, with the reason.
#[inline]
pub fn ip_packet<'a>(frame: &Frame<'a>) -> Result<(IpPacket<'a>, &'a [u8], usize), Skip> {
    let (protocol, at) = network(frame)?;
    let Some(packet) = frame.data.get(at..) else { return Err(Skip::Short) };
    match protocol {
        Some(IPV4 | IPV6) | None => {}
        Some(_) => return Err(Skip::Other),
    }
    let ip = IpPacket::read(packet).ok_or_else(|| refusal(frame))?;
    // A packet that the network card has yet to segment has no length field (Linux, BIG TCP).
    let whole = ip.length.unwrap_or_else(|| (frame.length as usize).saturating_sub(at));
    Ok((ip, packet, whole))
}

/// Reason why a frame whose headers cannot be read is skipped.
const fn refusal(frame: &Frame<'_>) -> Skip {
    if frame.data.len() < frame.length as usize { Skip::Short } else { Skip::Malformed }
}

/// EtherType of IPv4.
const IPV4: u16 = 0x0800;
/// EtherType of IPv6.
const IPV6: u16 = 0x86dd;
/// 802.1Q, 802.1ad, and the value used for QinQ before.
const TAGS: [u16; 3] = [0x8100, 0x88a8, 0x9100];
/// Link-layer types of captures (<https://www.tcpdump.org/linktypes.html>).
mod link {
    pub const NULL: i32 = 0;
    pub const ETHERNET: i32 = 1;
    pub const RAW: i32 = 101;
    /// Values of raw IP in captures of BSD and OpenBSD.
    pub const RAW_BSD: [i32; 2] = [12, 14];
    pub const LOOP: i32 = 108;
    pub const LINUX_SLL: i32 = 113;
    pub const IPV4: i32 = 228;
    pub const IPV6: i32 = 229;
    pub const LINUX_SLL2: i32 = 276;
}

/// Returns the EtherType, if the link layer gives one, and the offset of the IP header.
fn network(frame: &Frame<'_>) -> Result<(Option<u16>, usize), Skip> {
    let short = |at: usize| u16_at(frame.data, at).ok_or(Skip::Short);
    let (mut protocol, mut at) = match frame.link {
        link::ETHERNET => (short(12)?, 14),
        link::LINUX_SLL => (short(14)?, 16),
        link::LINUX_SLL2 => (short(0)?, 20),
        // The address family has system-dependent numbers: the version field of IP is read instead.
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

fn u16_at(data: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*data.get(at)?, *data.get(at + 1)?]))
}

/// Returns a digest of the IP and TCP headers without fields that each router changes: the time to
/// live (hop limit) and the IPv4 header checksum.
///
/// The ECN field counts. The payload counts only by its length and by the TCP checksum.
#[inline]
fn digest(headers: &[u8]) -> u64 {
    /// Masks that clear bytes 8, 10 and 11 of IPv4 and byte 7 of IPv6.
    const IPV4: [u64; 2] = [u64::MAX, !0xffff_00ff];
    const IPV6: [u64; 2] = [u64::MAX >> 8, u64::MAX];
    let masks = if headers.first().is_some_and(|byte| byte >> 4 == 4) { IPV4 } else { IPV6 };
    let (words, rest) = headers.as_chunks::<8>();
    let mut sum = headers.len() as u64;
    for (word, mask) in words.iter().zip(masks.into_iter().chain(std::iter::repeat(u64::MAX))) {
        sum = mix(sum, u64::from_le_bytes(*word) & mask);
    }
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    mix(sum, u64::from_le_bytes(last))
}

/// Multiplies both and folds the product, as wyhash does.
#[inline]
const fn mix(sum: u64, word: u64) -> u64 {
    /// 2⁶⁴ divided by the golden ratio, and a prime of xxHash.
    const FACTORS: [u64; 2] = [0x9e37_79b9_7f4a_7c15, 0xc2b2_ae3d_27d4_eb4f];
    let product = (sum ^ FACTORS[0]) as u128 * (word ^ FACTORS[1]) as u128;
    product as u64 ^ (product >> 64) as u64
}

/// Score from which larger steps count as missing packets, unless the sender is Linux. A step of
/// one is believed at once: a sender that writes arbitrary values rarely writes the next number.
const BELIEVED: u32 = 1;
/// Points that a step of one adds to the score; a larger step up to [`MAX_WINDOW`] takes one away.
const MAKES_GOOD: u32 = 2;
const MOST: u32 = 64;
/// Largest step that counts as missing packets. A larger one shows a counter shared with others, or
/// none.
const MAX_WINDOW: u16 = 256;

/// State of one sender's identifications.
///
/// RFC 6864 lets a sender write any value into packets that may not be fragmented. The field is
/// therefore believed only after two consecutive values, or if the SYN-ACK shows Linux.
#[derive(Clone, Copy, Debug, Default)]
pub struct Identifications {
    /// Identification of the next packet if none is lost.
    expected: Option<u16>,
    steady: u32,
    /// `true` if the SYN-ACK had zero, as from Linux, and later packets so far are numbered.
    zero: bool,
}

impl Identifications {
    /// `true` if the sender numbers its packets like Linux, and none of them has come yet.
    pub const fn begins(&self) -> bool {
        self.zero && self.expected.is_none()
    }

    /// `true` if the sender wrote zero into its SYN-ACK and later packets so far are numbered.
    /// Among the stacks known here only Linux does.
    pub const fn is_linux(&self) -> bool {
        self.zero
    }

    /// Returns the number of packets sent between the last one and this; `None` if unknown. A
    /// segment longer than `mss` was several packets; `mss` is 0 if not known.
    #[inline]
    pub fn between(&mut self, segment: &Segment, mss: u32) -> Option<u16> {
        let id = segment.id?;
        if segment.has(flag::SYN) && segment.has(flag::ACK) {
            (self.zero, self.expected) = (id == 0, None);
            return None;
        }
        // A sender that always writes zero does not number its packets.
        self.zero &= self.expected.is_some() || id != 0;
        // A segment merged by a network card was several packets.
        let packets = if mss == 0 { 1 } else { segment.length.div_ceil(mss).max(1) };
        let step = self.expected.map(|expected| id.wrapping_sub(expected));
        // A reordered packet shows nothing.
        if step.is_some_and(|step| step.wrapping_neg() <= MAX_WINDOW && step != 0) {
            return None;
        }
        self.expected = Some(id.wrapping_add(packets as u16));
        match step? {
            0 => {
                self.steady = (self.steady + MAKES_GOOD).min(MOST);
                Some(0)
            }
            step if step <= MAX_WINDOW => {
                let believed = self.zero || self.steady >= BELIEVED;
                // A counter of a whole host has such steps all the time.
                self.steady = self.steady.saturating_sub(1);
                believed.then_some(step)
            }
            _ => {
                (self.steady, self.zero) = (0, false);
                None
            }
        }
    }
}
