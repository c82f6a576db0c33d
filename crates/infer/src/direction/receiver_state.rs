//! Segments of the receiver: acknowledgements, requests, windows.

use cwnd_quantity::{Duration, Time};

use super::{FARTHEST, Half, MOST_DELAY, TIMESTAMPS};
use crate::captured_bytes::Seen;
use crate::clock::Sent;
use crate::headers::{Segment, flag, precedes};

/// Packets kept to find the last one that the sender had received, if there are no timestamps.
const RECENT: usize = 8;

/// A packet of the receiver.
#[derive(Clone, Copy, Debug, Default)]
pub struct Said {
    pub at: Time,
    /// Highest position acknowledged by then.
    pub acked: u64,
    /// `true` if data beyond a hole had been captured by then.
    pub holes: bool,
}

/// State of the receiver according to its packets.
#[derive(Clone, Debug, Default)]
pub struct Answers {
    /// Highest position acknowledged.
    pub acked: u64,
    /// Capture time of the ACK that last advanced `acked`.
    pub advanced: Time,
    /// Capture time of its last new data, possibly a request.
    pub asked: Option<Time>,
    /// Sequence number behind its last new data.
    end: Option<u32>,
    /// Sequence number of its data that the sender has acknowledged.
    pub taken: Option<u32>,
    /// Capture time of the last data that it sent again.
    pub repeated: Option<Time>,
    /// Packets since the last data of the sender, without repeated data.
    pub packets: u32,
    /// `true` while its window admits no full segment.
    pub closed: bool,
    /// Capture time of the packet that last opened the window.
    pub opened: Option<Time>,
    /// Its last packets, newest first.
    pub recent: [Said; RECENT],
    /// Arrival of the first data that it has not acknowledged yet.
    pub owes: Option<Time>,
    /// Smoothed delay of its acknowledgements.
    pub delay: Duration,
}

impl Half {
    /// Processes a segment of the receiver; `scale` is its window scale.
    pub fn answered(&mut self, segment: &Segment, scale: Option<u8>) {
        let Self { seen, answers, .. } = self;
        if let Some(mss) = segment.mss.filter(|&mss| mss > TIMESTAMPS) {
            let taken = if segment.timestamps.is_some() { TIMESTAMPS } else { 0 };
            self.most = u32::from(mss - taken);
        }
        answers.packets += 1;
        if segment.space() > 0 && !segment.has(flag::SYN) {
            let end = segment.seq.wrapping_add(segment.space());
            if answers.end.is_some_and(|known| end.wrapping_sub(known).cast_signed() <= 0) {
                answers.repeated = Some(segment.at);
                answers.packets -= 1;
            } else {
                (answers.asked, answers.end) = (Some(segment.at), Some(end));
            }
        }
        if let Some(seen) = seen
            && segment.has(flag::ACK)
        {
            let ahead = segment.ack.wrapping_sub(seen.high() as u32).cast_signed();
            let acked = seen.high().saturating_add_signed(i64::from(ahead));
            if acked > answers.acked && acked <= seen.high() + FARTHEST {
                (answers.acked, answers.advanced) = (acked, segment.at);
                if let Some(since) = answers.owes.take() {
                    let late = segment.at.since(since).min(MOST_DELAY);
                    answers.delay = match answers.delay {
                        Duration::ZERO => late,
                        delay => Duration(delay.0 / 8 * 7 + late.0 / 8),
                    };
                }
                // Acknowledged data arrived, even if they were not captured.
                seen.acknowledged(acked);
            }
            let window = u64::from(segment.window) << scale.unwrap_or(0);
            let tight = scale.is_some() && acked + window < seen.high() + u64::from(self.mss);
            let closed = !segment.has(flag::SYN) && (segment.window == 0 || tight);
            if answers.closed && !closed {
                answers.opened = Some(segment.at);
            }
            answers.closed = closed;
            if let [Some((start, end)), other] = segment.blocks {
                let inside = other.is_some_and(|(a, b)| !precedes(start, a) && !precedes(b, end));
                self.counts.dsacks += u64::from(precedes(start, segment.ack) || inside);
            }
        }
        self.answers.recent.copy_within(..RECENT - 1, 1);
        let holes = self.seen.as_ref().is_some_and(Seen::has_holes);
        self.answers.recent[0] = Said { at: segment.at, acked: self.answers.acked, holes };
        if let Some((value, _)) = segment.timestamps {
            let stirred = self.answers.advanced.max(self.answers.asked.unwrap_or(Time::ZERO));
            // While data of the receiver are missing, the sender echoes an older timestamp (RFC
            // 7323 § 4.3).
            let behind = |taken: u32| segment.seq.wrapping_sub(taken).cast_signed() <= 0;
            self.echoes.sent(Sent {
                value,
                at: segment.at,
                until: segment.at,
                acked: self.answers.acked,
                holes,
                stirred,
                echoes: self.answers.taken.is_none_or(behind),
                echoed: false,
            });
        }
    }
}
