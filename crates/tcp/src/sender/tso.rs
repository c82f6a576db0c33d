//! Segmentation offload: chunks of segments that wait to be full (McCullagh 2008 § 5.3;
//! `tcp_tso_should_defer`), bursts, and cwnd validation where sending stops. Linux hands a burst
//! down as one and ends it with PSH, which its receivers acknowledge at once (tcp_output.c).

use cwnd_cc::Controller as _;
use cwnd_quantity::{Bytes, Duration, Rate, Time};

use super::Sender;
use crate::cwnd_validation::{LimitedBy, Stop};
use crate::params::{TsoParams, TsoSizing};

/// State of segmentation offload.
#[derive(Clone, Debug)]
pub(super) struct Tso {
    burst: Burst,
    /// The current chunk; `None` without TSO.
    chunks: Option<Box<Chunks>>,
}

/// The chunk that is being sent or deferred.
#[derive(Clone, Debug)]
struct Chunks {
    most: u64,
    defer: Option<Duration>,
    part: u64,
    sizing: TsoSizing,
    /// Segments of the chunk that are still to be sent at this instant.
    left: u64,
    at: Time,
    /// Wire bytes of the chunk sent so far.
    size: u64,
    /// Time since which a chunk is deferred; `Time::NEVER` if none is.
    since: Time,
}

impl Chunks {
    fn new(params: &TsoParams) -> Option<Box<Self>> {
        let most = params.tso?;
        Some(Box::new(Self {
            most: most.0,
            defer: params.tso_defer,
            part: u64::from(params.tso_win_divisor),
            sizing: params.tso_sizing,
            left: 0,
            at: Time::NEVER,
            size: 0,
            since: Time::NEVER,
        }))
    }

    /// Time at which a deferred chunk is sent in any case; `Time::NEVER` if none is deferred, or
    /// without a bound.
    fn until(&self) -> Time {
        match self.defer {
            Some(bound) if self.since != Time::NEVER => self.since + bound,
            _ => Time::NEVER,
        }
    }
}

/// The burst that is being sent.
#[derive(Clone, Copy, Debug, Default)]
struct Burst {
    /// Segments of the burst that are still to be sent.
    left: u32,
    /// `true` if the burst has more than one segment.
    several: bool,
}

/// Room for new data, in bytes.
pub(super) struct Room {
    pub mss: u64,
    pub cwnd: u64,
    /// Room that the congestion and the receive window leave.
    pub windows: u64,
    pub unsent: u64,
    /// Maximum chunk by the pacing rate.
    pub largest: u64,
    /// `true` if nothing is outstanding.
    pub idle: bool,
    /// `true` if the sender may defer the chunk until it is full.
    pub may_defer: bool,
    /// Wire bytes of a full segment.
    pub wire: u64,
}

/// Decision about a segment that the windows allow.
pub(super) enum Chunk {
    Send,
    /// The segment is sent, and ends a paced chunk of so many wire bytes.
    SendLast(u64),
    /// The segment is deferred until its chunk is full, at most until this time.
    Defer(Time),
}

impl Tso {
    pub fn new(params: &TsoParams) -> Self {
        Self { burst: Burst::default(), chunks: Chunks::new(params) }
    }

    /// Decides about a new segment: it is sent in the current chunk, or in a new one that is full
    /// or waits no longer (`tcp_tso_should_defer`).
    pub fn take(&mut self, now: Time, room: &Room) -> Chunk {
        let Some(chunks) = &mut self.chunks else { return Chunk::Send };
        let mss = room.mss;
        if chunks.left == 0 || chunks.at != now {
            let most = match chunks.sizing {
                TsoSizing::Full => chunks.most,
                TsoSizing::Rate | TsoSizing::Unpaced => chunks.most.min(room.largest),
            };
            let most = (most / mss).max(1) * mss;
            let full = most.min(room.cwnd / chunks.part).max(mss);
            // Waiting would not fill it: no ACK is due, or it takes all unsent data.
            let alone = room.idle || room.unsent <= room.windows;
            if room.windows < full && !alone && room.may_defer {
                chunks.since = chunks.since.min(now);
                if now < chunks.until() {
                    return Chunk::Defer(chunks.until());
                }
            }
            let size = most.min(room.windows).min(room.unsent).max(1);
            (chunks.left, chunks.at, chunks.size) = (size.div_ceil(mss), now, 0);
            // A chunk that is not the last has whole segments only.
            if size < room.unsent {
                chunks.left = (size / mss).max(1);
            }
            chunks.since = Time::NEVER;
        }
        chunks.left -= 1;
        chunks.size += room.wire;
        let ends = chunks.sizing == TsoSizing::Rate && chunks.left == 0;
        if ends { Chunk::SendLast(chunks.size) } else { Chunk::Send }
    }

