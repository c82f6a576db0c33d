//! Segmentation offload: chunks of segments that wait for each other (McCullagh 2008 § 5.3;
//! `tcp_tso_should_defer`), and bursts that Linux hands down as one and ends with PSH, which its
//! receivers acknowledge at once (tcp_output.c).

use cwnd_cc::Controller as _;
use cwnd_quantity::{Bytes, Duration, Rate, Time};

use super::{FastRecovery, Sender, State};
use crate::tso::{Params, TsoSizing};

/// Linux's NSEC_PER_MSEC in `tcp_tso_should_defer`.
const NEAR: Duration = Duration::from_millis(1);

/// The chunk that is being sent, or waited for.
#[derive(Clone, Debug)]
pub(super) struct Chunks {
    most: u64,
    defer: Option<Duration>,
    part: u64,
    sizing: TsoSizing,
    /// Segments of the chunk that are still to go, at this instant.
    left: u64,
    at: Time,
    /// Bytes of it.
    size: u64,
    /// Since when data waits that may go; `Time::NEVER` if none does.
    since: Time,
}

impl Chunks {
    pub fn new(params: &Params) -> Option<Box<Self>> {
        let most = params.tso?;
        Some(Box::new(Self {
            most: most.0,
            defer: params.tso_defer,
            part: u64::from(params.tso_window_part),
            sizing: params.tso_sizing,
            left: 0,
            at: Time::NEVER,
            size: 0,
            since: Time::NEVER,
        }))
    }

    /// Time when what waits goes in any case.
    fn until(&self) -> Time {
        match self.defer {
            Some(bound) if self.since != Time::NEVER => self.since + bound,
            _ => Time::NEVER,
        }
    }
}

/// The burst that is being sent.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Burst {
    /// Segments of it that are still to go.
    left: u32,
    /// `true` if it is more than one segment.
    several: bool,
}

impl Sender {
    /// `true` if a new segment, which the windows let go, goes now: as part of a chunk that is
    /// under way, or of one that is full (`tcp_tso_should_defer`).
    #[cold]
    pub(super) fn goes_in_chunk(&mut self, now: Time) -> bool {
        let (mss, cwnd) = (self.config.mss, self.cc.window().cwnd);
        let flight = self.seq.flight();
        let windows = cwnd.min(self.seq.rwnd()).saturating_sub(flight);
        let unsent = self.seq.unsent();
        let rate = self.rate_of_chunks(cwnd);
        let largest = self.largest_burst(cwnd) * mss;
        let open = matches!(self.recovery, State::Open);
        let patient = match &self.chunks {
            Some(chunks) if chunks.sizing == TsoSizing::Unpaced => open && self.ack_is_near(now),
            // Linux deferred in the state Open only, which duplicates end.
            _ => open && self.dupacks == 0 && self.sent.is_empty(),
        };
        let Some(chunks) = &mut self.chunks else { return true };
        if chunks.left == 0 || chunks.at != now {
            let most = match chunks.sizing {
                TsoSizing::Full => chunks.most,
                TsoSizing::Rate | TsoSizing::Unpaced => chunks.most.min(largest),
            };
            let most = (most / mss).max(1) * mss;
            let full = most.min(cwnd / chunks.part).max(mss);
            // Nothing comes that would make it fuller, or it has waited long enough.
            let alone = flight == 0 || unsent <= windows;
            if windows < full && !alone && patient {
                chunks.since = chunks.since.min(now);
                if now < chunks.until() {
                    self.pacer.set_holds(chunks.until() != Time::NEVER);
                    self.cwnd_limited = true;
                    return false;
                }
            }
            let size = most.min(windows).min(unsent).max(1);
            (chunks.left, chunks.at, chunks.size) = (size.div_ceil(mss), now, 0);
            // Of what is not the last a chunk has whole segments.
            if size < unsent {
                chunks.left = (size / mss).max(1);
            }
            chunks.since = Time::NEVER;
        }
        chunks.left -= 1;
        chunks.size += mss + u64::from(self.config.header);
        let paces = chunks.sizing == TsoSizing::Rate;
        if let Some(rate) = rate.filter(|_| paces && chunks.left == 0) {
            self.pacer.hold_until(now + rate.time_for(Bytes(chunks.size)));
        }
        true
    }

    /// `true` if the last segment went within a millisecond, and the ACK of the oldest is due
    /// within another, or within half a round trip: then ACKs come close to each other, and to wait
    /// for one costs little (`tcp_tso_should_defer` of 6.18).
    fn ack_is_near(&self, now: Time) -> bool {
        let Some(srtt) = self.rtt.srtt().filter(|_| self.rack_tlp.is_some()) else { return false };
        let near = NEAR.min(srtt / 2);
        now.since(self.pacer.last_sent()) <= NEAR
            && self.sent.sent_at(self.seq.una()).is_some_and(|sent| sent + srtt <= now + near)
    }

