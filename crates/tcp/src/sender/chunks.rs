//! Chunks of segments that wait for each other (McCullagh 2008 § 5.3; `tcp_tso_should_defer`).

use cwnd_cc::Controller as _;
use cwnd_quantity::{Bytes, Duration, Rate, Time};

use super::{Sender, State};
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

    /// When what waits goes in any case.
    fn until(&self) -> Time {
        match self.defer {
            Some(bound) if self.since != Time::NEVER => self.since + bound,
            _ => Time::NEVER,
        }
    }
}

impl Sender {
    /// Whether a new segment, which the windows let go, goes now: as part of a chunk that is under way, or of one that is full
    /// (`tcp_tso_should_defer`).
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

    /// Whether the last segment went within a millisecond, and the ACK of the oldest is due within another, or within half a round trip:
    /// then ACKs come close to each other, and to wait for one costs little (`tcp_tso_should_defer` of 6.18).
    fn ack_is_near(&self, now: Time) -> bool {
        let Some(srtt) = self.rtt.srtt().filter(|_| self.rack_tlp.is_some()) else { return false };
        let near = NEAR.min(srtt / 2);
        now.since(self.pacer.last_sent()) <= NEAR
            && self.sent.sent_at(self.seq.una()).is_some_and(|sent| sent + srtt <= now + near)
    }

    /// Whether data that may go waits for its chunk to be full.
    pub(super) fn waits_for_chunk(&self) -> bool {
        self.chunks.as_ref().is_some_and(|chunks| chunks.since != Time::NEVER)
    }

    /// The pace of chunks: 200 % of the window a round trip in the first half of slow start, then 120 % (`tcp_update_pacing_rate`).
    fn rate_of_chunks(&self, cwnd: u64) -> Option<Rate> {
        let srtt = self.rtt.srtt()?;
        let bits = u128::from(cwnd) * 8 * u128::from(self.percent_of_rate(cwnd)) * 10_000_000;
        u64::try_from(bits / u128::from(srtt.0.max(1))).ok().map(|bits| Rate(bits.max(1)))
    }

    /// When data that waits for a chunk goes in any case, or what is paced may.
    #[cold]
    pub(super) fn held_until(&self) -> Time {
        let deferred = self.chunks.as_ref().map_or(Time::NEVER, |chunks| chunks.until());
        let until = self.pacer.until();
        if deferred == Time::NEVER { until } else { deferred.max(until) }
    }
}
