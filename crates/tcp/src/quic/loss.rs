//! Packets sent and the detection of their loss (RFC 9002 § 6.1, § 7.6, appendix A).

use std::collections::VecDeque;

use cwnd_packet::Ranges;
use cwnd_quantity::{Duration, Time};

use super::AckRange;

/// A packet sent (RFC 9002 § A.1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SentPacket {
    /// Packet number.
    pub number: u64,
    /// Time at which it was sent.
    pub at: Time,
    /// Bytes that count as in flight; zero for a packet that only acknowledges.
    pub bytes: u32,
    /// `true` if its receiver must acknowledge it.
    pub ack_eliciting: bool,
    /// First stream byte that it carries.
    pub start: u64,
    /// Stream bytes that it carries.
    pub len: u32,
}

/// Sent packets in the order of their numbers, from the first that is neither acknowledged nor
/// lost.
#[derive(Clone, Debug)]
pub(super) struct SentPackets {
    /// Each packet, and `true` if it is acknowledged.
    packets: VecDeque<(SentPacket, bool)>,
    /// Acknowledged numbers, from the first of these packets on.
    acked: Ranges,
    largest_sent: Option<u64>,
    largest_acked: Option<u64>,
    /// Time at which a packet below the largest acknowledged is lost by its age; `Time::NEVER`
    /// without one.
    loss_time: Time,
    bytes_in_flight: u64,
    /// Number of outstanding packets that elicit ACKs.
    eliciting: u64,
    /// Time at which the last packet that elicits an ACK was sent, acknowledged or not.
    last_eliciting: Time,
}

/// Thresholds of loss detection at one moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Thresholds {
    /// Packet threshold (RFC 9002 § 6.1.1, kPacketThreshold).
    pub packets: u64,
    /// Time threshold: age at which a packet is lost (RFC 9002 § 6.1.2).
    pub delay: Duration,
}

/// Conditions of persistent congestion (RFC 9002 § 7.6.2).
#[derive(Clone, Copy, Debug)]
pub(super) struct Persistence {
    /// Duration that the time between the sending of two lost packets must exceed (§ 7.6.1).
    pub duration: Duration,
    /// Time of the first RTT sample; `Time::NEVER` before it.
    pub first_sample: Time,
}

impl SentPackets {
    pub const fn new() -> Self {
        Self {
            packets: VecDeque::new(),
            acked: Ranges::new(),
            largest_sent: None,
            largest_acked: None,
            loss_time: Time::NEVER,
            bytes_in_flight: 0,
            eliciting: 0,
            last_eliciting: Time::ZERO,
        }
    }

    pub const fn loss_time(&self) -> Time {
        self.loss_time
    }

    pub const fn bytes_in_flight(&self) -> u64 {
        self.bytes_in_flight
    }

    /// Returns the send time of the last packet that elicits an ACK, if any such packet is
    /// outstanding.
    pub fn last_eliciting(&self) -> Option<Time> {
        (self.eliciting > 0).then_some(self.last_eliciting)
    }

    /// Returns the outstanding packets, the oldest first.
    pub fn outstanding(&self) -> impl Iterator<Item = &SentPacket> {
        self.packets.iter().filter(|(_, acked)| !acked).map(|(packet, _)| packet)
    }

    /// Records a sent packet (OnPacketSent, § A.5).
    pub fn on_sent(&mut self, packet: SentPacket) {
        debug_assert!(self.largest_sent < Some(packet.number));
        self.largest_sent = Some(packet.number);
        self.bytes_in_flight += u64::from(packet.bytes);
        if packet.ack_eliciting {
            self.eliciting += 1;
            self.last_eliciting = packet.at;
        }
        self.packets.push_back((packet, false));
    }

    /// Appends the newly acknowledged packets to `newly`, the largest number first
    /// (DetectAndRemoveAckedPackets, § A.7).
    ///
    /// An acknowledged packet stays between outstanding ones, where it ends a period of persistent
    /// congestion (§ 7.6.2).
    pub fn on_ack(&mut self, ranges: &[AckRange], newly: &mut Vec<SentPacket>) {
        let Some(largest) = ranges.first().map(|range| range.last) else { return };
        // RFC 9000 § 13.1: an ACK of a packet that was never sent is an error of the receiver. It
        // is ignored.
        if Some(largest) > self.largest_sent {
            return;
        }
        self.largest_acked = self.largest_acked.max(Some(largest));
        let Some(first) = self.packets.front().map(|(packet, _)| packet.number) else { return };
        for range in ranges.iter().take_while(|range| range.last >= first) {
            // Each number is visited once, however often it is acknowledged.
            let (begin, mut from) = (newly.len(), range.first.max(first));
            while let Some(hole) = self.acked.hole_from(from, range.last + 1) {
                let at = |number| self.packets.partition_point(|(sent, _)| sent.number < number);
                for (packet, acked) in self.packets.range_mut(at(hole.start)..at(hole.end)) {
                    *acked = true;
                    newly.push(*packet);
                    self.bytes_in_flight -= u64::from(packet.bytes);
                    self.eliciting -= u64::from(packet.ack_eliciting);
                }
                self.acked.insert(hole.start, hole.end);
                from = hole.end;
            }
            newly[begin..].reverse();
        }
    }

