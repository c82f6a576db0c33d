//! Misbehaving receivers, which misreport to get more than their share (McCullagh 2008 § 5.1;
//! Savage, Cardwell, Wetherall, Anderson 1999).

use std::collections::VecDeque;

use cwnd_packet::Echo;
use cwnd_quantity::{Duration, Time};
use cwnd_schema::{Schema, Share};

use crate::segment::{Body, SackBlocks, Segment};

/// Misbehaviour of a receiver; none by default.
#[derive(Clone, Debug, PartialEq, Schema)]
pub struct Params {
    /// Subtracted from the timestamps that the receiver echoes: round trips seem longer by that.
    /// Serves experiments on receivers that pretend a longer path (delay-based AIMD).
    #[default(
        Duration::ZERO,
        "McCullagh 2008 § 5.1.1: 100 ms; RFC 7323 § 4.3 echoes them as they are"
    )]
    #[bounds(up_to Duration::from_secs(10))]
    pub cheat_timestamps: Duration,
    /// The part of the queueing delay of data that the receiver hides, by adding it to the
    /// timestamps that it echoes. Serves experiments on receivers that hide the queue from
    /// delay-based control.
    #[default(Share(0.0), "McCullagh 2008 § 5.1.2; RFC 7323 § 4.3 echoes them as they are")]
    #[was("cheat_hides")]
    pub cheat_hidden_delay: Share,
    /// Number of pieces into which the receiver divides each ACK, at most one per byte: ACK
    /// division. Serves experiments on attacks by ACK division (Savage et al. 1999).
    #[default(1, "Savage et al. 1999 § 3.1; RFC 5681 § 4.2: one ACK for a segment at most")]
    #[bounds(from 1, up_to 1000; "an ACK is at least one")]
    #[was("cheat_divides")]
    pub cheat_ack_division: u32,
    /// Time by which the receiver acknowledges data before it arrives (optimistic ACKs). It
    /// estimates the data on its way from what arrived in the last such time. It conceals losses; a
    /// transfer with any loss is never whole. Serves experiments on attacks by optimistic ACKs
    /// (Savage et al. 1999).
    #[default(
        Duration::ZERO,
        "Savage et al. 1999 § 3.3; RFC 9293 § 3.10.7.4 acknowledges what arrived"
    )]
    #[bounds(up_to Duration::from_secs(10))]
    #[was("cheat_ahead")]
    pub cheat_optimistic_acks: Duration,
    /// Share by which ACKs understate the load, as an estimate, a level or a code point; at one
    /// half, BMCC's estimate never shows an overload. Serves experiments on receivers that
    /// understate the load to BMCC, VCP and MLCP.
    #[default(Share(0.0), "none; BMCC § II-B tells f̂ as it is")]
    pub cheat_load: Share,
}

/// State of a misbehaving receiver.
#[derive(Clone, Debug)]
pub(super) struct Misbehaviour {
    timestamps: Duration,
    hidden_share: f64,
    load: f64,
    pieces_per_ack: u64,
    lead: Duration,
    /// Time of the last arrival.
    newest: Time,
    /// Queueing delay of the last segment: its one-way delay less the least one.
    queueing_delay: Duration,
    /// Least one-way delay of any segment.
    min_delay: Duration,
    /// Arrival times and bytes of data that arrived within the last `lead` (optimistic ACKs only).
    recent: VecDeque<(Time, u64)>,
    recent_bytes: u64,
    /// The highest number that an optimistic ACK acknowledged since the estimate began.
    highest_claimed: u64,
    /// Pieces of a divided ACK that are still to be sent.
    pieces_due: VecDeque<Segment>,
}

impl Misbehaviour {
    /// Creates the state for these parameters; `None` if the receiver is honest.
    pub fn new(params: &Params) -> Option<Self> {
        let honest = *params == Params::default();
        (!honest).then(|| Self {
            timestamps: params.cheat_timestamps,
            hidden_share: params.cheat_hidden_delay.0,
            load: params.cheat_load.0,
            pieces_per_ack: u64::from(params.cheat_ack_division),
            lead: params.cheat_optimistic_acks,
            newest: Time::ZERO,
            queueing_delay: Duration::ZERO,
            min_delay: Duration::MAX,
            recent: VecDeque::new(),
            recent_bytes: 0,
            highest_claimed: 0,
            pieces_due: VecDeque::new(),
        })
    }

    /// `true` if ACKs are optimistic, so that holes must not be reported.
    pub const fn conceals(&self) -> bool {
        self.lead.0 > 0
    }

    /// Measures the one-way delay of data or a SYN, and counts its bytes for optimistic ACKs; `new`
    /// if it ends above all received in order.
    pub fn on_arrival(&mut self, now: Time, segment: &Segment, new: bool) {
        let took = now.since(segment.ts);
        self.min_delay = self.min_delay.min(took);
        self.queueing_delay = Duration(took.0 - self.min_delay.0);
        self.newest = now;
        if !self.conceals() {
            return;
        }
        if !new {
            // A retransmission of acknowledged data means that the sender's timer expired: the
            // estimate begins anew.
            (self.recent_bytes, self.highest_claimed) = (0, 0);
            self.recent.clear();
            return;
        }
        self.recent.push_back((now, u64::from(segment.len)));
        self.recent_bytes += u64::from(segment.len);
        while let Some(&(at, bytes)) =
            self.recent.front().filter(|(at, _)| now.since(*at) >= self.lead)
        {
            debug_assert!(at <= now, "time goes forward");
            self.recent_bytes -= bytes;
            self.recent.pop_front();
        }
    }

    /// Rewrites the timestamp, load and acknowledgement number of an ACK, and drops the SACK blocks
    /// of an optimistic one.
    pub fn forge(&mut self, ack: &mut Segment) {
        let hidden = Duration((self.queueing_delay.0 as f64 * self.hidden_share) as u64);
        let ts = Time(ack.ts.0.saturating_sub(self.timestamps.0)) + hidden;
        // The echo is never later than the last arrival.
        ack.ts = ts.min(self.newest.max(ack.ts));
        if let Body::Ack { echo: Echo::Load { value, .. }, .. } = &mut ack.body {
            *value = (f64::from(*value) * (1.0 - self.load)) as u16;
        }
        if self.conceals() && self.recent_bytes > 0 {
            self.highest_claimed = self.highest_claimed.max(ack.seq + self.recent_bytes);
            ack.seq = self.highest_claimed;
            if let Body::Ack { sack, .. } = &mut ack.body {
                *sack = SackBlocks::default();
            }
        }
    }

    /// Divides an ACK of the bytes above `from` into pieces, which [`Misbehaviour::next_piece`]
    /// returns; `true` if there are at least two.
    pub fn divide(&mut self, from: u64, ack: &Segment) -> bool {
        let bytes = ack.seq.saturating_sub(from);
        let pieces = self.pieces_per_ack.min(bytes);
        if pieces < 2 {
            return false;
        }
        for n in 1..pieces {
            let mut piece = Segment { seq: from + bytes * n / pieces, ..*ack };
            // Echo and SACK blocks are reported once, by the last piece.
            if let Body::Ack { echo, sack, .. } = &mut piece.body {
                (*echo, *sack) = (Echo::None, SackBlocks::default());
            }
            self.pieces_due.push_back(piece);
        }
        self.pieces_due.push_back(*ack);
        true
    }

    /// Returns the next piece of a divided ACK, and `true` if there are more.
    pub fn next_piece(&mut self) -> Option<(Segment, bool)> {
        let ack = self.pieces_due.pop_front()?;
        Some((ack, !self.pieces_due.is_empty()))
    }
}
