//! Messages of a router to the sources of packets: its messenger reads the verdicts of the queue,
//! and source quenches go back.

use core::fmt;
use core::net::{IpAddr, Ipv4Addr};
use std::collections::VecDeque;

use cwnd_aqm::{Messenger, Outcome};
use cwnd_link::{Line, Reader, Settings};
use cwnd_packet::SourceQuench;
use cwnd_quantity::{Streams, Time};

use crate::config::{Config, Direction};
use crate::packet::parse;
use crate::pool::{Packet, Pool};

/// A router's messenger at the queue of a direction, and the messages that have not left yet.
///
/// They leave where that direction begins, at once and past all queues: the router stands at the sources, as in a dumbbell of the
/// simulator.
pub struct Office {
    reader: Reader,
    messenger: Box<dyn Messenger<Packet>>,
    /// In whose name messages go.
    address: Ipv4Addr,
    /// The one source that may be told, if it is one.
    told: Option<Ipv4Addr>,
    out: VecDeque<(Time, Vec<u8>)>,
    /// The one that left last.
    leaving: Vec<u8>,
    sent: u64,
    unsaid: u64,
}

impl fmt::Debug for Office {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Office").field("messenger", &self.messenger).finish_non_exhaustive()
    }
}

impl Office {
    /// That of a direction, if it has a messenger and a queue.
    pub fn new(config: &Config, of: &Direction, line: &mut Line<Packet>) -> Option<Self> {
        let (facts, _) = Settings::from(of).facts(&Streams::new(config.seed))?;
        Some(Self {
            messenger: of.messenger.build(&facts)?,
            reader: line.reader(),
            address: config.address,
            told: of.told,
            out: VecDeque::new(),
            leaving: Vec::new(),
            sent: 0,
            unsaid: 0,
        })
    }

    /// Reads what the queue decided of late; `each` is told of the messages that follow from it.
    #[cold]
    pub fn read(
        &mut self,
        now: Time,
        line: &mut Line<Packet>,
        pool: &Pool,
        mut each: impl FnMut(&[u8]),
    ) {
        while let Some(verdict) = line.read(self.reader) {
            let bytes = pool.bytes(verdict.packet.buffer);
            let Some(source) = self.source_to_tell(bytes) else { continue };
            let Some(level) = self.messenger.tells(&verdict, line.backlog(), pool) else {
                continue;
            };
            let marked = matches!(verdict.what, Outcome::Marked { .. });
            // As it goes on or ended.
            let quench = SourceQuench { about: bytes, marked, level };
            let quench = quench.headers(self.address.octets(), source).bytes;
            each(&quench);
            self.sent += 1;
            self.out.push_back((now, quench));
        }
    }

    /// Returns the source of a packet if a message may go to it.
    fn source_to_tell(&mut self, bytes: &[u8]) -> Option<[u8; 4]> {
        let packet = parse(bytes).filter(|packet| packet.answerable)?;
        match (packet.source.address, packet.destination.address) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                let may = is_a_host(source) && !is_many(destination);
                let is_told = self.told.is_none_or(|told| told == source);
                (may && is_told).then_some(source.octets())
            }
            // ICMPv6 has no such message: its type 4 is another (RFC 4443 § 3.4).
            _ => {
                self.unsaid += 1;
                None
            }
        }
    }

    /// When the first message that waits was written.
    #[inline]
    pub fn next(&self) -> Time {
        self.out.front().map_or(Time::NEVER, |&(at, _)| at)
    }

    /// The first message that waits: when it was written, and its bytes until the next call.
    pub fn leave(&mut self) -> Option<(Time, &[u8])> {
        let (at, bytes) = self.out.pop_front()?;
        self.leaving = bytes;
        Some((at, &self.leaving))
    }

    /// Messages that have not left yet.
    pub fn held(&self) -> u64 {
        self.out.len() as u64
    }

    /// How many messages it has written.
    pub const fn sent(&self) -> u64 {
        self.sent
    }

    /// Tells what was counted, by name.
    pub fn count(&self, each: &mut dyn FnMut(&'static str, u64)) {
        each("quenches_sent", self.sent);
        each("quenches_unsaid_ipv6", self.unsaid);
        self.messenger.count(each);
    }
}

/// RFC 1812 § 4.3.2.7: no message goes to what is no single host.
const fn is_a_host(address: Ipv4Addr) -> bool {
    let this_network = address.octets()[0] == 0;
    !(this_network || address.is_loopback() || is_many(address) || is_class_e(address))
}

/// Nor about what goes to many.
const fn is_many(address: Ipv4Addr) -> bool {
    address.is_multicast() || address.is_broadcast()
}

/// RFC 1122 § 3.2.1.3: no host's.
const fn is_class_e(address: Ipv4Addr) -> bool {
    address.octets()[0] >= CLASS_E
}

/// 240.0.0.0/4.
const CLASS_E: u8 = 240;