    /// `true` if a chunk is deferred.
    pub fn waits(&self) -> bool {
        self.chunks.as_ref().is_some_and(|chunks| chunks.since != Time::NEVER)
    }

    /// Time at which a deferred chunk is sent in any case; `Time::NEVER` if none is deferred, or
    /// without a bound.
    pub fn deferred_until(&self) -> Time {
        self.chunks.as_ref().map_or(Time::NEVER, |chunks| chunks.until())
    }

    /// `true` if the next segment starts a burst; `anew` if nothing was sent at this instant.
    #[inline]
    pub const fn begins_burst(&self, anew: bool) -> bool {
        self.burst.left == 0 || anew
    }

    /// Starts a burst of `segments`.
    #[inline]
    pub const fn begin_burst(&mut self, segments: u32) {
        self.burst = Burst { left: segments, several: segments > 1 };
    }

    /// Counts a segment that is sent. Returns `true` if it ends a burst of several.
    #[inline]
    pub const fn ends_burst(&mut self) -> bool {
        self.burst.left -= 1;
        self.burst.left == 0 && self.burst.several
    }
}

impl Sender {
    /// `true` if a new segment that the windows allow is sent now: in the current TSO chunk, or in
    /// a new one that is full or waits no longer (`tcp_tso_should_defer`).
    #[cold]
    pub(super) fn tso_allows(&mut self, now: Time) -> bool {
        let (mss, cwnd) = (self.config.mss, self.cc.window().cwnd);
        let flight = self.seq.flight();
        let windows = cwnd.min(self.seq.rwnd()).saturating_sub(flight);
        let open = self.recovery.is_open();
        let may_defer = match self.config.params.tso.tso_sizing {
            TsoSizing::Unpaced => open && self.ack_is_near(now),
            // Linux deferred in the state Open only, which duplicate ACKs end.
            _ => open && self.recovery.dupacks() == 0 && self.sent.is_empty(),
        };
        let room = Room {
            mss,
            cwnd,
            windows,
            unsent: self.seq.unsent(),
            largest: self.max_burst(cwnd) * mss,
            idle: flight == 0,
            may_defer,
            wire: mss + u64::from(self.config.header),
        };
        match self.tso.take(now, &room) {
            Chunk::Send => true,
            Chunk::SendLast(size) => {
                if let Some(rate) = self.rate_of_chunks(cwnd) {
                    self.pacer.hold_until(now + rate.time_for(Bytes(size)));
                }
                true
            }
            Chunk::Defer(until) => {
                self.pacer.set_holds(until != Time::NEVER);
                self.validation.set_limited(true);
                false
            }
        }
    }

    /// `true` if the last segment was sent within a millisecond, and the ACK of the oldest is due
    /// within a further millisecond or half a round trip, whichever is less. ACKs then arrive close
    /// together, so that waiting for one costs little (`tcp_tso_should_defer` of 6.18). `false`
    /// without RACK and before the first RTT sample.
    fn ack_is_near(&self, now: Time) -> bool {
        let Some(srtt) = self.rtt.srtt().filter(|_| self.loss.has_rack()) else { return false };
        let near = NEAR.min(srtt / 2);
        now.since(self.pacer.last_sent()) <= NEAR
            && self.sent.sent_at(self.seq.una()).is_some_and(|sent| sent + srtt <= now + near)
    }

    /// Pacing rate of TSO chunks: 200 % of the window per round trip in the first half of slow
    /// start, then 120 % (`tcp_update_pacing_rate`); `None` before the first RTT sample.
    fn rate_of_chunks(&self, cwnd: u64) -> Option<Rate> {
        let srtt = self.rtt.srtt()?;
        let bits = u128::from(cwnd) * 8 * u128::from(self.percent_of_rate(cwnd)) * 10_000_000;
        u64::try_from(bits / u128::from(srtt.0.max(1))).ok().map(|bits| Rate(bits.max(1)))
    }

    /// Time at which data deferred for its TSO chunk, or held back by pacing, may be sent.
    #[cold]
    pub(super) fn held_until(&self) -> Time {
        let deferred = self.tso.deferred_until();
        let until = self.pacer.until();
        if deferred == Time::NEVER { until } else { deferred.max(until) }
    }

