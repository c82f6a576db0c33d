use cwnd_packet::{CongestionHeader, Echo, Guidance};
use cwnd_quantity::{Duration, Rate, Time};

/// State of the transport's loss recovery; names after Linux `tcp_ca_state`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// No loss or mark is being answered.
    #[default]
    Open,
    /// The window was reduced without a loss to repair (for an ECN-echo, a quench, or a request of
    /// the controller); that window of data is not yet acknowledged.
    Cwr,
    /// Fast recovery; in QUIC the recovery period, whatever reduced the window.
    Recovery,
    /// Retransmitting after a timeout.
    Loss,
}

/// Facts that the transport knows, valid at the moment of the call. In QUIC, bytes are those of UDP
/// payload.
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
    /// ACK took effect. At a timeout, and on ACKs of new data while one is repaired, payload bytes
    /// presumed in the network; with the endpoint's `flight_size = "pipe"` and in QUIC always.
    pub flight_size: u64,
    /// Payload bytes cumulatively acknowledged since the start.
    pub delivered: u64,
    /// Payload bytes sent since the start, each counted once.
    pub sent: u64,
    /// State of the transport's loss recovery.
    pub phase: Phase,
    /// `true` if the congestion window, and not the application or the receiver, limited what was
    /// sent (RFC 7661, RFC 9438 § 5.8), by the endpoint's rule `cwnd_limited`.
    pub cwnd_limited: bool,
    /// Number of round trips: rises by one each time the data that was outstanding at the last rise
    /// is acknowledged.
    pub round: u64,
}

/// Facts about the data, or the SYN, that is sent now.
#[derive(Clone, Copy)]
#[expect(missing_debug_implementations, reason = "it is of one call")]
pub struct OutgoingData<'a> {
    /// The current time.
    pub now: Time,
    /// Sender maximum segment size, payload bytes.
    pub mss: u32,
    /// Payload bytes cumulatively acknowledged since the start.
    pub delivered: u64,
    /// Payload bytes sent since the start, each counted once, these included; 0 for a SYN.
    pub sent: u64,
    /// Round-trip times, read on demand: the struct is made for each packet, and few controllers
    /// need them.
    pub rtts: &'a dyn RoundTrips,
}

/// Round-trip times that the transport knows.
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

/// Earliest departure of the next data: by a rate, or by a gap between segments.
#[derive(Clone, Copy, Debug)]
pub struct DepartureTiming {
    /// [`Controller::pacing`].
    pub pacing: Option<Rate>,
    /// [`Controller::spacing`].
    pub spacing: Option<Duration>,
}

/// Facts that one ACK reports.
#[derive(Clone, Copy, Debug, Default)]
pub struct AckSample {
    /// Payload bytes newly acknowledged cumulatively, zero for a duplicate; or the bytes that the
    /// endpoint's `grow_by` counts in their place, also on duplicates that report data by SACK.
    pub acked_bytes: u64,
    /// Payload bytes newly reported by SACK.
    pub newly_sacked: u64,
    /// Payload bytes found lost since the ACK before this one.
    pub newly_lost: u64,
    /// RTT measured by this ACK, if it gave a valid sample (Karn's rule).
    pub rtt: Option<Duration>,
    /// `true` if the ACK carried ECE.
    pub ece: bool,
    /// Receiver's echo of what routers wrote.
    pub echo: Echo,
    /// Permission to grow the window for this ACK.
    pub grow: GrowthPermission,
}

/// Delivery-rate sample of one ACK, from the send times that the sender keeps for its segments
/// (draft-cheng-iccrg-delivery-rate-estimation-00; Linux `tcp_rate.c`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RateSample {
    /// Payload bytes that the ACK newly reports, cumulatively or by SACK.
    pub newly_delivered: u64,
    /// Payload bytes reported since the start (C.delivered).
    pub total_delivered: u64,
    /// Value of `total_delivered` when the newest of the reported segments was sent; `None` if the
    /// ACK reports no segment.
    pub prior_delivered: Option<u64>,
    /// Time in which the bytes since `prior_delivered` were sent, or in which they were delivered
    /// if that is longer. `None` if the ACK reports no segment, or if the time is zero or less than
    /// the least RTT, as no rate follows from it.
    pub interval: Option<Duration>,
    /// Round-trip time of that segment; `None` if there is none, or if it was sent more than once.
    pub rtt: Option<Duration>,
    /// Payload bytes presumed in the network, after this ACK.
    pub in_flight: u64,
    /// `true` if the application limited the sender when that segment was sent.
    pub app_limited: bool,
}

