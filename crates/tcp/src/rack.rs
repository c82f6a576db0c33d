//! RACK-TLP (RFC 8985): by RACK (§ 6) a segment is lost once a segment sent sufficiently later has
//! been delivered; a tail loss probe (§ 7) elicits such a delivery.
//!
//! An ACK or the reordering timer calls `Sender::detect_by_time` (`sender/rack.rs`), which calls
//! `LossDetector::detect`: it computes the deadline, and `SentSegments::mark_lost_by_time`
//! (`sent_segments/loss.rs`) marks the segments that have passed it.

use cwnd_packet::Range;
use cwnd_quantity::{Duration, Time};

use crate::sent_segments::Deadline;

/// State of RACK: the newest arrival, and the reordering window.
///
/// Cost: O(1). An ACK finds lost original data by at most two searches in the send times
/// ([`SentSegments::due`](crate::sent_segments::SentSegments::due)), not segment by segment.
#[derive(Clone, Debug, Default)]
pub struct Rack {
    /// Send time and end of the segment sent last of all that arrived (RACK.xmit_ts, RACK.end_seq).
    newest: (Time, u64),
    /// RTT of the last arrival (RACK.rtt).
    rtt: Duration,
    /// `true` if anything arrived, or a search was requested, since the last search for losses.
    arrived: bool,
    /// `true` if original data was seen to arrive out of order.
    reordered: bool,
    /// Maximum reordering seen, segments.
    reordering: u64,
    /// Steps by which the reordering window is wider than the first.
    reo_wnd_mult: u64,
    /// Time of the last step.
    widened_at: Time,
    /// Recoveries for which the window stays that wide (RACK.reo_wnd_persist).
    recoveries: u32,
    /// `true` from a D-SACK to the next data that arrives.
    duplicate: bool,
}

impl Rack {
    /// Notes an arrival, given its send time and end. `again` is the minimum RTT if it was
    /// retransmitted, `None` otherwise (RFC 8985 § 6.2, step 2; Linux `tcp_rack_advance`).
    pub fn on_arrival(&mut self, now: Time, sent: (Time, u64), again: Option<Duration>) {
        let rtt = now.since(sent.0);
        if again.is_some_and(|min_rtt| rtt < min_rtt) {
            // An arrival sooner than the minimum RTT is the original.
            return;
        }
        self.arrived = true;
        self.rtt = rtt;
        self.newest = self.newest.max(sent);
    }

    /// RTT of the last arrival.
    pub const fn rtt(&self) -> Duration {
        self.rtt
    }

    /// Notes original data that arrived after data `segments` higher (RFC 8985 § 6.2, step 3).
    pub fn on_reordering(&mut self, segments: u64) {
        self.reordered = true;
        self.reordering = self.reordering.max(segments);
    }

    /// Maximum reordering seen, segments (Linux `tp->reordering`).
    pub const fn reordering(&self) -> u64 {
        self.reordering
    }

    /// Requests a search for losses, even without arrivals.
    pub const fn request_search(&mut self) {
        self.arrived = true;
    }

    /// `true` if anything arrived, or a search was requested, since the last call.
    pub const fn take_arrived(&mut self) -> bool {
        core::mem::replace(&mut self.arrived, false)
    }

    /// Returns the reordering window (RFC 8985 § 6.2, step 4; Linux `tcp_rack_reo_wnd`), given the
    /// minimum RTT and SRTT: at most SRTT, and zero with `zero_window` (in recovery, or once enough
    /// is SACKed) unless reordering was seen.
    pub fn window(&self, zero_window: bool, min_rtt: Duration, srtt: Duration) -> Duration {
        if zero_window && !self.reordered {
            return Duration::ZERO;
        }
        Duration(min_rtt.0 / MIN_RTT_DIVISOR * (1 + self.reo_wnd_mult)).min(srtt)
    }

    /// Notes a D-SACK: retransmitted data had arrived.
    pub const fn on_duplicate(&mut self) {
        self.duplicate = true;
    }

    /// Finishes an ACK that reported arrivals. After a D-SACK and reordering the window widens by a
    /// step, at most once per round trip, for the next recoveries (RFC 8985 § 6.2, step 4; Linux
    /// `tcp_rack_update_reo_wnd`).
    pub fn on_delivery(&mut self, now: Time) {
        let duplicate = core::mem::take(&mut self.duplicate);
        if duplicate && self.reordered && self.newest.0 >= self.widened_at {
            self.reo_wnd_mult = (self.reo_wnd_mult + 1).min(MAX_STEPS - 1);
            self.widened_at = now;
            self.recoveries = RECOVERIES;
        }
    }

