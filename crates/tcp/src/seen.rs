//! Which segments give the round-trip times that a controller sees (McCullagh 2008, chapter 5): echoed timestamps tell when the oldest
//! segment was sent that an ACK is for, and so how long the receiver held the ACK back; the sender's own notes tell of each segment.

use cwnd_quantity::Duration;
use cwnd_schema::{Choice, Schema};

/// What gives the round-trip times that a controller sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum RttFrom {
    /// What sets the retransmission timer: echoed timestamps, those of the oldest segment
    /// acknowledged (RFC 7323 § 4.3); without `timestamps` one segment a round trip.
    #[name("timer")]
    Timer,
    /// The sender's own notes: the oldest segment acknowledged (Linux 2.6.22 and 2.6.23).
    #[name("oldest")]
    Oldest,
    /// The sender's own notes: the newest segment acknowledged, which let the ACK go (Linux since
    /// 2.6.24).
    #[name("newest")]
    Newest,
    /// The same, or of an ACK with SACK blocks the newest segment that they newly report (Linux
    /// today).
    #[name("sack")]
    Sack,
    /// What data took one way, as its receiver tells (`echo = "delay"`), above the least of that,
    /// and the least round trip: queues on the way of ACKs are not seen.
    #[name("one-way")]
    OneWay,
}

/// How often.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum RttEvery {
    /// With each ACK that gives one.
    #[name("ack")]
    Ack,
    /// Once a window: until all is acknowledged that was outstanding at the last sample there is no
    /// other (Jacobson 1988).
    #[name("window")]
    Window,
}

/// What a controller sees of the round-trip time. The timer has its samples as ever.
#[derive(Clone, Debug, PartialEq, Schema)]
pub struct Params {
    /// What gives the round-trip times that the controller sees: that of an ACK, the newest and the
    /// least. Its own notes have none of what was sent again (Karn & Partridge 1987).
    #[default(
        RttFrom::Timer,
        "RFC 7323 § 4.3; McCullagh 2008 § 5.1, 5.2: Linux 2.6.22 and 2.6.24; Linux 6.18 \
        (tcp_clean_rtx_queue); RFC 6817 § 2.4 for one way"
    )]
    pub rtt_from: RttFrom,
    /// Resolution of the clock of the sender's own notes; timestamps have `clock`.
    #[default(
        Duration::from_micros(1),
        "Linux since 2.6.22: ktime; before it ticks of 1 to 10 ms"
    )]
    #[bounds(from Duration(1), up_to Duration::from_secs(1))]
    pub rtt_clock: Duration,
    /// How often the controller sees one.
    #[default(RttEvery::Ack, "RFC 7323 § 4.1: with each ACK")]
    pub rtt_every: RttEvery,
    /// Whether an ACK of one segment alone gives one. Where ACKs are delayed (`ack_every` above 1)
    /// the timer of delayed ACKs let most of these go. With `ack_every = 1` they count in any case.
    #[default(
        true,
        "McCullagh 2008 § 5.2 ignores them; Linux leaves it to controllers (pkts_acked)"
    )]
    pub rtt_lone_acks: bool,
    /// Whether results have the queueing delay as the sender saw it and as it was: columns
    /// `qdelay_seen_us` and `qdelay_true_us` of flows.
    #[default(false, "McCullagh 2008 § 5.2 compares them")]
    pub note_delays: bool,
}

impl Params {
    /// `true` if no sample has in it for how long the receiver held an ACK back.
    pub(crate) const fn is_prompt(&self) -> bool {
        let newest = matches!(self.rtt_from, RttFrom::Newest | RttFrom::Sack);
        newest && !self.rtt_lone_acks || matches!(self.rtt_from, RttFrom::OneWay)
    }
}
