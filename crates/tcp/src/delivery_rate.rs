//! Delivery rate: draft-cheng-iccrg-delivery-rate-estimation-00 (sections and names in capitals are
//! its), Linux `tcp_rate.c`.

use cwnd_cc::RateSample;
use cwnd_quantity::{Duration, Time};

use crate::sent_log::SentLog;

/// A connection's notes.
///
/// Cost: a segment that goes or is acknowledged takes O(1), one that goes again or is SACKed
/// amortised O(log n) in outstanding segments ([`SentLog`]).
#[derive(Clone, Debug, Default)]
pub struct Rates {
    notes: SentLog<Note>,
    /// C.delivered, C.delivered_time and C.first_sent_time.
    delivered: u64,
    delivered_at: Time,
    first_sent: Time,
    /// C.app_limited: until so much is delivered, what goes is limited by the application; zero is
    /// not at all.
    app_limited: u64,
    /// The newest of the segments that were reported since the last sample, with its end.
    newest: Option<(Note, u64)>,
    /// The least round trip, by these notes.
    least: Option<Duration>,
}

/// What is remembered of a segment (§ 3.1.2), of the last time that it went.
#[derive(Clone, Copy, Debug)]
struct Note {
    at: Time,
    delivered: u64,
    delivered_at: Time,
    first_sent: Time,
    app_limited: bool,
    again: bool,
}

impl Rates {
    /// A segment goes (§ 3.2), when so much was delivered; `first` if nothing was outstanding,
    /// which says that the application had nothing to send.
    pub fn on_sent(&mut self, now: Time, seq: u64, end: u64, delivered: u64, first: bool) {
        if first {
            self.first_sent = now;
            self.delivered_at = now;
            self.app_limited = delivered.max(1);
        }
        let note = Note {
            at: now,
            delivered,
            delivered_at: self.delivered_at,
            first_sent: self.first_sent,
            app_limited: self.app_limited > 0,
            again: false,
        };
        let noted = self.notes.change(seq, end, |sent, sacked| {
            if !sacked {
                *sent = Note { again: true, ..note };
            }
        });
        if !noted {
            self.notes.push(end, note);
        }
    }

    /// A SACK block reports these bytes, some of them perhaps again; of all blocks of the ACK so
    /// many are new. How many are left.
    pub fn on_sacked(&mut self, seq: u64, end: u64, new: u64) -> u64 {
        let newest = &mut self.newest;
        self.notes.report(seq, end, new, |end, sent| arrived(newest, sent, end))
    }

    /// The rate sample (§ 3.3) of an ACK that acknowledges all below `ack`, once `delivered` bytes
    /// are;
    /// `idle` if there is nothing more to send.
    pub fn on_ack(
        &mut self,
        now: Time,
        ack: u64,
        delivered: u64,
        in_flight: u64,
        idle: bool,
    ) -> RateSample {
        while let Some((end, sent, sacked)) = self.notes.pop_acknowledged(ack) {
            if !sacked {
                arrived(&mut self.newest, sent, end);
            }
        }
        // What the receiver throws away again stays delivered (RFC 2018 § 8).
        let total = delivered.max(self.delivered);
        let newly = total - self.delivered;
        if newly > 0 {
            (self.delivered, self.delivered_at) = (total, now);
        }
        let mut sample = RateSample { newly, total, in_flight, ..RateSample::default() };
        if let Some((sent, _)) = self.newest.take() {
            self.first_sent = sent.at;
            sample.rtt = (!sent.again).then(|| now.since(sent.at));
            self.least = sample.rtt.into_iter().chain(self.least).min();
            // The lower of the rates of sending and of ACKs: neither bursts nor ACKs that come
            // together look fast.
            let took = sent.at.since(sent.first_sent).max(now.since(sent.delivered_at));
            let plausible = took > Duration::ZERO && self.least.is_none_or(|least| took >= least);
            sample.prior = Some(sent.delivered);
            sample.interval = plausible.then_some(took);
            sample.app_limited = sent.app_limited;
        }
        // § 3.4: the bubble is over once what was in flight has left.
        if self.delivered > self.app_limited {
            self.app_limited = 0;
        }
        if idle {
            self.app_limited = (total + in_flight).max(1);
        }
        sample
    }
}

/// Of the segments that an ACK reports the one counts that went last (`tcp_rate_skb_delivered`).
fn arrived(newest: &mut Option<(Note, u64)>, sent: Note, end: u64) {
    if newest.is_none_or(|(newest, last)| (newest.at, last) < (sent.at, end)) {
        *newest = Some((sent, end));
    }
}
