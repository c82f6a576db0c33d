//! Segments of the receiver: acknowledgements, requests, windows; and Linux's RTT estimator and
//! timer of the sender, replayed from the packets that it is known to have received.
//!
//! A lost ACK makes the sender's next sample longer: it counts from the oldest segment that no
//! received ACK had covered. The timestamps echoed by the sender's later packets show which ACKs
//! were lost.

use std::collections::VecDeque;

use cwnd_quantity::{Duration, Time};

use super::{DirectionState, MAX_ACK_DELAY, MAX_WINDOW, TIMESTAMPS_LENGTH};
use crate::captured_bytes::CapturedBytes;
use crate::clock::Sent;
use crate::event::Timer;
use crate::headers::{Segment, flag, precedes};

/// Packets kept to find the last one that the sender had received, if there are no timestamps.
const RECENT: usize = 8;

/// A packet of the receiver.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReceiverPacket {
    pub at: Time,
    /// Highest position acknowledged by then.
    pub acked: u64,
    /// `true` if data beyond a hole had been captured by then.
    pub holes: bool,
}

/// State of the receiver according to its packets.
#[derive(Clone, Debug, Default)]
pub struct ReceiverState {
    /// Highest position acknowledged.
    pub acked: u64,
    /// Capture time of the ACK that last advanced `acked`.
    pub advanced: Time,
    /// Capture time of its last new data or FIN, possibly a request.
    pub last_request: Option<Time>,
    /// Sequence number behind its last new data.
    end: Option<u32>,
    /// Sequence number of its data that the sender has acknowledged.
    pub acked_by_sender: Option<u32>,
    /// Capture time of the last data that it sent again; `None` once a D-SACK of the sender shows
    /// that the first copy was received.
    pub last_repeat: Option<Time>,
    /// Packets since the last data of the sender, without repeated data.
    pub packets: u32,
    /// `true` while its window is zero or, if its scale is known, admits no full segment.
    pub closed: bool,
    /// Capture time of the packet that last opened the window.
    pub window_opened: Option<Time>,
    /// Its last packets, newest first.
    pub recent: [ReceiverPacket; RECENT],
    /// Arrival of the first data in order that it has not acknowledged yet; `None` without any.
    pub unacked_since: Option<Time>,
    /// Smoothed delay of its acknowledgements.
    pub delay: Duration,
}

impl DirectionState {
    /// Processes a segment of the receiver; `scale` is its window scale, `None` for a SYN and if
    /// not both ends are known to scale.
    pub fn on_receiver_segment(&mut self, segment: &Segment, scale: Option<u8>) {
        let Self { captured, receiver, .. } = self;
        if let Some(mss) = segment.mss.filter(|&mss| mss > TIMESTAMPS_LENGTH) {
            let taken = if segment.timestamps.is_some() { TIMESTAMPS_LENGTH } else { 0 };
            self.max_segment = u32::from(mss - taken);
        }
        receiver.packets += 1;
        if segment.space() > 0 && !segment.has(flag::SYN) {
            let end = segment.seq.wrapping_add(segment.space());
            if receiver.end.is_some_and(|known| end.wrapping_sub(known).cast_signed() <= 0) {
                receiver.last_repeat = Some(segment.at);
                receiver.packets -= 1;
            } else {
                (receiver.last_request, receiver.end) = (Some(segment.at), Some(end));
            }
        }
        if let Some(captured) = captured
            && segment.has(flag::ACK)
        {
            let ahead = segment.ack.wrapping_sub(captured.high() as u32).cast_signed();
            let acked = captured.high().saturating_add_signed(i64::from(ahead));
            if acked > receiver.acked && acked <= captured.high() + MAX_WINDOW {
                (receiver.acked, receiver.advanced) = (acked, segment.at);
                if let Some(since) = receiver.unacked_since.take() {
                    let late = segment.at.since(since).min(MAX_ACK_DELAY);
                    receiver.delay = match receiver.delay {
                        Duration::ZERO => late,
                        delay => Duration(delay.0 / 8 * 7 + late.0 / 8),
                    };
                }
                // Acknowledged data arrived, even if they were not captured.
                captured.acknowledged(acked);
            }
            let window = u64::from(segment.window) << scale.unwrap_or(0);
            let tight = scale.is_some() && acked + window < captured.high() + u64::from(self.mss);
            let closed = !segment.has(flag::SYN) && (segment.window == 0 || tight);
            if receiver.closed && !closed {
                receiver.window_opened = Some(segment.at);
            }
            receiver.closed = closed;
            if let [Some((start, end)), other] = segment.blocks {
                let inside = other.is_some_and(|(a, b)| !precedes(start, a) && !precedes(b, end));
                self.counts.dsacks += u64::from(precedes(start, segment.ack) || inside);
            }
        }
        self.receiver.recent.copy_within(..RECENT - 1, 1);
        let holes = self.captured.as_ref().is_some_and(CapturedBytes::has_holes);
        self.receiver.recent[0] =
            ReceiverPacket { at: segment.at, acked: self.receiver.acked, holes };
        if let Some((value, _)) = segment.timestamps {
            let timer_started =
                self.receiver.advanced.max(self.receiver.last_request.unwrap_or(Time::ZERO));
            // While data of the receiver are missing, the sender echoes an older timestamp (RFC
            // 7323 § 4.3).
            let behind = |taken: u32| segment.seq.wrapping_sub(taken).cast_signed() <= 0;
            self.echoes.on_sent(Sent {
                value,
                at: segment.at,
                last_at: segment.at,
                acked: self.receiver.acked,
                holes,
                timer_started,
                echoes: self.receiver.acked_by_sender.is_none_or(behind),
                echoed: false,
            });
        }
    }
}