/// Permission of the transport to grow the window for an ACK.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GrowthPermission {
    /// No growth: nothing was newly acknowledged, the window did not limit the sender (RFC 7661 §
    /// 4.3, RFC 9438 § 5.8), fast recovery is under way, or the ACK carries an ECE that the sender
    /// obeys (RFC 3168 § 6.1.2), while a timeout is repaired only with `ecn_in_loss`.
    #[default]
    No,
    /// Growth in the round trip after a reduction. RFC 3168 § 6.1.2 excludes only ACKs with ECE
    /// there; Linux and FreeBSD exclude all.
    InCwr,
    /// Growth.
    Yes,
}

impl GrowthPermission {
    /// Returns the permission for an ACK that acknowledges new data; `ece` is `true` if it carries
    /// an ECN-echo that the sender obeys.
    #[inline]
    #[must_use]
    pub const fn for_ack(path: &Path, ece: bool) -> Self {
        match path.phase {
            _ if !path.cwnd_limited => Self::No,
            Phase::Open if !ece => Self::Yes,
            Phase::Cwr if !ece => Self::InCwr,
            Phase::Open | Phase::Cwr | Phase::Recovery => Self::No,
            // Departs from RFC 3168 § 6.1.2, as Linux does. CWR is sent on new data only, so the
            // echo is old while a timeout's losses are repaired. A window that obeyed it would stay
            // at one segment until all are.
            Phase::Loss => Self::Yes,
        }
    }
}

/// Cause of a reduction of the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A loss or a timeout.
    Loss,
    /// An ECN-echo.
    Ecn,
    /// A queueing delay that the controller does not accept.
    Delay,
    /// A router's message to the sender.
    Quench {
        /// `true` if the packet that the message is about was marked; `false` if it was dropped.
        marked: bool,
        /// Level of congestion that the router reports, from 0: multi-level BECN.
        level: u8,
    },
    /// A load that is too high, reported by routers.
    Load,
}

impl Cause {
    /// Number of causes that are counted apart.
    pub const COUNT: usize = 6;

    /// Returns the index of the cause in an array of counts.
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

/// Request of a controller to the transport, in answer to an ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Request {
    /// No request.
    Nothing,
    /// A reduction of the window. [`Signal::Reduce`] follows, unless losses are being repaired or
    /// the window was already reduced in this window of data. With it come [`Phase::Cwr`], CWR and
    /// counters; for [`Cause::Ecn`] also proportional rate reduction, if the endpoint has
    /// `prr_on_ecn`.
    Reduce(Cause),
}

/// Rare event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Signal {
    /// The window becomes smaller, at most once per window of data, with the exceptions that
    /// [the crate](crate) lists. Causes are a loss that is repaired without a timeout (RFC 5681 §
    /// 3.2), an ECN-echo (RFC 3168 § 6.1.2), a router's message, or the controller's own request.
    Reduce(Cause),
    /// The retransmission timer expired for the `nth` time in a row, counted from 1. A fast
    /// retransmit of Tahoe and QUIC's persistent congestion are signalled as a first expiry, too.
    Timeout {
        /// Number of expiries in a row, counted from 1.
        nth: u32,
        /// `true` if the threshold becomes smaller. It stays if the segment was already
        /// retransmitted (RFC 5681 § 3.1), and in QUIC, where the loss has reduced it. As an option
        /// of the endpoint, it also stays if the window was already reduced for the data
        /// outstanding.
        reduces: bool,
    },
    /// Nothing was sent for longer than the retransmission timeout (RFC 5681 § 4.1).
    Idle {
        /// Length of the pause.
        idle: Duration,
        /// Window that the transport keeps (RFC 2861); `None` is the initial window. A controller
        /// that has its own rule for pauses follows that instead.
        keep: Option<Window>,
    },
    /// Data is sent, and nothing was outstanding before it.
    Resume {
        /// Time at which data was last sent.
        since: Time,
    },
}

