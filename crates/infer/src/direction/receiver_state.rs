//! Segments of the receiver: acknowledgements, requests, windows.

use cwnd_quantity::{Duration, Time};

use super::{DirectionState, MAX_ACK_DELAY, MAX_WINDOW, TIMESTAMPS_LENGTH};
use crate::captured_bytes::CapturedBytes;
use crate::clock::Sent;
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
