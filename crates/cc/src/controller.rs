use cwnd_packet::{Echo, Guidance, Header};
use cwnd_quantity::{Duration, Rate, Time};

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
#[derive(Clone, Copy, Debug, Default)]
pub struct Path {
    /// The current time.
    pub now: Time,
    /// Sender maximum segment size, payload bytes.
    pub mss: u32,
    /// Smoothed round-trip time (RFC 6298), `None` before the first sample.
    pub srtt: Option<Duration>,
    /// Smallest RTT sample so far.
    pub min_rtt: Option<Duration>,
    /// The newest RTT sample.
    pub rtt: Option<Duration>,
    /// Payload bytes sent and not yet cumulatively acknowledged: RFC 5681's FlightSize, before this
    /// ACK took effect; while a timeout is repaired, payload bytes presumed in the network.
    pub flight_size: u64,
    /// Payload bytes cumulatively acknowledged since the start.
    pub delivered: u64,
    /// Payload bytes sent since the start, each counted once.
    pub sent: u64,
    /// The transport's state.
    pub phase: Phase,
    /// Whether the congestion window, and not the application or the receiver, limited what was sent (RFC 7661, RFC 9438 § 5.8).
    pub cwnd_limited: bool,
    /// Counts round trips: rises by one each time the data that was outstanding at the last rise is acknowledged.
    pub round: u64,
}

/// What the transport tells of data that goes out.
#[derive(Clone, Copy)]
#[expect(missing_debug_implementations, reason = "it is of one call")]
pub struct Departing<'a> {
    /// The current time.
    pub now: Time,
    /// Sender maximum segment size, payload bytes.
    pub mss: u32,
    /// Payload bytes cumulatively acknowledged since the start.
    pub delivered: u64,
    /// Payload bytes sent since the start, each counted once, these included.
    pub sent: u64,
    /// Looked up by who asks: it is for each packet, and few controllers do.
    pub rtts: &'a dyn RoundTrips,
}

/// The round-trip times that the transport knows.
pub trait RoundTrips {
    /// Smoothed round-trip time (RFC 6298), `None` before the first sample.
    fn srtt(&self) -> Option<Duration>;
    /// Smallest RTT sample so far.
    fn min_rtt(&self) -> Option<Duration>;
    /// The newest RTT sample.
    fn rtt(&self) -> Option<Duration>;
}

impl RoundTrips for Path {
    fn srtt(&self) -> Option<Duration> {
        self.srtt
    }
    fn min_rtt(&self) -> Option<Duration> {
        self.min_rtt
    }
    fn rtt(&self) -> Option<Duration> {
        self.rtt
    }
}

/// When a controller lets the next data go.
#[derive(Clone, Copy, Debug)]
pub struct Leave {
    /// [`Controller::pacing`].
    pub pacing: Option<Rate>,
    /// [`Controller::spacing`].
    pub spacing: Option<Duration>,
}

/// All that one ACK told.
#[derive(Clone, Copy, Debug, Default)]
pub struct AckSample {
    /// Payload bytes newly acknowledged cumulatively, or what else makes the window grow (an endpoint's `grow_by`); zero for a duplicate.
    pub acked_bytes: u64,
    /// Payload bytes newly reported by SACK.
    pub newly_sacked: u64,
    /// Payload bytes that were found lost since the ACK before this one.
    pub newly_lost: u64,
    /// RTT measured by this ACK, if it gave a valid sample (Karn's rule).
    pub rtt: Option<Duration>,
    /// Whether the ACK carried ECE.
    pub ece: bool,
    /// What the receiver echoes of what routers wrote.
    pub echo: Echo,
    /// Whether the window may grow for it.
    pub grow: Grow,
}

/// What one ACK told of how fast data arrives, by the sender's own notes of when each segment went
/// (draft-cheng-iccrg-delivery-rate-estimation-00; Linux `tcp_rate.c`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RateSample {
    /// Payload bytes that it newly reports, cumulatively or by SACK.
    pub newly: u64,
    /// Payload bytes reported since the start (C.delivered).
    pub total: u64,
    /// What that was when the newest of the segments went that it reports; `None` if it reports no segment.
    pub prior: Option<u64>,
    /// The time in which the bytes since then arrived; `None` where it is less than a round trip, and nothing follows from it.
    pub interval: Option<Duration>,
    /// The round trip of that segment; `None` if it went more than once.
    pub rtt: Option<Duration>,
    /// Payload bytes presumed in the network, after this ACK.
    pub in_flight: u64,
    /// Whether the sender had nothing more to send when that segment went.
    pub app_limited: bool,
}

/// What the transport lets a window do for an ACK.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Grow {
    /// Stay: nothing was newly acknowledged, the window was not what limited the sender (RFC 7661 § 4.3, RFC 9438 § 5.8),
    /// a loss is being repaired, or the ACK carries ECE (RFC 3168 § 6.1.2).
    #[default]
    No,
    /// Grow in the round trip after a reduction: RFC 3168 § 6.1.2 excludes only ACKs with ECE, Linux and FreeBSD all.
    InCwr,
    /// Grow.
    Yes,
}