    /// Appends the lost packets to `lost`, the smallest number first (DetectAndRemoveLostPackets, §
    /// A.10). Returns `true` if they, without packets lost before, establish persistent congestion.
    pub fn detect(
        &mut self,
        now: Time,
        by: Thresholds,
        persistence: Persistence,
        lost: &mut Vec<SentPacket>,
    ) -> bool {
        self.loss_time = Time::NEVER;
        let Some(largest) = self.largest_acked else { return false };
        let (mut begin, mut persistent) = (None, false);
        while let Some(&(packet, acked)) = self.packets.front() {
            let old = now >= packet.at + by.delay;
            if acked {
                begin = None;
            } else if packet.number < largest && (old || largest >= packet.number + by.packets) {
                if packet.ack_eliciting && packet.at > persistence.first_sample {
                    let begin = *begin.get_or_insert(packet.at);
                    persistent |= packet.at.since(begin) > persistence.duration;
                }
                self.bytes_in_flight -= u64::from(packet.bytes);
                self.eliciting -= u64::from(packet.ack_eliciting);
                lost.push(packet);
            } else {
                // Later packets are younger: this one is lost first.
                if packet.number < largest {
                    self.loss_time = packet.at + by.delay;
                }
                break;
            }
            self.packets.pop_front();
            self.acked.remove_below(packet.number + 1);
        }
        persistent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const BY: Thresholds = Thresholds { packets: 3, delay: Duration::from_millis(90) };
    const AFTER: Persistence =
        Persistence { duration: Duration::from_millis(600), first_sample: Time(0) };

    fn packet(number: u64, ms: u64) -> SentPacket {
        let at = Time(ms * MS);
        SentPacket { number, at, bytes: 1200, ack_eliciting: true, start: 0, len: 1150 }
    }

    fn sent(packets: impl IntoIterator<Item = (u64, u64)>) -> SentPackets {
        let mut sent = SentPackets::new();
        packets.into_iter().for_each(|(number, ms)| sent.on_sent(packet(number, ms)));
        sent
    }

    fn ack(sent: &mut SentPackets, ranges: &[(u64, u64)]) -> Vec<u64> {
        let ranges: Vec<_> = ranges.iter().map(|&(first, last)| AckRange { first, last }).collect();
        let mut newly = Vec::new();
        sent.on_ack(&ranges, &mut newly);
        newly.iter().map(|packet| packet.number).collect()
    }

    fn detect(sent: &mut SentPackets, ms: u64) -> (Vec<u64>, bool) {
        let mut lost = Vec::new();
        let persistent = sent.detect(Time(ms * MS), BY, AFTER, &mut lost);
        (lost.iter().map(|packet| packet.number).collect(), persistent)
    }

    #[test]
    fn three_later_packets_declare_one_lost_and_two_arm_the_timer() {
        let mut sent = sent((0..6).map(|n| (n, 10 + n)));
        assert_eq!(ack(&mut sent, &[(4, 4), (0, 0)]), [4, 0]);
        assert_eq!(detect(&mut sent, 80), (vec![1], false));
        assert_eq!(sent.loss_time(), Time(102 * MS));
        assert_eq!(detect(&mut sent, 102), (vec![2], false));
        assert_eq!(sent.loss_time(), Time(103 * MS));
        assert_eq!(sent.bytes_in_flight(), 2 * 1200);
    }

    #[test]
    fn what_is_acknowledged_twice_counts_once() {
        let mut sent = sent((0..4).map(|n| (n, 10 + n)));
        assert_eq!(ack(&mut sent, &[(1, 2)]), [2, 1]);
        assert_eq!(ack(&mut sent, &[(0, 3)]), [3, 0]);
        assert_eq!(detect(&mut sent, 80), (vec![], false));
        assert_eq!((sent.bytes_in_flight(), sent.last_eliciting()), (0, None));
    }

    #[test]
    fn what_was_never_sent_acknowledges_nothing() {
        let mut sent = sent((0..4).map(|n| (n, 10 + n)));
        assert!(ack(&mut sent, &[(0, 4)]).is_empty());
        assert_eq!(detect(&mut sent, 500), (vec![], false));
    }

    #[test]
    fn an_acknowledged_packet_ends_a_period_of_persistent_congestion() {
        // § 7.6.2: packets 1 and 9 are further apart than the duration.
        let mut lost = sent((1..14).map(|n| (n, 100 * n)));
        ack(&mut lost, &[(13, 13)]);
        assert_eq!(detect(&mut lost, 1350), ((1..=12).collect(), true));
        let mut split = sent((1..14).map(|n| (n, 100 * n)));
        ack(&mut split, &[(13, 13), (6, 6)]);
        assert!(!detect(&mut split, 1350).1, "neither half exceeds 600 ms");
    }

    #[test]
    fn packets_sent_before_the_first_sample_begin_no_persistent_congestion() {
        let after = Persistence { first_sample: Time(550 * MS), ..AFTER };
        let mut sent = sent((1..14).map(|n| (n, 100 * n)));
        ack(&mut sent, &[(13, 13)]);
        let mut lost = Vec::new();
        assert!(!sent.detect(Time(1350 * MS), BY, after, &mut lost), "6 to 12 are 600 ms apart");
        assert_eq!(lost.len(), 12);
    }
}