/// Window that a controller allows, in bytes of payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Congestion window; at least one MSS.
    pub cwnd: u64,
    /// Slow-start threshold; `u64::MAX` if there is none.
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

    /// Adds `bytes` to the window, up to `max_window` bytes.
    #[inline]
    pub(crate) fn grow(&mut self, bytes: u64, max_window: u64) {
        self.cwnd = (self.cwnd + bytes).min(max_window);
    }

    /// Sets the threshold to the bytes that a congestion signal leaves, `left`, at least two
    /// segments (RFC 5681 eq. 4). Lowers the window to `left`, at least `min_cwnd` bytes; never
    /// raises it.
    pub(crate) fn reduce(&mut self, left: u64, min_cwnd: u64, mss: u32) {
        self.ssthresh = left.max(min_ssthresh(mss));
        // A window that is already below `min_cwnd` must not be raised to it.
        self.cwnd = self.cwnd.min(left.max(min_cwnd));
    }

    /// Restarts after a pause with what the transport keeps of the window, or else with the restart
    /// window, min(IW, cwnd) (RFC 5681 § 4.1).
    pub(crate) fn restart(&mut self, keep: Option<Self>, initial_window: u64) {
        self.cwnd = self.cwnd.min(keep.map_or(initial_window, |keep| keep.cwnd));
        self.ssthresh = keep.map_or(self.ssthresh, |keep| keep.ssthresh);
    }
}

/// Mutable access to a controller's window: [`Controller::window_mut`].
#[derive(Debug)]
pub struct WindowMut<'c> {
    /// Congestion window, bytes.
    pub cwnd: &'c mut f64,
    /// Slow-start threshold, bytes.
    pub ssthresh: &'c mut u64,
    /// Upper bound of the window, bytes.
    pub max_window: f64,
}

impl WindowMut<'_> {
    /// Raises window and threshold to those of `before`, where those are larger (Linux,
    /// `tcp_undo_cwnd_reduction`).
    pub fn restore(&mut self, before: &WindowMut<'_>) {
        *self.cwnd = self.cwnd.max(*before.cwnd);
        *self.ssthresh = (*self.ssthresh).max(*before.ssthresh);
    }
}

/// Facts about a connection that its controller starts with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    /// Sender maximum segment size, payload bytes; above zero.
    pub mss: u32,
    /// First congestion window and restart window, bytes (RFC 5681's IW).
    pub initial_window: u64,
    /// Slow-start threshold, bytes; `u64::MAX` is none.
    pub initial_ssthresh: u64,
    /// Upper bound of the congestion window, bytes; `u64::MAX` is no bound.
    pub max_window: u64,
    /// `true` if the receiver may hold back the ACK of a lone segment (RFC 5681 § 4.2).
    pub delayed_acks: bool,
}

impl Start {
    /// Upper bound of the window, bytes, at least one segment.
    #[must_use]
    pub(crate) fn max_window(&self) -> u64 {
        // Half of the range, so that adding to a window cannot overflow.
        self.max_window.clamp(u64::from(self.mss), u64::MAX / 2)
    }

    /// First window, bytes, from one segment to the upper bound.
    #[must_use]
    pub(crate) fn initial_cwnd(&self) -> u64 {
        self.initial_window.clamp(u64::from(self.mss), self.max_window())
    }

    /// First threshold, bytes, at least two segments as every later one (RFC 5681 eq. 4).
    #[must_use]
    pub(crate) fn initial_ssthresh(&self) -> u64 {
        self.initial_ssthresh.max(min_ssthresh(self.mss))
    }
}