impl Grow {
    /// What the window may do for an ACK that acknowledges something new.
    #[inline]
    #[must_use]
    pub const fn of(path: &Path, ece: bool) -> Self {
        match path.phase {
            _ if !path.cwnd_limited => Self::No,
            Phase::Open if !ece => Self::Yes,
            Phase::Cwr if !ece => Self::InCwr,
            Phase::Open | Phase::Cwr | Phase::Recovery => Self::No,
            // Departs from RFC 3168 § 6.1.2, as Linux does: CWR rides on new data only, so while a timeout's losses are
            // repaired the echo is old, and a window that obeyed it would stay at one segment until all are.
            Phase::Loss => Self::Yes,
        }
    }
}

/// Why a window becomes smaller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A loss or a timeout.
    Loss,
    /// An ECN-echo.
    Ecn,
    /// Packets waited too long.
    Delay,
    /// A router's message to the sender.
    Quench {
        /// Whether the packet that it was about was marked; else it was dropped.
        marked: bool,
        /// How bad the router says it is, from 0: multi-level BECN.
        level: u8,
    },
    /// Routers told of too high a load.
    Load,
}

impl Cause {
    /// How many are counted apart.
    pub const COUNT: usize = 6;

    /// Its place among counts by cause.
    #[must_use]
    pub const fn index(self) -> usize {
        match self {
            Self::Loss => 0,
            Self::Ecn => 1,
            Self::Delay => 2,
            Self::Quench { marked: true, .. } => 3,
            Self::Quench { marked: false, .. } => 4,
            Self::Load => 5,
        }
    }
}

/// What a controller asks of the transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Request {
    /// Nothing.
    Nothing,
    /// To reduce the window. If it was not reduced in this window of data yet, [`Signal::Reduce`] follows, with all that
    /// belongs to a reduction: [`Phase::Cwr`], proportional rate reduction, CWR, counters.
    Reduce(Cause),
}