    /// Counts the end of a recovery, which shortens the life of a wider window by one recovery. A
    /// `needless` one, undone because D-SACK reported every retransmission, prolongs it by one, up
    /// to `RECOVERIES`.
    pub fn on_recovered(&mut self, needless: bool) {
        if needless {
            self.recoveries = (self.recoveries + 1).min(RECOVERIES);
        } else {
            self.recoveries = self.recoveries.saturating_sub(1);
        }
        if self.recoveries == 0 {
            self.reo_wnd_mult = 0;
        }
    }

    /// Deadline of missing segments, given the reordering window.
    pub fn deadline(&self, window: Duration) -> Deadline {
        Deadline { newest: self.newest, after: self.rtt + window }
    }
}

/// Divisor of the minimum RTT that gives the first reordering window (RFC 8985 § 6.2, step 4).
const MIN_RTT_DIVISOR: u64 = 4;
/// Recoveries for which a wider window lasts (RFC 8985 § 6.2, step 4: RACK.reo_wnd_persist; Linux
/// `TCP_RACK_RECOVERY_THRESH`).
const RECOVERIES: u32 = 16;
/// Maximum window in multiples of the first (Linux `tcp_rack_update_reo_wnd`).
const MAX_STEPS: u64 = 255;

/// State of a tail loss probe.
#[derive(Clone, Copy, Debug, Default)]
pub struct TailLossProbe {
    /// `true` if a probe is to be sent now.
    due: bool,
    /// End of the data whose ACK ends the probe, `None` without one; no other probe is sent before
    /// (TLP.end_seq).
    until: Option<u64>,
    /// `true` if the probe was a retransmission (TLP.is_retrans).
    again: bool,
    /// `true` if a D-SACK reported that the retransmitted data had arrived.
    dsack_seen: bool,
    /// Range and send time of the probe's retransmission, while it is in flight.
    in_flight_probe: Option<(Range, Time)>,
}

impl TailLossProbe {
    /// Processes an expiry of the probe timer. Returns `true` if a probe follows: it is `possible`,
    /// and the outcome of no earlier probe is awaited (§ 7.3).
    pub const fn on_timer(&mut self, possible: bool) -> bool {
        self.due = self.until.is_none() && possible;
        self.due
    }

    /// `true` if a probe is to be sent now.
    pub const fn is_due(&self) -> bool {
        self.due
    }

    /// Takes the due probe: `true` if there is one.
    pub const fn take_due(&mut self) -> bool {
        core::mem::replace(&mut self.due, false)
    }

    /// Notes the probe as sent, with SND.MAX at `high`; `again` is the range that it retransmits
    /// and its time.
    pub const fn on_sent(&mut self, high: u64, again: Option<(Range, Time)>) {
        self.until = Some(high);
        self.again = again.is_some();
        self.in_flight_probe = again;
    }

    /// `true` if the ACK of a probe is awaited.
    pub const fn is_awaited(&self) -> bool {
        self.until.is_some()
    }

    /// `true` if the awaited probe was a retransmission, which may arrive twice.
    pub const fn is_retransmission(&self) -> bool {
        self.until.is_some() && self.again
    }

    /// Ends the wait for the ACK of a probe, and drops one that is due. A probe's retransmission
    /// stays noted while in flight.
    pub fn forget(&mut self) {
        *self = Self { in_flight_probe: self.in_flight_probe, ..Self::default() };
    }

    /// Range and send time of the probe's retransmission, while it is in flight.
    pub const fn in_flight_probe(&self) -> Option<(Range, Time)> {
        self.in_flight_probe
    }

    /// Takes the range in flight that the probe retransmitted, and its time, if it ends at `end`,
    /// where data arrives.
    pub fn take_in_flight_probe(&mut self, end: u64) -> Option<(Range, Time)> {
        self.in_flight_probe.take_if(|(again, _)| again.end == end)
    }

    /// Notes the loss of the data that the probe retransmitted.
    pub const fn lose(&mut self) {
        self.in_flight_probe = None;
    }

    /// Processes a D-SACK of `segments` up to `end`. Returns `true` if it is for the probe.
    pub fn on_dsack(&mut self, end: u64, segments: u64) -> bool {
        let is_it = segments == 1 && self.until == Some(end);
        self.dsack_seen |= is_it;
        is_it
    }

