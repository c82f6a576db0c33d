//! Round-trip times seen from one point of the path: from a packet to its response.

use std::collections::VecDeque;

use cwnd_quantity::{Duration, Time};

/// Maximum number of packets whose echo is awaited. With more, every other one is removed, so that
/// the rest still spans a round trip.
const MAX_PENDING: usize = 128;

/// A packet of the observed receiver, and the acknowledged position by then. Packets with the same
/// TSval share an entry.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// TSval of the packet.
    pub value: u32,
    /// Capture time of the first packet with this TSval.
    pub at: Time,
    /// Capture time of the last packet with this TSval.
    pub last_at: Time,
    /// Position that the last of them acknowledged.
    pub acked: u64,
    /// `true` if data beyond a hole had been captured by then.
    pub holes: bool,
    /// Time when `acked` had last advanced or new data had been sent by then: either starts the
    /// sender's timer.
    pub timer_started: Time,
    /// `true` if the sender echoes this TSval once it receives the packet: all data before it are
    /// known to have been received, or no echo was seen yet (RFC 7323 § 4.3).
    pub echoes: bool,
    /// `true` once the TSval was echoed.
    pub echoed: bool,
}

/// TSvals that await their echo, as in `pping` (K. Nichols 2017, "Listening to networks").
#[derive(Clone, Debug, Default)]
pub struct Echoes {
    sent: VecDeque<Sent>,
}

/// Information in the echoed timestamp of a packet.
#[derive(Clone, Copy, Debug)]
pub struct EchoInfo {
    /// Newest packet that the sender had received, among those remembered.
    pub last: Sent,
    /// Time from the first packet with the echoed TSval to its first echo.
    pub sample: Option<Duration>,
}

impl Echoes {
    /// Records a packet sent by the observed receiver; one with an older TSval is ignored.
    #[inline]
    pub fn on_sent(&mut self, sent: Sent) {
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
        if self.sent.len() == MAX_PENDING {
            let mut nth = 0;
            // The newest and the last one echoed stay.
            self.sent.retain(|_| {
                nth += 1;
                nth % 2 == 1 || nth == MAX_PENDING
            });
        }
        self.sent.push_back(sent);
    }

    /// Processes an echo from the other end. Calls `each` with each packet echoed for the first
    /// time, older ones included. `None` if the echo precedes all packets remembered.
    #[inline]
    pub fn on_echo(
        &mut self,
        echo: u32,
        now: Time,
        mut each: impl FnMut(&Sent),
    ) -> Option<EchoInfo> {
        let not_after = |sent: &Sent| echo.wrapping_sub(sent.value) <= i32::MAX as u32;
        while self.sent.get(1).is_some_and(not_after) {
            if let Some(sent) = self.sent.pop_front().filter(|sent| !sent.echoed) {
                each(&sent);
            }
        }
        let front = self.sent.front_mut().filter(|sent| not_after(sent))?;
        if !front.echoed {
            each(front);
        }
        let first = front.value == echo && !front.echoed;
        front.echoed = true;
        Some(EchoInfo { last: *front, sample: first.then(|| now.since(front.at)) })
    }
}

/// Source of a round-trip time, from the least to the most reliable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// Nothing: the RTT is not known.
    #[default]
    None,
    /// Time from an acknowledgement of all data to the next new data.
    Flights,
    /// Time from SYN to SYN-ACK, or from SYN-ACK to its ACK.
    Handshake,
    /// Time from a TSval to its echo.
    Timestamps,
}

impl Source {
    /// Names in the column `rtt_from`, in the order of the variants.
    pub const NAMES: [&'static str; 4] = ["none", "flights", "handshake", "timestamps"];
}

/// Estimator of SRTT and RTTVAR (RFC 6298 § 2) from the observed samples.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rtt {
    /// SRTT.
    pub smoothed: Duration,
    /// RTTVAR.
    pub variation: Duration,
    /// RTTVAR in the manner of Linux (`tcp_rtt_estimator`): it rises at once and falls once per
    /// round trip.
    pub rttvar_linux: Duration,
    /// Largest RTTVAR since `round`.
    most: Duration,
    round: Time,
    /// Least sample.
    pub min: Duration,
    /// Last sample.
    pub last: Duration,
    /// Most reliable source of a sample.
    pub source: Source,
    /// Number of samples.
    pub samples: u64,
}

impl Rtt {
    /// Adds a sample; once timestamps gave one, samples from other sources are ignored.
    #[inline]
    pub fn sample(&mut self, now: Time, sample: Duration, source: Source) {
        if source < self.source && self.source == Source::Timestamps {
            return;
        }
        self.source = self.source.max(source);
        self.samples += 1;
        self.last = sample;
        if self.samples == 1 {
            (self.smoothed, self.variation, self.min) = (sample, sample / 2, sample);
            (self.rttvar_linux, self.most, self.round) = (sample / 2, sample / 2, now);
            return;
        }
        let deviation = Duration(self.smoothed.0.abs_diff(sample.0));
        self.variation = Duration((self.variation.0 / 4) * 3 + deviation.0 / 4);
        self.smoothed = Duration((self.smoothed.0 / 8) * 7 + sample.0 / 8);
        self.min = self.min.min(sample);
        self.most = self.most.max(self.variation);
        self.rttvar_linux = self.rttvar_linux.max(self.most);
        if now.since(self.round) > self.smoothed {
            self.rttvar_linux = Duration(self.rttvar_linux.0 / 4 * 3 + self.most.0 / 4);
            (self.most, self.round) = (Duration::ZERO, now);
        }
    }

    /// Restarts the estimate from a longer sample, unless a handshake or timestamps gave one. Not
    /// all intervals between the first flights of a connection are round trips: the longest counts.
    pub fn at_least(&mut self, sample: Duration) {
        if self.source <= Source::Flights && sample > self.smoothed {
            *self = Self {
                smoothed: sample,
                variation: sample / 2,
                rttvar_linux: sample / 2,
                min: sample,
                last: sample,
                source: Source::Flights,
                samples: self.samples + 1,
                ..Self::default()
            };
        }
    }

    /// `true` if there is a sample.
    pub fn is_known(&self) -> bool {
        self.source != Source::None
    }
}