/// What is rare: each reaches the controller at most once per window of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Signal {
    /// The window is to become smaller: fast retransmit begins (RFC 5681 § 3.2), an ECN-echo came (RFC 3168 § 6.1.2), a router
    /// asked for it, or the controller itself.
    Reduce(Cause),
    /// The retransmission timer expired for the `nth` time in a row, counted from 1.
    Timeout {
        /// How many times in a row, counted from 1.
        nth: u32,
        /// Whether the threshold becomes smaller: not for a segment that was sent again already (RFC 5681 § 3.1), nor, where the
        /// endpoint says so, if the window was reduced already for what is outstanding.
        reduces: bool,
    },
    /// Nothing was sent for longer than the retransmission timeout (RFC 5681 § 4.1).
    Idle {
        /// How long.
        idle: Duration,
        /// What the transport leaves of the window (RFC 2861); `None` is the initial window. A controller with a rule of its own for
        /// pauses goes by that.
        keep: Option<Window>,
    },
    /// Data goes out, and nothing was outstanding before it.
    Resume {
        /// When data went last.
        since: Time,
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

impl Window {
    /// Window at the start of a connection.
    pub(crate) fn new(start: &Start) -> Self {
        Self { cwnd: start.initial_cwnd(), ssthresh: start.initial_ssthresh() }
    }

    /// `true` in slow start (RFC 5681 § 3.1).
    #[inline]
    pub(crate) const fn is_below_threshold(self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// Grows, up to `most` bytes.
    #[inline]
    pub(crate) fn grow(&mut self, bytes: u64, most: u64) {
        self.cwnd = (self.cwnd + bytes).min(most);
    }

    /// Sets the threshold to what a congestion signal leaves, at least two segments (RFC 5681
    /// eq. 4), and the window to it, at least `least` bytes.
    pub(crate) fn reduce(&mut self, left: u64, least: u64, mss: u32) {
        self.ssthresh = left.max(min_ssthresh(mss));
        // A window below the least one must not be raised to it.
        self.cwnd = self.cwnd.min(left.max(least));
    }

    /// Restarts after a pause with what the transport keeps of the window, or else with the
    /// restart window, min(IW, cwnd) (RFC 5681 § 4.1).
    pub(crate) fn restart(&mut self, keep: Option<Self>, initial_window: u64) {
        self.cwnd = self.cwnd.min(keep.map_or(initial_window, |keep| keep.cwnd));
        self.ssthresh = keep.map_or(self.ssthresh, |keep| keep.ssthresh);
    }
}

/// The window of a controller, to be changed: [`Controller::window_mut`].
#[derive(Debug)]
pub struct WindowMut<'c> {
    /// Congestion window, bytes.
    pub cwnd: &'c mut f64,
    /// Slow-start threshold, bytes.
    pub ssthresh: &'c mut u64,
    /// The window never grows past this, bytes.
    pub most: f64,
}

impl WindowMut<'_> {
    /// Becomes the larger of both windows and of both thresholds (Linux,
    /// `tcp_undo_cwnd_reduction`).
    pub fn restore(&mut self, before: &WindowMut<'_>) {
        *self.cwnd = self.cwnd.max(*before.cwnd);
        *self.ssthresh = (*self.ssthresh).max(*before.ssthresh);
    }
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
    /// `true` if the receiver may hold back the ACK of a lone segment (RFC 5681 § 4.2).
    pub delayed_acks: bool,
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
    /// An ACK came: any, in every [`Phase`], duplicates too. [`AckSample::grow`] says whether the window may grow.
    fn on_ack(&mut self, path: &Path, ack: &AckSample) -> Request;
    /// Something rare happened.
    fn on_signal(&mut self, path: &Path, signal: Signal);
    /// What it writes for routers into the data that goes out now.
    fn stamp(&mut self, _data: &Departing) -> Header {
        Header::None
    }
    /// The window it allows now.
    fn window(&self) -> Window;
    /// The rate it wants packets paced at; `None` sends as ACKs arrive.
    fn pacing(&self) -> Option<Rate> {
        None
    }
    /// Whether a rate that changes holds already for the segment that waits; else the time to send it stays what it was when the last one
    /// went, as in Linux.
    fn paces_anew(&self) -> bool {
        false
    }
    /// The least time from one segment to the next, of a controller whose window may be below one segment; it holds as soon as an ACK
    /// changes it. Zero is as the window allows; `None` of one that never asks for any. Not beside [`Controller::pacing`].
    fn spacing(&self) -> Option<Duration> {
        None
    }
    /// Whether it steers by delivery rates. Then it hears of them, and its window alone says how much may be in flight while losses are
    /// repaired: no proportional rate reduction comes between (Linux: `cong_control`). Its pace is of payload, as delivery rates are.
    fn by_rate(&self) -> bool {
        false
    }
    /// What the ACK told of the delivery rate of which it hears next.
    fn on_rate(&mut self, _sample: &RateSample) {}
    /// `true` if it sees no round-trip time of a segment whose ACK the receiver may have held back,
    /// whatever sets the timer. Asked once for a connection's configuration.
    fn ignores_held_acks(&self) -> bool {
        false
    }
    /// `true` if routers tell it of loads by the ECN field of all its data, so that retransmissions
    /// are ECN-capable, too (RFC 3168 § 6.1.5 has them not be; Linux does it for controllers with
    /// `TCP_CONG_NEEDS_ECN`: `tcp_ecn_send`). Asked once, too.
    fn reads_ecn_field(&self) -> bool {
        false
    }
    /// Its window and threshold, for what the transport does to any controller's: taking a
    /// reduction back, raising the threshold, keeping data in flight. Without it, the default, the
    /// methods for these three do nothing.
    fn window_mut(&mut self) -> Option<WindowMut<'_>> {
        None
    }
    /// Takes the last reduction back, as the loss it answered was none: `before` is the controller
    /// at that reduction (Linux, `undo_cwnd`; RFC 4015 § 3.2).
    fn undo(&mut self, mut before: Self, _now: Time, _after_timeout: bool)
    where
        Self: Sized,
    {
        restore_window(self, &mut before);
    }
    /// Raises the slow-start threshold to `least` bytes (Linux, `tcp_current_ssthresh`).
    fn raise_threshold(&mut self, least: u64) {
        if let Some(window) = self.window_mut() {
            *window.ssthresh = least.max(*window.ssthresh);
        }
    }
    /// An ACK that acknowledges nothing new reported a round trip by SACK; comes before all else
    /// that follows from the ACK. Nothing by default (Linux, `pkts_acked`).
    fn on_sack_rtt(&mut self, _path: &Path, _rtt: Duration) {}
    /// A timeout left so many bytes in flight that are not lost: the window takes them in beside
    /// the segment that goes again (Linux, `tcp_enter_loss`).
    fn add_in_flight(&mut self, bytes: u64) {
        if let Some(window) = self.window_mut() {
            *window.cwnd = (*window.cwnd + bytes as f64).min(window.most);
        }
    }
    /// What it takes for the round trip without queues, if it acts by that.
    fn min_rtt(&self) -> Option<Duration> {
        None
    }
    /// What routers steer it by, if any do, and once they have.
    fn guidance(&self) -> Option<Guidance> {
        None
    }
    /// Tells what it counted, each by a name that is its own: columns and activity take them as they are.
    fn count(&self, _each: &mut dyn FnMut(&'static str, u64)) {}
}

/// Raises window and threshold to those `before` a reduction, if the controller gives access to
/// them.
pub(crate) fn restore_window<C: Controller>(controller: &mut C, before: &mut C) {
    if let (Some(mut window), Some(before)) = (controller.window_mut(), before.window_mut()) {
        window.restore(&before);
    }
}

/// The least slow-start threshold, bytes (RFC 5681 eq. 4).
pub(crate) const fn min_ssthresh(mss: u32) -> u64 {
    2 * mss as u64
}