    /// Counts a segment of new data. Returns `true` if it ends a burst of several segments.
    #[inline]
    pub(super) fn ends_burst(&mut self, now: Time) -> bool {
        if self.tso.begins_burst(self.pacer.last_sent() != now) {
            let size = self.burst_size();
            self.tso.begin_burst(size);
        }
        self.tso.ends_burst()
    }

    /// Size of a burst that starts now, segments: what may be sent, at most half of the window
    /// (`tcp_cwnd_test`), at least one. More than two are at most [`Sender::max_burst`].
    fn burst_size(&self) -> u32 {
        let cwnd = self.cc.window().cwnd;
        let allowed = match self.recovery.prr() {
            Some(prr) => prr.quota(),
            None => cwnd.saturating_sub(self.in_flight()),
        };
        let ready = allowed.min(cwnd / 2).min(self.seq.unsent());
        let (segments, _) = self.config.segments.divide(ready);
        // Mostly two segments follow an ACK, and they are a burst at any rate.
        if segments <= MIN_SEGMENTS {
            return segments.max(1) as u32;
        }
        u32::try_from(segments.min(self.max_burst(cwnd))).unwrap_or(1)
    }

    /// Pacing rate in percent of the window per round trip: 200 in the first half of slow start,
    /// then 120 (`tcp_pacing_ss_ratio`, `tcp_pacing_ca_ratio`).
    pub(super) fn percent_of_rate(&self, cwnd: u64) -> u64 {
        if cwnd < self.cc.window().ssthresh / 2 { 200 } else { 120 }
    }

    /// Maximum burst, segments: a millisecond (2⁻¹⁰ s) of the pacing rate, and more for short round
    /// trips (`tcp_tso_autosize`).
    pub(super) fn max_burst(&self, cwnd: u64) -> u64 {
        let Some(srtt) = self.rtt.srtt() else { return MIN_SEGMENTS };
        let min_rtt_us = self.rtt.min().unwrap_or(Duration::ZERO).0 / 1000;
        let halvings = min_rtt_us >> RTT_LOG;
        let near = if halvings < 32 { MAX_BURST_BYTES >> halvings } else { 0 };
        // Only a window of 9 GB saturates, far above the largest burst.
        let window = cwnd.saturating_mul(self.percent_of_rate(cwnd) * 10_000_000);
        let is_below = |bytes: u64| window < (bytes << 10).saturating_mul(srtt.0.max(1));
        // Most rates are so low, or so high, that no division is needed.
        let more = (MIN_SEGMENTS + 1) * self.config.mss;
        if near < more && is_below(more - near) {
            return MIN_SEGMENTS;
        }
        let bytes = match MAX_BURST_BYTES.saturating_sub(near) {
            room if is_below(room) => ((window / srtt.0.max(1)) >> 10) + near,
            _ => MAX_BURST_BYTES,
        };
        self.config.segments.divide(bytes).0.max(MIN_SEGMENTS)
    }

    /// Updates cwnd validation at a stop, where nothing more can be sent.
    ///
    /// Not inlined, so that the path of senders without this stays short.
    #[cold]
    pub(super) fn validate_cwnd(&mut self) {
        let window = self.cc.window();
        if self.config.params.validation.cwnd_limited == LimitedBy::Always {
            // FreeBSD, tcp_input.c, cc_ack_received: CCF_CWND_LIMITED.
            self.validation.set_limited(window.cwnd <= self.seq.rwnd());
            return;
        }
        let mss = self.config.mss;
        let full = match self.recovery.prr() {
            Some(prr) => !prr.allows(mss),
            // A deferred TSO chunk waits for the window (`tcp_tso_should_defer`).
            None => self.in_flight() + mss > window.cwnd || self.tso.waits(),
        };
        let outstanding = match self.config.segments.divide(self.seq.flight()) {
            (segments, 0) => segments * mss,
            (segments, _) => (segments + 1) * mss,
        };
        let waits = self.seq.nxt() < self.seq.app_end();
        let (una, high) = (self.seq.una(), self.seq.high());
        self.validation.on_stop(&Stop { full, waits, outstanding, una, high }, window);
    }
}

// Linux, net/ipv4/tcp_output.c and its sysctls.
/// `sk_gso_max_size`, bytes.
const MAX_BURST_BYTES: u64 = 65_536;
/// `tcp_min_tso_segs`.
const MIN_SEGMENTS: u64 = 2;
/// `tcp_tso_rtt_log`: binary logarithm of the microseconds of minimum RTT that halve the addition
/// to a burst.
const RTT_LOG: u32 = 9;
/// Linux's NSEC_PER_MSEC in `tcp_tso_should_defer`.
const NEAR: Duration = Duration::from_millis(1);