    /// Returns the outcome of the probe once an ACK of all below `una` decides it, `None` until
    /// then: `true` if it repaired a loss (§ 7.4; Linux `tcp_process_tlp_ack`). A `duplicate`, an
    /// ACK that reports nothing new, shows that both transmissions arrived, as D-SACK does.
    pub fn outcome(&mut self, una: u64, duplicate: bool) -> Option<bool> {
        let until = self.until.filter(|&until| una >= until)?;
        let repaired = self.again && !self.dsack_seen && !duplicate;
        if repaired && una == until {
            // One of the two arrived. The next ACK shows if the other did, too.
            return None;
        }
        *self = Self::default();
        Some(repaired)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::{LossRule, Params};
    use crate::sent_segments::Notes;
    use crate::sent_segments::SentSegments;

    const fn ms(ms: u64) -> Time {
        Time(ms * 1_000_000)
    }

    fn sender() -> (Rack, SentSegments) {
        let params = Params::default().with(|p| p.detection.loss_rule = LossRule::Rack);
        (Rack::default(), SentSegments::new(&params, Notes::default()))
    }

    /// Segments of 1000 bytes leave each millisecond, from 0 on.
    fn twenty() -> (Rack, SentSegments) {
        let (rack, mut sent) = sender();
        for n in 0..20 {
            let range = Range { start: n * 1000, end: (n + 1) * 1000 };
            sent.on_sent(range, ms(n), 1000);
        }
        (rack, sent)
    }

    /// Delivers all data below `ack` in order.
    fn in_order(rack: &mut Rack, sent: &mut SentSegments, now: Time, ack: u64) {
        let (_, last) = sent.take_in_order(ack);
        rack.on_arrival(now, (last.unwrap(), ack), None);
    }

    /// By hand: a round trip of 40 ms and a reordering window of 10 ms end at 53 ms for the segment
    /// sent at 3 ms.
    #[test]
    fn what_is_missing_waits_for_the_window() {
        let (mut rack, mut sent) = twenty();
        in_order(&mut rack, &mut sent, ms(42), 3000);
        rack.on_arrival(ms(45), (sent.sent_at(5999).unwrap(), 6000), None);
        let lost = rack.deadline(Duration::from_millis(10));
        assert_eq!(sent.due(ms(52), lost), (6000, 3000));
        assert_eq!(lost.of((sent.sent_at(3999).unwrap(), 4000)), ms(53));
        assert_eq!(sent.due(ms(53), lost), (6000, 4000));
        assert_eq!(sent.due(ms(100), lost), (6000, 6000), "what went later may be on its way");
    }

    #[test]
    fn of_a_burst_what_is_below_an_arrival_went_before_it() {
        let (mut rack, mut sent) = sender();
        for n in 0..4 {
            sent.on_sent(Range { start: n * 1000, end: (n + 1) * 1000 }, ms(0), 1000);
        }
        rack.on_arrival(ms(40), (ms(0), 3000), None);
        assert_eq!(sent.due(ms(40), rack.deadline(Duration::ZERO)), (3000, 3000));
        assert_eq!(rack.deadline(Duration::ZERO).of((ms(0), 4000)), Time::NEVER);
    }

    /// RFC 8985 § 6.2, step 2: the original arrives 5 ms after its retransmission was sent.
    #[test]
    fn what_comes_sooner_than_any_round_trip_after_it_went_again_tells_nothing() {
        let (mut rack, sent) = twenty();
        rack.on_arrival(ms(45), (ms(40), 1000), Some(Duration::from_millis(40)));
        assert!(!rack.take_arrived());
        rack.on_arrival(ms(80), (ms(40), 1000), Some(Duration::from_millis(40)));
        assert!(rack.take_arrived());
        assert_eq!(sent.due(ms(80), rack.deadline(Duration::ZERO)), (20_000, 20_000));
    }

    /// By hand: a step of 10 ms once a round trip, until sixteen recoveries are over.
    #[test]
    fn duplicates_widen_the_window_for_sixteen_recoveries() {
        let (mut rack, _) = twenty();
        let (min_rtt, srtt) = (Duration::from_millis(40), Duration::from_millis(45));
        let window = |rack: &Rack| rack.window(true, min_rtt, srtt);
        rack.on_duplicate();
        rack.on_delivery(ms(50));
        assert_eq!(window(&rack), Duration::ZERO, "nothing came out of order");
        rack.on_reordering(1);
        rack.on_arrival(ms(50), (ms(9), 10_000), None);
        rack.on_duplicate();
        assert_eq!(window(&rack), Duration::from_millis(10), "not before data arrives");
        rack.on_delivery(ms(50));
        rack.on_duplicate();
        rack.on_delivery(ms(51));
        assert_eq!(window(&rack), Duration::from_millis(20), "once a round trip");
        for round in 1..4 {
            rack.on_duplicate();
            rack.on_arrival(ms(100 * round), (ms(100 * round - 41), 20_000), None);
            rack.on_delivery(ms(100 * round));
        }
        assert_eq!(window(&rack), srtt, "and no more than the smoothed round trip");
        (0..15).for_each(|_| rack.on_recovered(false));
        assert_eq!(window(&rack), srtt);
        rack.on_recovered(true);
        rack.on_recovered(false);
        assert_eq!(window(&rack), srtt, "one that was needless does not count");
        rack.on_recovered(false);
        assert_eq!(window(&rack), Duration::from_millis(10));
    }

    #[test]
    fn without_reordering_there_is_a_window_until_enough_arrived() {
        let (mut rack, _) = twenty();
        let (min_rtt, srtt) = (Duration::from_millis(40), Duration::from_millis(60));
        assert_eq!(rack.window(false, min_rtt, srtt), Duration::from_millis(10));
        assert_eq!(rack.window(true, min_rtt, srtt), Duration::ZERO);
        rack.on_reordering(1);
        assert_eq!(rack.window(true, min_rtt, srtt), Duration::from_millis(10));
    }

    proptest::proptest! {
        /// Checks the edge against RFC 8985 § 6.2, step 5, for each segment: it is lost if it was
        /// sent before the newest arrival, or at the same time and lies below it, and its deadline
        /// has passed.
        #[test]
        fn the_edge_is_what_each_segment_by_itself_says(
            gaps in proptest::collection::vec(0u64..4, 1..40),
            arrivals in proptest::collection::vec((0usize..40, 1u64..60), 1..8),
            (window, more) in (0u64..20, 0u64..40),
        ) {
            let (mut rack, mut sent) = sender();
            let mut sent_at = Vec::new();
            let mut at = 0;
            for (n, gap) in gaps.iter().enumerate() {
                at += gap;
                sent.on_sent(Range { start: n as u64, end: n as u64 + 1 }, ms(at), 1);
                sent_at.push(ms(at));
            }
            let mut now = ms(at);
            let (mut newest, mut rtt) = ((Time::ZERO, 0), Duration::ZERO);
            for (n, later) in arrivals {
                let n = n % sent_at.len();
                now += Duration::from_millis(later);
                rack.on_arrival(now, (sent.sent_at(n as u64).unwrap(), n as u64 + 1), None);
                rtt = now.since(sent_at[n]);
                if (sent_at[n], n as u64 + 1) > newest {
                    newest = (sent_at[n], n as u64 + 1);
                }
            }
            now += Duration::from_millis(more);
            let window = Duration::from_millis(window);
            let (_, edge) = sent.due(now, rack.deadline(window));
            for (n, &sent) in sent_at.iter().enumerate() {
                let end = n as u64 + 1;
                let overtaken = sent < newest.0 || sent == newest.0 && end < newest.1;
                let lost = overtaken && now.since(sent) >= rtt + window;
                // The newest arrival itself has arrived.
                if (sent, end) != newest {
                    proptest::prop_assert_eq!(lost, end <= edge, "{} {:?} {}", n, newest, edge);
                }
            }
        }
    }

    fn repeated() -> TailLossProbe {
        let mut probe = TailLossProbe::default();
        assert!(probe.on_timer(true) && probe.take_due() && !probe.is_due());
        probe.on_sent(5000, Some((Range { start: 4000, end: 5000 }, Time(7))));
        probe
    }

    /// RFC 8985 § 7.4.2: an ACK above TLP.end_seq without a D-SACK.
    #[test]
    fn a_probe_repaired_a_loss_unless_anything_tells_that_both_arrived() {
        let mut probe = repeated();
        assert_eq!(probe.outcome(4999, false), None);
        assert_eq!(probe.outcome(5000, false), None, "one of the two arrived");
        assert_eq!(probe.outcome(6000, false), Some(true));
        assert_eq!(probe.outcome(7000, false), None, "it is over");
        assert_eq!(repeated().outcome(5000, true), Some(false));
        let mut duplicated = repeated();
        assert!(!duplicated.on_dsack(5000, 2) && duplicated.on_dsack(5000, 1));
        assert_eq!(duplicated.outcome(5000, false), Some(false));
    }

    #[test]
    fn no_other_probe_goes_until_the_last_is_acknowledged() {
        let mut probe = repeated();
        assert!(!probe.on_timer(true));
        probe.forget();
        assert!(probe.on_timer(true));
        assert_eq!(probe.take_in_flight_probe(4000), None);
        assert_eq!(probe.take_in_flight_probe(5000).map(|(_, at)| at), Some(Time(7)));
        assert_eq!(probe.in_flight_probe(), None);
    }
}
