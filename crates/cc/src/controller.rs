use cwnd_units::{Duration, Rate, Time};

use crate::decrease::min_ssthresh;

/// What the transport is doing about losses and marks; names after Linux `tcp_ca_state`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// Nothing is wrong.
    #[default]
    Open,
    /// The window was reduced for an ECN-echo; that window of data is not yet acknowledged.
    Cwr,
    /// Fast recovery.
    Recovery,
    /// Retransmitting after a timeout.
    Loss,
}

/// Facts that the transport knows, valid at the moment of the call.
#[derive(Clone, Copy, Debug)]
pub struct Path {
    /// The current time.
    pub now: Time,
    /// Sender maximum segment size, payload bytes.
    pub mss: u32,
    /// Smoothed round-trip time (RFC 6298), `None` before the first sample.
    pub srtt: Option<Duration>,
    /// Smallest RTT sample so far.
    pub min_rtt: Option<Duration>,
    /// Payload bytes sent and not yet cumulatively acknowledged: RFC 5681's FlightSize, before this ACK took effect.
    pub flight_size: u64,
    /// Payload bytes cumulatively acknowledged since the start.
    pub delivered: u64,
    /// The transport's state.
    pub phase: Phase,
    /// Whether the congestion window, and not the application or the receiver, limited what was sent (RFC 7661, RFC 9438 § 5.8).
    pub cwnd_limited: bool,
    /// Counts round trips: rises by one each time the data that was outstanding at the last rise is acknowledged.
    pub round: u64,
}

/// All that one ACK told.
#[derive(Clone, Copy, Debug, Default)]
pub struct AckSample {
    /// Payload bytes newly acknowledged cumulatively; above zero.
    pub acked_bytes: u64,
    /// RTT measured by this ACK, if it gave a valid sample (Karn's rule).
    pub rtt: Option<Duration>,
    /// Whether the ACK carried ECE.
    pub ece: bool,
}

/// What is rare: each reaches the controller at most once per window of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Signal {
    /// Fast retransmit begins (RFC 5681 § 3.2).
    Loss,
    /// An ECN-echo asks for a reduction (RFC 3168 § 6.1.2).
    EcnEcho,
    /// The retransmission timer expired for the `nth` time in a row, counted from 1.
    Timeout {
        /// How many times in a row, counted from 1.
        nth: u32,
    },
    /// Nothing was sent for longer than the retransmission timeout (RFC 5681 § 4.1).
    Idle {
        /// How long.
        idle: Duration,
    },
}

/// The window a controller allows, in bytes of payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Congestion window; at least one MSS.
    pub cwnd: u64,
    /// Slow-start threshold; `u64::MAX` until the first reduction.
    pub ssthresh: u64,
}

/// What a connection gives its controller at the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    /// Sender maximum segment size, payload bytes; above zero.
    pub mss: u32,
    /// First congestion window and restart window, bytes (RFC 5681's IW).
    pub initial_window: u64,
    /// Slow-start threshold, bytes; `u64::MAX` is none.
    pub initial_ssthresh: u64,
    /// The congestion window never grows past this, bytes; `u64::MAX` is no bound.
    pub max_window: u64,
}

impl Start {
    /// The largest window, at least one segment.
    #[must_use]
    pub(crate) fn max_window(&self) -> u64 {
        // Half of the range, so that adding to a window cannot overflow.
        self.max_window.clamp(u64::from(self.mss), u64::MAX / 2)
    }

    /// The first window, from one segment to the largest window.
    #[must_use]
    pub(crate) fn initial_cwnd(&self) -> u64 {
        self.initial_window.clamp(u64::from(self.mss), self.max_window())
    }

    /// The first threshold, at least two segments as every later one (RFC 5681 eq. 4).
    #[must_use]
    pub(crate) fn initial_ssthresh(&self) -> u64 {
        self.initial_ssthresh.max(min_ssthresh(self.mss))
    }
}

/// A congestion controller.
pub trait Controller {
    /// New data was acknowledged. Called in every [`Phase`]; in `Recovery` the transport steers by the window that
    /// [`Signal::Loss`] left, so a controller must not grow it there.
    fn on_ack(&mut self, path: &Path, ack: &AckSample);
    /// Something rare happened.
    fn on_signal(&mut self, path: &Path, signal: Signal);
    /// The window it allows now.
    fn window(&self) -> Window;
    /// The rate it wants packets paced at; `None` sends as ACKs arrive.
    fn pacing(&self) -> Option<Rate> {
        None
    }
}
