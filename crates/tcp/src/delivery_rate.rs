//! Delivery rate samples (draft-cheng-iccrg-delivery-rate-estimation-00, which has the sections and
//! the names with `C.`; Linux `tcp_rate.c`).

use cwnd_cc::RateSample;
use cwnd_quantity::{Duration, Time};

/// Delivery rate state of a connection; each outstanding segment has a [`SendState`].
///
/// Cost: O(1).
#[derive(Clone, Debug, Default)]
pub struct DeliveryRate {
    /// C.delivered, C.delivered_time and C.first_sent_time.
    delivered: u64,
    delivered_at: Time,
    first_sent: Time,
    /// C.app_limited: data sent before so much is delivered is application-limited; zero if none
    /// is.
    app_limited: u64,
    /// Minimum RTT of segments sent once.
    min_rtt: Option<Duration>,
}

/// State at the last transmission of a segment (§ 3.1.2).
#[derive(Clone, Copy, Debug)]
pub struct SendState {
    pub at: Time,
    delivered: u64,
    delivered_at: Time,
    first_sent: Time,
    app_limited: bool,
    /// `true` if the segment was retransmitted.
    retransmitted: bool,
}

impl SendState {
    /// Returns this state for a retransmission, which gives no RTT.
    pub const fn repeated(self) -> Self {
        Self { retransmitted: true, ..self }
    }
}

/// Segment sent last of those that arrived since the last sample, with its end
/// (`tcp_rate_skb_delivered`).
#[derive(Clone, Copy, Debug, Default)]
pub struct Newest(Option<(SendState, u64)>);

impl Newest {
    /// Adds a segment that ends at `end` and arrived.
    pub fn add(&mut self, sent: SendState, end: u64) {
        if self.0.is_none_or(|(newest, last)| (newest.at, last) < (sent.at, end)) {
            self.0 = Some((sent, end));
        }
    }
}

impl DeliveryRate {
    /// Returns the state of a segment that is sent (§ 3.2), with `delivered` bytes so far; `first`
    /// if it is new data and nothing was outstanding, which counts as application-limited.
    pub fn on_sent(&mut self, now: Time, delivered: u64, first: bool) -> SendState {
        if first {
            self.first_sent = now;
            self.delivered_at = now;
            self.app_limited = delivered.max(1);
        }
        SendState {
            at: now,
            delivered,
            delivered_at: self.delivered_at,
            first_sent: self.first_sent,
            app_limited: self.app_limited > 0,
            retransmitted: false,
        }
    }

    /// Returns the rate sample (§ 3.3) of an ACK, with `delivered` bytes so far; `newest` of the
    /// segments that it reports, `idle` if no data waits although the window has room. Without a
    /// reported segment the sample has no rate.
    pub fn on_ack(
        &mut self,
        now: Time,
        newest: Newest,
        delivered: u64,
        in_flight: u64,
        idle: bool,
    ) -> RateSample {
        // Data on which the receiver reneges stays delivered (RFC 2018 § 8).
        let total = delivered.max(self.delivered);
        let newly = total - self.delivered;
        if newly > 0 {
            (self.delivered, self.delivered_at) = (total, now);
        }
        let mut sample = RateSample {
            newly_delivered: newly,
            total_delivered: total,
            in_flight,
            ..RateSample::default()
        };
        if let Newest(Some((sent, _))) = newest {
            self.first_sent = sent.at;
            sample.rtt = (!sent.retransmitted).then(|| now.since(sent.at));
            self.min_rtt = sample.rtt.into_iter().chain(self.min_rtt).min();
            // The lower of the send rate and the ACK rate: neither bursts nor compressed ACKs look
            // fast.
            let took = sent.at.since(sent.first_sent).max(now.since(sent.delivered_at));
            let plausible =
                took > Duration::ZERO && self.min_rtt.is_none_or(|min_rtt| took >= min_rtt);
            sample.prior_delivered = Some(sent.delivered);
            sample.interval = plausible.then_some(took);
            sample.app_limited = sent.app_limited;
        }
        // § 3.4: an application-limited phase ends once the data in flight at its start is
        // delivered.
        if self.delivered > self.app_limited {
            self.app_limited = 0;
        }
        if idle {
            self.app_limited = (total + in_flight).max(1);
        }
        sample
    }
}
