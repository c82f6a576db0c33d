//! Round-trip times as they can be seen from one point of the path: from a packet to what answers it.

use std::collections::VecDeque;

use cwnd_quantity::{Duration, Time};

/// Packets whose echo is waited for; with more, every other one is forgotten, so that they still span a round trip.
const MOST: usize = 128;

/// A packet of the observed receiver, and what it had acknowledged by then.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// Its TSval.
    pub value: u32,
    /// When the first packet with this TSval went, and the last.
    pub at: Time,
    /// The last of them.
    pub until: Time,
    /// What they acknowledged, and whether data beyond a hole had come.
    pub acked: u64,
    /// See `acked`.
    pub holes: bool,
    /// When that had advanced, or data had been sent: what starts the other side's timer.
    pub stirred: Time,
    /// Who hears it echoes it: nothing was sent before it that is not known to have been heard (RFC 7323 § 4.3).
    pub echoes: bool,
    /// It was echoed.
    pub echoed: bool,
}

/// TSvals on their way and their echoes: what Nichols' `pping` does (K. Nichols 2017, "Listening to networks").
#[derive(Clone, Debug, Default)]
pub struct Echoes {
    sent: VecDeque<Sent>,
}

/// What the timestamps of a packet tell.
#[derive(Clone, Copy, Debug)]
pub struct Heard {
    /// The newest packet that its sender had heard, as far as it is remembered.
    pub last: Sent,
    /// Time from the first packet with that TSval to its first echo.
    pub sample: Option<Duration>,
}

impl Echoes {
    /// The observed receiver sent a packet.
    #[inline]
    pub fn sent(&mut self, sent: Sent) {
        if let Some(newest) = self.sent.back_mut() {
            if newest.value == sent.value {
                let echoes = newest.echoes && sent.echoes;
                *newest = Sent { at: newest.at, echoes, echoed: newest.echoed, ..sent };
                return;
            }
            if sent.value.wrapping_sub(newest.value) > i32::MAX as u32 {
                return;
            }
        }
        if self.sent.len() == MOST {
            let mut nth = 0;
            // The newest and the one that was heard last stay.
            self.sent.retain(|_| {
                nth += 1;
                nth % 2 == 1 || nth == MOST
            });
        }
        self.sent.push_back(sent);
    }

    /// The other side sent a packet that echoes this; `hears` is told of each that it had not echoed before.
    #[inline]
    pub fn heard(&mut self, echo: u32, now: Time, mut hears: impl FnMut(&Sent)) -> Option<Heard> {
        let not_after = |sent: &Sent| echo.wrapping_sub(sent.value) <= i32::MAX as u32;
        while self.sent.get(1).is_some_and(not_after) {
            if let Some(sent) = self.sent.pop_front().filter(|sent| !sent.echoed) {
                hears(&sent);
            }
        }
        let front = self.sent.front_mut().filter(|sent| not_after(sent))?;
        if !front.echoed {
            hears(front);
        }
        let first = front.value == echo && !front.echoed;
        front.echoed = true;
        Some(Heard { last: *front, sample: first.then(|| now.since(front.at)) })
    }
}

/// From what a round-trip time is known; the better ones last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// It is not known.
    #[default]
    None,
    /// From an acknowledgement of all to the data that follow it.
    Flights,
    /// From SYN to SYN-ACK, or from SYN-ACK to its ACK.
    Handshake,
    /// From a TSval to its echo.
    Timestamps,
}

impl Source {
    /// As in the tables.
    pub const NAMES: [&'static str; 4] = ["none", "flights", "handshake", "timestamps"];
}

/// SRTT and RTTVAR (RFC 6298 § 2) of what was seen.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rtt {
    /// SRTT.
    pub smoothed: Duration,
    /// RTTVAR.
    pub variation: Duration,
    /// RTTVAR as Linux has it (`tcp_rtt_estimator`): it follows what is larger at once, and falls once a round trip.
    pub lasting: Duration,
    /// The largest RTTVAR since that round trip began, and when that was.
    most: Duration,
    round: Time,
    /// The least sample.
    pub min: Duration,
    /// From what it is known.
    pub source: Source,
    /// Samples.
    pub samples: u64,
}

impl Rtt {
    /// Takes a sample, unless better ones are there.
    #[inline]
    pub fn sample(&mut self, now: Time, sample: Duration, source: Source) {
        if source < self.source && self.source == Source::Timestamps {
            return;
        }
        self.source = self.source.max(source);
        self.samples += 1;
        if self.samples == 1 {
            (self.smoothed, self.variation, self.min) = (sample, sample / 2, sample);
            (self.lasting, self.most, self.round) = (sample / 2, sample / 2, now);
            return;
        }
        let deviation = Duration(self.smoothed.0.abs_diff(sample.0));
        self.variation = Duration((self.variation.0 / 4) * 3 + deviation.0 / 4);
        self.smoothed = Duration((self.smoothed.0 / 8) * 7 + sample.0 / 8);
        self.min = self.min.min(sample);
        self.most = self.most.max(self.variation);
        self.lasting = self.lasting.max(self.most);
        if now.since(self.round) > self.smoothed {
            self.lasting = Duration(self.lasting.0 / 4 * 3 + self.most.0 / 4);
            (self.most, self.round) = (Duration::ZERO, now);
        }
    }

    /// It is no shorter than this: of the first flights of a connection, one began when the one before was acknowledged.
    pub fn at_least(&mut self, sample: Duration) {
        if self.source <= Source::Flights && sample > self.smoothed {
            *self = Self {
                smoothed: sample,
                variation: sample / 2,
                lasting: sample / 2,
                min: sample,
                source: Source::Flights,
                samples: self.samples + 1,
                ..Self::default()
            };
        }
    }

    /// Whether there is any.
    pub fn is_known(&self) -> bool {
        self.source != Source::None
    }
}