    /// `true` if data that may go waits for its chunk to be full.
    pub(super) fn waits_for_chunk(&self) -> bool {
        self.chunks.as_ref().is_some_and(|chunks| chunks.since != Time::NEVER)
    }

    /// The pace of chunks: 200 % of the window a round trip in the first half of slow start, then
    /// 120 % (`tcp_update_pacing_rate`).
    fn rate_of_chunks(&self, cwnd: u64) -> Option<Rate> {
        let srtt = self.rtt.srtt()?;
        let bits = u128::from(cwnd) * 8 * u128::from(self.percent_of_rate(cwnd)) * 10_000_000;
        u64::try_from(bits / u128::from(srtt.0.max(1))).ok().map(|bits| Rate(bits.max(1)))
    }

    /// Time when data that waits for a chunk goes in any case, or what is paced may.
    #[cold]
    pub(super) fn held_until(&self) -> Time {
        let deferred = self.chunks.as_ref().map_or(Time::NEVER, |chunks| chunks.until());
        let until = self.pacer.until();
        if deferred == Time::NEVER { until } else { deferred.max(until) }
    }
}

impl Sender {
    /// New data goes out; says whether it ends a burst of several segments.
    #[inline]
    pub(super) fn ends_burst(&mut self, now: Time) -> bool {
        if self.burst.left == 0 || self.pacer.last_sent() != now {
            let size = self.burst_size();
            self.burst = Burst { left: size, several: size > 1 };
        }
        self.burst.left -= 1;
        self.burst.left == 0 && self.burst.several
    }

    /// Segments of a burst that begins now: what may go, but no more than half of the window
    /// (`tcp_cwnd_test`), and what the rate passes in a millisecond, but two (`tcp_tso_autosize`).
    fn burst_size(&self) -> u32 {
        let cwnd = self.cc.window().cwnd;
        let allowed = match (&self.recovery, &self.cwr) {
            (State::Recovery(FastRecovery { prr: Some(prr), .. }), _)
            | (State::Open, Some(prr)) => prr.quota(),
            _ => cwnd.saturating_sub(self.in_flight()),
        };
        let ready = allowed.min(cwnd / 2).min(self.seq.unsent());
        let most = self.largest_burst(cwnd);
        let (segments, _) = self.config.segments.divide(ready);
        u32::try_from(segments.clamp(1, most)).unwrap_or(1)
    }

    /// 200 % of the window a round trip in the first half of slow start, then 120 %
    /// (`tcp_pacing_ss_ratio`, `_ca_`).
    pub(super) fn percent_of_rate(&self, cwnd: u64) -> u64 {
        if cwnd < self.cc.window().ssthresh / 2 { 200 } else { 120 }
    }

    /// A millisecond (2⁻¹⁰ s) at the rate that would be paced, and more where the round trip is
    /// short.
    pub(super) fn largest_burst(&self, cwnd: u64) -> u64 {
        let Some(srtt) = self.rtt.srtt() else { return LEAST_SEGMENTS };
        let least_us = self.rtt.min().unwrap_or(Duration::ZERO).0 / 1000;
        let halvings = least_us >> RTT_LOG;
        let near = if halvings < 32 { LARGEST >> halvings } else { 0 };
        // What saturates is a window of 9 GB, far above the largest burst.
        let window = cwnd.saturating_mul(self.percent_of_rate(cwnd) * 10_000_000);
        let is_below = |bytes: u64| window < (bytes << 10).saturating_mul(srtt.0.max(1));
        // Most rates are so low, or so high, that nothing need be divided.
        let more = (LEAST_SEGMENTS + 1) * self.config.mss;
        if near < more && is_below(more - near) {
            return LEAST_SEGMENTS;
        }
        let bytes = match LARGEST.saturating_sub(near) {
            room if is_below(room) => ((window / srtt.0.max(1)) >> 10) + near,
            _ => LARGEST,
        };
        self.config.segments.divide(bytes).0.max(LEAST_SEGMENTS)
    }
}

// Linux, net/ipv4/tcp_output.c and its sysctls.
/// `sk_gso_max_size`, bytes.
const LARGEST: u64 = 65_536;
/// `tcp_min_tso_segs`.
const LEAST_SEGMENTS: u64 = 2;
/// `tcp_tso_rtt_log`: microseconds of the round trip are halved so often.
const RTT_LOG: u32 = 9;