/// Maximum number of segments that await their ACK; with more, the sender has other samples.
const MAX_PENDING: usize = 256;
/// Lower bound of RTTVAR times four, ns (`TCP_RTO_MIN`).
const MIN_RTTVAR: u64 = 200_000_000;

/// SRTT and RTTVAR as computed by Linux (`tcp_rtt_estimator`), ns.
#[derive(Clone, Copy, Debug, Default)]
struct Estimator {
    smoothed: u64,
    /// Mean deviation times four (`mdev_us`).
    deviation: u64,
    /// Largest deviation since the round trip began (`mdev_max_us`).
    most: u64,
    /// Largest deviation, which falls only once per round trip (`rttvar_us`).
    rttvar_linux: u64,
    /// Position sent when that round trip began (`rtt_seq`).
    round: u64,
}

impl Estimator {
    fn sample(&mut self, sample: Duration, acked: u64, sent: u64) {
        let sample = sample.0;
        if self.smoothed == 0 {
            self.deviation = sample * 2;
            self.rttvar_linux = self.deviation.max(MIN_RTTVAR);
            (self.smoothed, self.most, self.round) = (sample, self.rttvar_linux, sent);
            return;
        }
        let off = sample.abs_diff(self.smoothed);
        let change = off.cast_signed() - (self.deviation / 4).cast_signed();
        // As in Linux, a shorter sample raises the deviation by an eighth only.
        let shorter = sample < self.smoothed && change > 0;
        let change = if shorter { change / 8 } else { change };
        self.smoothed = self.smoothed - self.smoothed / 8 + sample / 8;
        self.deviation = self.deviation.saturating_add_signed(change);
        self.most = self.most.max(self.deviation);
        self.rttvar_linux = self.rttvar_linux.max(self.most);
        if acked > self.round {
            self.rttvar_linux -= self.rttvar_linux.saturating_sub(self.most) / 4;
            (self.most, self.round) = (MIN_RTTVAR, sent);
        }
    }
}

/// A segment that arrived, and whose ACK the sender is not known to have received.
#[derive(Clone, Copy, Debug)]
struct PendingSegment {
    at: Time,
    end: u64,
    /// `true` if it is a retransmission or was retransmitted.
    again: bool,
}

/// Replayed state of the sender's timer.
#[derive(Clone, Debug, Default)]
pub struct SenderTimers {
    estimator: Estimator,
    /// Number of samples; the first is that of the handshake, if that was captured.
    samples: u32,
    pending: VecDeque<PendingSegment>,
    /// Send time up to which those packets of the receiver were lost that the sender would echo.
    echo_lost_until: Time,
    /// Send time up to which the receiver's packets were lost, echoed or not.
    lost_until: Time,
    /// Send time of the newest packet of the receiver that the sender received.
    newest_received: Time,
}