/// A congestion controller.
pub trait Controller {
    /// Handles an ACK that is not old, in every [`Phase`], duplicates too (but see
    /// [`crate::AnyController::uses_duplicate_acks`]). [`AckSample::grow`] permits growth or not.
    fn on_ack(&mut self, path: &Path, ack: &AckSample) -> Request;
    /// Handles a rare event.
    fn on_signal(&mut self, path: &Path, signal: Signal);
    /// Returns the header for routers that the data, or the SYN, sent now carries.
    fn stamp(&mut self, _data: &OutgoingData) -> CongestionHeader {
        CongestionHeader::None
    }
    /// Returns the window that it allows now.
    fn window(&self) -> Window;
    /// Returns the pacing rate; `None` sends as ACKs arrive.
    fn pacing(&self) -> Option<Rate> {
        None
    }
    /// `true` if a new rate applies to the segment that already waits for its send time. Otherwise
    /// that time stays as computed when the last segment was sent, as in Linux.
    fn rate_applies_at_once(&self) -> bool {
        false
    }
    /// Returns the least time from one segment to the next, for a controller whose window may be
    /// below one segment. It applies as soon as an ACK changes it. Zero leaves the timing to the
    /// window; `None` is a controller that never asks for a gap. Ignored while
    /// [`Controller::pacing`] gives a rate.
    fn spacing(&self) -> Option<Duration> {
        None
    }
    /// `true` if the controller is driven by delivery rates. Then [`Controller::on_rate`] is
    /// called. Its window alone bounds the data in flight during recovery, without proportional
    /// rate reduction (Linux: `cong_control`). Its pacing rate counts payload, as delivery rates
    /// do.
    fn is_rate_based(&self) -> bool {
        false
    }
    /// Takes the delivery-rate sample of the ACK whose [`Controller::on_ack`] follows.
    fn on_rate(&mut self, _sample: &RateSample) {}
    /// `true` if it must see no RTT of a segment whose ACK the receiver may have delayed; the
    /// retransmission timer may still use that RTT. Asked once for a connection's configuration.
    fn ignores_delayed_acks(&self) -> bool {
        false
    }
    /// `true` if routers report loads to it by the ECN field of all its data, so that
    /// retransmissions are ECN-capable, too. RFC 3168 § 6.1.5 forbids that; Linux does it for
    /// controllers with `TCP_CONG_NEEDS_ECN` (`tcp_ecn_send`). Asked once, too.
    fn reads_ecn_field(&self) -> bool {
        false
    }
    /// Returns its window and threshold for the changes that the transport makes to those of any
    /// controller: undo of a reduction, a raised threshold, data that stays in flight after a
    /// timeout. With the default, `None`, the methods for these three do nothing.
    fn window_mut(&mut self) -> Option<WindowMut<'_>> {
        None
    }
    /// Undoes the last reduction because the loss that it answered was none; `before` is the
    /// controller just before that reduction (Linux, `undo_cwnd`; RFC 4015 § 3.2).
    fn undo(&mut self, mut before: Self, _now: Time, _after_timeout: bool)
    where
        Self: Sized,
    {
        restore_window(self, &mut before);
    }
    /// Raises the slow-start threshold to `ssthresh` bytes (Linux, `tcp_current_ssthresh`).
    fn raise_threshold(&mut self, ssthresh: u64) {
        if let Some(window) = self.window_mut() {
            *window.ssthresh = ssthresh.max(*window.ssthresh);
        }
    }
    /// Takes an RTT that SACK reported on an ACK without new data, before anything else that the
    /// ACK causes (Linux, `pkts_acked`). Called with RACK only, and if the controller's RTT samples
    /// are those of the retransmission timer. Does nothing by default.
    fn on_sack_rtt(&mut self, _path: &Path, _rtt: Duration) {}
    /// Adds to the window the bytes that a timeout leaves in flight and not lost, beside the
    /// segment that is retransmitted (Linux, `tcp_enter_loss`); after QUIC's persistent congestion,
    /// one datagram.
    fn add_in_flight(&mut self, bytes: u64) {
        if let Some(window) = self.window_mut() {
            *window.cwnd = (*window.cwnd + bytes as f64).min(window.max_window);
        }
    }
    /// Returns its estimate of the RTT without queues, if it acts on one.
    fn min_rtt(&self) -> Option<Duration> {
        None
    }
    /// Returns the last guidance from routers; `None` if none has arrived, or none steers it.
    fn guidance(&self) -> Option<Guidance> {
        None
    }
    /// Reports its counters, each by a unique name that columns and activity use unchanged.
    fn count(&self, _each: &mut dyn FnMut(&'static str, u64)) {}
}

/// Raises window and threshold to those `before` a reduction, if the controller gives access to
/// them.
pub(crate) fn restore_window<C: Controller>(controller: &mut C, before: &mut C) {
    if let (Some(mut window), Some(before)) = (controller.window_mut(), before.window_mut()) {
        window.restore(&before);
    }
}

/// Least slow-start threshold, bytes (RFC 5681 eq. 4).
pub(crate) const fn min_ssthresh(mss: u32) -> u64 {
    2 * mss as u64
}
