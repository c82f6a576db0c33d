//! Retransmission timer and its backoff (RFC 6298).

use cwnd_cc::Backoff;
use cwnd_quantity::Duration;
use cwnd_schema::{Choice, Schema};

/// Event that ends the backoff of the retransmission timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum BackoffUntil {
    /// A valid RTT sample: of a segment that was sent once, or by an echoed timestamp (Karn &
    /// Partridge 1991; RFC 6298 § 5).
    #[name("sample")]
    Sample,
    /// The acknowledgement of a segment that was sent once, whatever timestamps say.
    #[name("sent-once")]
    SentOnce,
    /// Any acknowledgement of new data.
    #[name("ack")]
    Ack,
}

/// Retransmission timer and its backoff.
#[derive(Clone, Debug, PartialEq, Schema)]
#[idle(
    [rto_backoff_rounds, rto_thin_linear, rto_backoff_until, syn_backoff_after, syn_backoff_rounds],
    self.rto_backoff == Backoff::Off,
    "with `rto_backoff = \"off\"`"
)]
pub struct Params {
    /// Lower bound of the retransmission timeout. Serves experiments on timeouts on short paths,
    /// and TCP without backoff (TCP*(n)).
    #[default(Duration::from_secs(1), "RFC 6298 § 2.4")]
    pub rto_min: Duration,
    /// Retransmission timeout before the first RTT sample. Serves experiments on timeouts of first
    /// segments, and TCP without backoff (TCP*(n)).
    #[default(Duration::from_secs(1), "RFC 6298 § 2.1")]
    pub rto_initial: Duration,
    /// Upper bound of the retransmission timeout. Serves experiments on long outages, and TCP
    /// without backoff (TCP*(n)).
    #[default(Duration::from_secs(60), "RFC 6298 § 2.5: at least 60 s; Linux tcp_rto_max_ms")]
    pub rto_max: Duration,
    /// Clock granularity G of the retransmission timer. Serves experiments on coarse clocks, and
    /// comparisons with ns-2.
    #[default(Duration::from_millis(1), "RFC 6298 § 4: finer is better")]
    pub rto_granularity: Duration,
    /// The timeout is SRTT plus at least this. Serves experiments on spurious timeouts over paths
    /// of little variation (TCP*(n)).
    #[default(Duration::ZERO, "RFC 6298 § 2.3: the clock granularity")]
    pub rto_variation_min: Duration,
    /// Added to the timeout, and not backed off with it; a first timeout without an RTT sample,
    /// such as that of a SYN, lacks it. Serves experiments on the margin of BSD stacks above a
    /// timeout that is backed off.
    #[default(Duration::ZERO, "RFC 6298 has none; FreeBSD 200 ms (tcp_timer.h, TCPT_RANGESET)")]
    pub rto_slop: Duration,
    /// Growth of the timeout with each consecutive expiry. Serves experiments on TCP without
    /// backoff, or with less of it (TCP*(n)).
    #[default(Backoff::Exponential, "RFC 6298 § 5.5")]
    pub rto_backoff: Backoff,
    /// With `rto_backoff = "after"` and `"bounded"`: the n of TCP*(n), expiries in a row before the
    /// timeout doubles (bounded: beyond 1 s). Serves experiments on the n of TCP*(n), up to TCP
    /// without backoff.
    #[default(3, "Mondal & Kuzmanovic 2008 § 3.1")]
    #[idle(
        !matches!(self.rto_backoff, Backoff::After | Backoff::Bounded),
        "without `rto_backoff = \"after\"` or `\"bounded\"`"
    )]
    pub rto_backoff_after: u32,
    /// Expiries in a row after which the timeout grows no more; none is no bound but `rto_max`.
    /// Serves experiments on TCP*(n) on stacks whose backoff ends early.
    #[default(
        None,
        "RFC 6298 has none; Mondal & Kuzmanovic 2008, footnote 5: 6, so that at seven in a row it \
        stays; FreeBSD 9 (tcp_backoff)"
    )]
    pub rto_backoff_rounds: Option<u32>,
    /// Event that ends the backoff. Serves experiments on the end of the backoff, and comparisons
    /// with ns-2 and ns-3.
    #[default(
        BackoffUntil::Sample,
        "RFC 6298 § 5: a new measurement; so do Linux and FreeBSD. ns-2: sent-once (tcp.cc, \
        ts_resetRTO_)"
    )]
    pub rto_backoff_until: BackoffUntil,
    /// `true` if the timeout stays constant for up to six consecutive expiries while fewer than
    /// four segments are outstanding. Serves experiments on thin streams, such as games and calls,
    /// under loss.
    #[default(false, "Linux tcp_thin_linear_timeouts, off by default")]
    pub rto_thin_linear: bool,
    /// The n of TCP*(n) for SYNs, whose timeout otherwise backs off as that of data; nothing with
    /// `rto_backoff = "off"`. Serves experiments on openings of connections without backoff
    /// (TCP*(n)).
    #[default(
        None,
        "none in the RFCs; FreeBSD 6.1: 4 (tcp_syn_backoff), Linux 4 since 6.5 \
        (tcp_syn_linear_timeouts)"
    )]
    pub syn_backoff_after: Option<u32>,
    /// With `syn_backoff_after`: expiries in a row of a SYN's timer after which its timeout grows
    /// no more. Serves experiments on openings of connections on BSD stacks (TCP*(n)).
    #[default(None, "FreeBSD 6.1: 10 (tcp_syn_backoff)")]
    pub syn_backoff_rounds: Option<u32>,
    /// Timeout with which data begins after a SYN timed out, at least `rto_initial`, until there is
    /// an RTT sample; an echoed timestamp gives one. Serves experiments on short transfers after a
    /// lost SYN.
    #[default(Duration::from_secs(3), "RFC 6298 § 5.7; Linux TCP_TIMEOUT_FALLBACK")]
    pub rto_after_syn_loss: Duration,
}