impl SenderTimers {
    /// Returns the timer; its times are zero if there was no sample.
    pub const fn timer(&self) -> Timer {
        let Estimator { smoothed, rttvar_linux, .. } = self.estimator;
        Timer {
            smoothed: Duration(smoothed),
            timeout: Duration(smoothed + rttvar_linux),
            first: self.samples < 2,
        }
    }

    /// Returns the send time of the newest packet of the receiver that the sender received.
    pub const fn newest(&self) -> Time {
        self.newest_received
    }

    /// Records the arrival of a segment that ends at position `end`; `again` is `true` for a
    /// retransmission.
    pub fn on_arrival(&mut self, at: Time, end: u64, again: bool) {
        if again {
            self.pending
                .iter_mut()
                .filter(|segment| segment.end == end)
                .for_each(|segment| segment.again = true);
        }
        // Samples are taken from the oldest segments.
        if self.pending.len() < MAX_PENDING {
            self.pending.push_back(PendingSegment { at, end, again });
        }
    }

    /// Records as lost the packets of the receiver up to `until` that the sender would have echoed:
    /// it sent a packet whose echo was no newer.
    pub fn on_old_echo(&mut self, until: Time) {
        self.echo_lost_until = self.echo_lost_until.max(until);
    }

    /// Records that the sender received no packet of the receiver up to `before`.
    pub fn lost_before(&mut self, before: Time) {
        self.lost_until = self.lost_until.max(before);
    }

    /// Records that the sender received `packet`, and takes its RTT sample, unless later packets
    /// showed that it was lost. `round` is the RTT between the capture point and the sender, `sent`
    /// the highest position sent.
    pub fn on_received(&mut self, packet: &Sent, round: Duration, sent: u64) {
        let lost = packet.last_at <= self.lost_until
            || (packet.echoes && packet.last_at <= self.echo_lost_until);
        if lost || packet.last_at <= self.newest_received {
            return;
        }
        self.newest_received = packet.last_at;
        let (mut first, mut newest, mut sacked, mut again) = (None, None, None, false);
        while let Some(segment) =
            self.pending.front().copied().filter(|segment| segment.at <= packet.last_at)
        {
            self.pending.pop_front();
            if segment.end <= packet.acked {
                again |= segment.again;
                first = first.or(Some(segment.at));
                newest = Some(segment.at);
            } else if !segment.again {
                sacked = sacked.or(Some(segment.at));
            }
        }
        // Karn's algorithm: a retransmission gives no sample, except by SACK or by its echoed
        // timestamp.
        let from = first.filter(|_| !again).or(sacked).or(newest);
        if let Some(from) = from.filter(|_| round > Duration::ZERO) {
            self.samples += 1;
            self.estimator.sample(round + packet.last_at.since(from), packet.acked, sent);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Duration = Duration::from_millis(50);

    fn steady() -> Estimator {
        let mut estimator = Estimator::default();
        for round in 0..100 {
            estimator.sample(SHORT, round, round);
        }
        estimator
    }

    #[test]
    fn a_steady_path_has_a_timeout_of_a_round_trip_and_200_ms() {
        let steady = steady();
        let timeout = steady.smoothed + steady.rttvar_linux;
        assert!(timeout.abs_diff(250_000_000) < 1_000_000, "{timeout}");
    }

    #[test]
    fn a_long_sample_makes_the_timeout_long_and_it_falls_once_a_round_trip() {
        let mut estimator = steady();
        estimator.sample(Duration::from_millis(850), 100, 200);
        // SRTT is 50 + 800/8 ms, four deviations are the 800 ms.
        let long = estimator.smoothed + estimator.rttvar_linux;
        assert!(long.abs_diff(950_000_000) < 5_000_000, "{long}");
        // No data sent since then are acknowledged: only SRTT falls.
        let before = estimator.rttvar_linux;
        estimator.sample(SHORT, 150, 250);
        assert_eq!(estimator.rttvar_linux, before);
        estimator.sample(SHORT, 201, 300);
        assert!(estimator.rttvar_linux < before);
    }
}
