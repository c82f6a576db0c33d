//! Messages of a router to the sources of packets: a messenger reads the verdicts of the queue and
//! sends source quenches back.

use core::fmt;
use core::net::{IpAddr, Ipv4Addr};
use std::collections::VecDeque;

use cwnd_aqm::{Messenger, Outcome};
use cwnd_link::{Line, Reader, Settings};
use cwnd_packet::SourceQuench;
use cwnd_quantity::{Streams, Time};

use crate::config::{Config, Direction};
use crate::packet::{Packet, Pool, parse};

/// Messenger at the queue of a direction, with the messages that have not left yet.
///
/// Messages leave at once at the side where the direction begins, past all queues: the router is at
/// the sources, as in a dumbbell of the simulator.
pub struct MessengerTap {
    reader: Reader,
    messenger: Box<dyn Messenger<Packet>>,
    /// Source address of the messages.
    address: Ipv4Addr,
    /// Only source that may receive messages; `None` is all.
    allowed_source: Option<Ipv4Addr>,
    out: VecDeque<(Time, Vec<u8>)>,
    /// Bytes of the message that left last.
    leaving: Vec<u8>,
    sent: u64,
    not_sent_ipv6: u64,
}

impl fmt::Debug for MessengerTap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MessengerTap").field("messenger", &self.messenger).finish_non_exhaustive()
    }
}

impl MessengerTap {
    /// Creates the messenger of a direction, if the direction has one and a queue.
    pub fn new(config: &Config, of: &Direction, line: &mut Line<Packet>) -> Option<Self> {
        let (facts, _) = Settings::from(of).facts(&Streams::new(config.seed))?;
        Some(Self {
            messenger: of.messenger.build(&facts)?,
            reader: line.reader(),
            address: config.address,
            allowed_source: of.message_target,
            out: VecDeque::new(),
            leaving: Vec::new(),
            sent: 0,
            not_sent_ipv6: 0,
        })
    }

    /// Reads recent verdicts of the queue, and passes the resulting messages to `on_message`.
    #[cold]
    pub fn read(
        &mut self,
        now: Time,
        line: &mut Line<Packet>,
        pool: &Pool,
        mut on_message: impl FnMut(&[u8]),
    ) {
        while let Some(verdict) = line.read(self.reader) {
            let bytes = pool.bytes(verdict.packet.buffer);
            let Some(source) = self.message_target(bytes) else { continue };
            let Some(level) = self.messenger.on_verdict(&verdict, line.backlog(), pool) else {
                continue;
            };
            let marked = matches!(verdict.what, Outcome::Marked { .. });
            // The message quotes the packet as it was forwarded or dropped.
            let quench = SourceQuench { quoted: bytes, marked, level };
            let quench = quench.headers(self.address.octets(), source).bytes;
            on_message(&quench);
            self.sent += 1;
            self.out.push_back((now, quench));
        }
    }

    /// Returns the source of a packet if a message may go to it; counts packets of IPv6.
    fn message_target(&mut self, bytes: &[u8]) -> Option<[u8; 4]> {
        let packet = parse(bytes).filter(|packet| packet.answerable)?;
        match (packet.source.address, packet.destination.address) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                let may = is_host_address(source) && !is_group_address(destination);
                let is_told = self.allowed_source.is_none_or(|told| told == source);
                (may && is_told).then_some(source.octets())
            }
            // ICMPv6 has no source quench: its type 4 is Parameter Problem (RFC 4443 § 3.4).
            _ => {
                self.not_sent_ipv6 += 1;
                None
            }
        }
    }

    /// Returns the time of the oldest message that waits.
    #[inline]
    pub fn next(&self) -> Time {
        self.out.front().map_or(Time::NEVER, |&(at, _)| at)
    }

    /// Removes the oldest message. Returns its time, and its bytes, which are valid until the next
    /// call.
    pub fn leave(&mut self) -> Option<(Time, &[u8])> {
        let (at, bytes) = self.out.pop_front()?;
        self.leaving = bytes;
        Some((at, &self.leaving))
    }

    /// Returns the number of messages that have not left yet.
    pub fn held(&self) -> u64 {
        self.out.len() as u64
    }

    /// Returns the number of messages written.
    pub const fn sent(&self) -> u64 {
        self.sent
    }

    /// Passes its counters to `each`, by name.
    pub fn count(&self, each: &mut dyn FnMut(&'static str, u64)) {
        each("quenches_sent", self.sent);
        each("quenches_unsaid_ipv6", self.not_sent_ipv6);
        self.messenger.count(each);
    }
}

/// `true` if an address may be that of a single host: others receive no ICMP error (RFC 1812 §
/// 4.3.2.7).
const fn is_host_address(address: Ipv4Addr) -> bool {
    let this_network = address.octets()[0] == 0;
    !(this_network || address.is_loopback() || is_group_address(address) || is_class_e(address))
}

/// `true` for multicast addresses and 255.255.255.255: no ICMP error is sent about packets to them
/// (RFC 1812 § 4.3.2.7).
const fn is_group_address(address: Ipv4Addr) -> bool {
    address.is_multicast() || address.is_broadcast()
}

/// `true` for reserved addresses, which no host has (RFC 1122 § 3.2.1.3).
const fn is_class_e(address: Ipv4Addr) -> bool {
    address.octets()[0] >= CLASS_E
}

/// Lowest first octet of reserved addresses, 240.0.0.0/4.
const CLASS_E: u8 = 240;
