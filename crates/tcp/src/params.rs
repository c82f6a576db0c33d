use cwnd_cc::Backoff;
use cwnd_quantity::{Bytes, Duration};
use cwnd_schema::Schema;

mod check;
mod choices;
mod derived;
mod parts;

use crate::echo::EchoKind;
use crate::misbehaving_receiver;
use crate::probing;
use crate::prr::PrrRule;
use crate::quick_ack::AckPolicy;
pub use crate::rtt::RttArithmetic;
use crate::seen;
use crate::signed;
use crate::spurious;
use crate::squid;
use crate::tso::Params as TsoParams;
use crate::validation;
pub use crate::validation::GrowBy;
pub use choices::{
    BackoffUntil, EchoAtOne, FlightSize, LossRule, PipeRule, QuenchAnswer, QuenchCheck, Recovery,
};
pub use parts::{PARTS, Part};

/// Parameters of both ends of a connection, apart from the congestion controller.
#[derive(Clone, Debug, PartialEq, Schema)]
#[schema(presets, check = Self::consistent)]
#[idle(
    [pipe_rule, doubtful_holes, lost_retransmissions, sack_in_old_acks, reneging_hurries, dsack],
    self.recovery != Recovery::Sack,
    "without `recovery = \"sack\"`"
)]
#[idle(
    [tail_loss_probe, whole_segments, recovers_in_loss, rtt_from_notes],
    self.recovery != Recovery::Sack,
    "without `recovery = \"sack\"`"
)]
#[idle(
    [tail_loss_probe, whole_segments, recovers_in_loss, rtt_from_notes],
    self.loss_rule != LossRule::Rack,
    "without `loss_rule = \"rack\"`"
)]
#[idle([timeout_eifel], !self.timestamps, "without `timestamps`")]
#[idle([on_forged], self.signature.timestamp_signature == 0, "without `timestamp_signature`")]
#[idle([tso_defer, tso_window_part, tso_sizing], self.tso.tso.is_none(), "without `tso`")]
#[idle(
    [obey_ece, ecn_retransmissions, ecn_in_loss, ecn_after_timeout, ecn_in_recovery, ecn_at_one],
    !self.ecn,
    "without `ecn`"
)]
#[idle(
    [ecn_in_loss, ecn_after_timeout, ecn_in_recovery, ecn_at_one],
    !self.obey_ece,
    "without `obey_ece`"
)]
#[idle([ecn_in_loss], !self.ecn_retransmissions, "without `ecn_retransmissions`")]
#[idle(
    [squid_step, squid_least, squid_decrease, squid_event, squid_period],
    !self.obey_quench || self.quench_answer != QuenchAnswer::Pause,
    "without `quench_answer = \"pause\"`"
)]
#[idle(
    [rto_backoff_rounds, rto_thin_linear, rto_backoff_until, syn_backoff_after, syn_backoff_rounds],
    self.rto_backoff == Backoff::Off,
    "with `rto_backoff = \"off\"`"
)]
#[idle(
    [
        syn_retries, ssthresh_after_syn_loss, syn_backoff_after, syn_backoff_rounds,
        rto_after_syn_loss
    ],
    !self.handshake,
    "without `handshake`"
)]
#[idle([syn_backoff_rounds], self.syn_backoff_after.is_none(), "without `syn_backoff_after`")]
#[idle([restart_window], !self.idle_restart, "without `idle_restart`")]
pub struct Params {
    /// Payload of a full segment. Serves experiments on closed forms and setups of papers in
    /// packets of 1000 B.
    #[default(Bytes(1448), "1500 B Ethernet − 20 B IPv4 − 20 B TCP − 12 B timestamps")]
    #[bounds(from Bytes(1), up_to Bytes(65_535); "a segment carries some payload")]
    pub mss: Bytes,
    /// Headers added to each data segment on the wire. Serves experiments on setups of papers whose
    /// packet sizes include the headers, and explicit feedback, which adds to them.
    #[default(Bytes(52), "IPv4 20 B + TCP 20 B + timestamps 12 B")]
    #[bounds(up_to Bytes(1_000))]
    pub header: Bytes,
    /// Wire size of a segment without payload. Serves experiments on setups of papers, and
    /// congestion on the path of ACKs.
    #[default(Bytes(52), "IPv4 20 B + TCP 20 B + timestamps 12 B")]
    #[bounds(from Bytes(1), up_to Bytes(65_535))]
    pub ack_size: Bytes,
    /// First congestion window, in segments. Serves experiments on short transfers, and setups of
    /// papers from before RFC 6928.
    #[default(10, "RFC 6928 § 2")]
    #[bounds(from 1; "with a window of 0 segments nothing is ever sent")]
    pub initial_window: u32,
    /// Slow-start threshold at the start; none is as large as can be. Serves experiments on saw
    /// teeth and closed forms, which begin without slow start.
    #[default(None, "RFC 5681 § 3.1: arbitrarily high")]
    pub initial_ssthresh: Option<Bytes>,
    /// Slow-start threshold of a connection whose SYN was lost; none is that of any other. Its
    /// initial window is one segment. Serves experiments on short transfers beside those of ns-2.
    #[default(
        None,
        "RFC 5681 § 3.1 has nothing of it; ns-2's timeout() leaves two segments, whichever packet \
        it is"
    )]
    pub ssthresh_after_syn_loss: Option<Bytes>,
    /// The congestion window never grows past this; none is no bound. Serves comparisons with ns-2
    /// and XCP, and flows that a window limits (TCP*(n)).
    #[default(None, "none in the RFCs; ns-2's window_")]
    #[bounds(from Bytes(1))]
    pub max_window: Option<Bytes>,
    /// Receive window that the receiver advertises. Serves experiments on flows that their receiver
    /// limits, as in data centres and long windows.
    #[default(Bytes(1 << 30), "large enough not to limit (RFC 7323 allows 1 GiB)")]
    #[bounds(from Bytes(1), up_to Bytes(0xffff_ffff))]
    pub receive_window: Bytes,
    /// `true` if a connection begins with SYN and SYN-ACK; off, data flows at once. Serves
    /// experiments on closed forms and packet counts, which begin with data.
    #[default(true, "RFC 9293 § 3.5")]
    pub handshake: bool,
    /// Retransmissions of a SYN before the sender gives up the connection. Serves experiments on
    /// users without backoff, of whom none gives up.
    #[default(6, "Linux tcp_syn_retries")]
    pub syn_retries: u32,
    /// Consecutive expiries of the timer that retransmit data before the sender gives up the
    /// connection, R2 as a count; none is never. Serves experiments on users without backoff, of
    /// whom none gives up.
    #[default(None, "RFC 9293 § 3.8.3, R2; FreeBSD 12 (TCP_MAXRXTSHIFT)")]
    pub data_retries: Option<u32>,
    /// For how long in a row the timer sends data again before the connection is given up, R2 as a
    /// time; none is for ever. Serves experiments on long outages: how long a connection outlives
    /// them.
    #[default(None, "RFC 9293 § 3.8.3, R2: at least 100 s; Linux 924.6 s (tcp_retries2 = 15)")]
    #[bounds(from Duration(1))]
    pub data_retry_time: Option<Duration>,
    /// Loss recovery algorithm. Serves comparisons of Tahoe, Reno, NewReno and SACK, such as that
    /// of Fall & Floyd.
    #[default(Recovery::Sack, "RFC 6675")]
    pub recovery: Recovery,
    /// `true` if proportional rate reduction (RFC 6937) spreads the reduction over the recovery;
    /// needs `recovery` sack or newreno. Serves experiments on reductions at once and over a round
    /// trip, as of delay-based AIMD and ABE.
    #[default(false, "RFC 6937")]
    pub prr: bool,
    /// Specification that proportional rate reduction follows. Serves comparisons with ns-2's
    /// TCP-Linux, which halves the rate.
    #[default(PrrRule::Rfc6937, "RFC 6937; Linux has what became RFC 9937")]
    #[idle(!self.prr, "without `prr`")]
    pub prr_rule: PrrRule,
    /// Proportional rate reduction for ECN-echoes, too: it spreads the reduction over a round trip,
    /// as Linux does (`TCP_CA_CWR`). As there, a reduction that a controller makes by itself
    /// (quench, delay, load) then ends no recovery early; without `prr` that is all. Serves
    /// experiments on marks answered at once and over a round trip, as of ABE.
    #[default(false, "RFC 3168 § 6.1.2 reduces at once")]
    pub prr_on_ecn: bool,
    /// FlightSize that the factors of a controller with `base = "flight-size"` multiply. Serves
    /// comparisons with ns-3.
    #[default(
        FlightSize::Outstanding,
        "RFC 5681 § 2, RFC 6675 § 5 (4.2); ns-3's BytesInFlight is the pipe (tcp-socket-base.cc)"
    )]
    pub flight_size: FlightSize,
    /// Duplicate ACKs that mean a loss. Serves experiments on reordering, and comparisons with
    /// ns-2.
    #[default(3, "RFC 5681 § 3.2, RFC 6675 § 2 DupThresh")]
    #[bounds(from 1; "at least one duplicate ACK means a loss")]
    pub dup_thresh: u32,
    /// Loss detection rule; with SACK it defines what `dup_thresh` counts. Serves comparisons with
    /// ns-2's TCP-Linux, which counts forward acknowledgements.
    #[default(LossRule::Rfc6675, "RFC 6675 § 4, IsLost; Linux has RACK")]
    pub loss_rule: LossRule,
    /// Data that SACK recovery presumes in the network (pipe), and the holes that it fills. Serves
    /// comparisons with ns-2's Sack1 and with ns-3.
    #[default(
        PipeRule::Rfc6675,
        "RFC 6675 § 4; ns-2's Sack1: sack1 (tcp-sack1.cc, recv and send_much; scoreboard-rq.cc, \
        GetNextRetran); ns-3: ns-3 (tcp-tx-buffer.cc, Update leaves m_retrans)"
    )]
    pub pipe_rule: PipeRule,
    /// `true` if SACK detects lost retransmissions. A retransmission is lost once data first sent
    /// after it is SACKed, or once a retransmission sent more than `dup_thresh` later arrives.
    /// Serves experiments on heavy loss: windows that hold although retransmissions are lost.
    #[default(
        false,
        "RFC 6675 leaves it to the timer; Linux until 4.x (tcp_mark_lost_retrans), ns-2's \
        scoreboard1.cc"
    )]
    pub lost_retransmissions: bool,
    /// `true` if the sender sends a tail loss probe after two round trips without an ACK: new data,
    /// or the last segment again. The ACK of the probe reveals losses. No effect without SACK and
    /// `loss_rule = "rack"`.
    #[default(false, "RFC 8985 § 7, which RFC 6675 knows nothing of; Linux tcp_early_retrans: on")]
    #[part("tlp")]
    pub tail_loss_probe: bool,
    /// `true` if a partly acknowledged segment stays outstanding as a whole, and SACK blocks do not
    /// count for segments that they cover in part. No effect without SACK and `loss_rule = "rack"`.
    #[default(
        false,
        "RFC 5681 § 3.1 and RFC 6675 § 4 count bytes; Linux: yes (tcp_clean_rtx_queue, \
        tcp_match_skb_to_sack)"
    )]
    #[part("rack")]
    pub whole_segments: bool,
    /// `true` if fast recovery retransmits holes not known to be lost, and then the tail once. It
    /// does so only when no lost and no new data is left to send.
    #[default(
        true,
        "RFC 6675 § 4, NextSeg rules 3 and 4; Linux has neither (tcp_xmit_retransmit_queue)"
    )]
    #[part("rescue")]
    pub doubtful_holes: bool,
    /// `true` if the SACK blocks of an ACK count although a later ACK has overtaken it.
    #[default(false, "RFC 9293 § 3.10.7.4: such an ACK is ignored; Linux: yes (tcp_ack, old_ack)")]
    #[part("old-acks")]
    pub sack_in_old_acks: bool,
    /// `true` if the sender does not wait long for a receiver that seems to have discarded SACKed
    /// data. After half a round trip, at least 10 ms, it retransmits everything.
    #[default(
        false,
        "RFC 2018 § 8, RFC 6675 § 5.1: the timer is waited for; Linux: yes \
        (tcp_check_sack_reneging)"
    )]
    #[part("reneging")]
    pub reneging_hurries: bool,
    /// `true` if lost retransmissions reduce the window again, at most once a round trip. No effect
    /// without `lost_retransmissions`. Without `prr`, or with `prr_rule = "halving"`, they always
    /// do, unless the controller sends by rate.
    #[default(
        false,
        "RFC 5681 § 4.3: they must, where RFC 6675 finds none; Linux: no; FreeBSD: yes \
        (tcp_sack_lost_retransmission)"
    )]
    #[idle(
        self.recovery != Recovery::Sack || !self.lost_retransmissions,
        "without `lost_retransmissions`"
    )]
    #[part("lost-retransmissions")]
    pub lost_retransmissions_reduce: bool,
    /// `true` if, during the repair of a timeout, a lost retransmission begins a fast recovery.
    /// That recovery reduces the window again. No effect without SACK and `loss_rule = "rack"`.
    #[default(
        false,
        "RFC 5681 § 4.3: two indications of congestion; Linux: yes (tcp_fastretrans_alert, \
        FLAG_LOST_RETRANS in TCP_CA_Loss)"
    )]
    #[part("rack")]
    pub recovers_in_loss: bool,
    /// `true` if the first two duplicate ACKs send new data (RFC 3042). Serves experiments on BECN
    /// and Padhye's formula, whose senders lack it.
    #[default(true, "RFC 3042, RFC 5681 § 3.2")]
    pub limited_transmit: bool,
    /// Bytes of an ACK that count for the growth of the window.
    #[default(GrowBy::Acknowledged, "RFC 5681 § 3.1; Linux: delivered")]
    #[part("delivered-growth")]
    pub grow_by: GrowBy,
    /// `true` if the window also grows with the ACK that ends fast recovery, or that ends the
    /// response to an ECN-echo. Serves experiments on BECN and comparisons with ns-2 and ns-3.
    #[default(
        false,
        "RFC 6582 § 3.2 (3) says no; ns-2's Newreno does (tcp-newreno.cc), ns-3 does \
        (tcp-socket-base.cc), Linux does (tcp_cong_control)"
    )]
    pub grow_on_exit: bool,
    /// `true` if segments carry timestamps, so that every ACK gives an RTT sample; off, the sender
    /// times one segment a round trip. Serves experiments on spurious timeouts, and delay-based
    /// control by one sample a round trip.
    #[default(true, "RFC 7323 § 4")]
    pub timestamps: bool,
    /// Resolution of the timestamp clock and of RTT samples. Serves experiments on delay-based
    /// control with coarse clocks (BMCC, ns-2).
    #[default(Duration::from_millis(1), "RFC 7323 § 5.4: 1 ms is typical")]
    pub clock: Duration,
    /// Round-trip times that a controller sees.
    #[flatten(seen::Params::default())]
    pub timing: seen::Params,
    /// Timestamps that cannot be forged.
    #[flatten(signed::Params::default())]
    pub signature: signed::Params,
    /// Send an ACK for every so many full segments; 1 acknowledges each. Serves experiments on
    /// delayed ACKs: growth of the window, and noise of round-trip times.
    #[default(2, "RFC 5681 § 4.2: at least every second")]
    #[bounds(from 1; "0 would acknowledge no segment")]
    pub ack_every: u32,
    /// An ACK waits no longer than this; with `ack_policy = "linux"` at first, and later up to a
    /// round trip, or 196 ms. Serves experiments on delayed ACKs: growth of the window, and noise
    /// of round-trip times.
    #[default(
        Duration::from_millis(200),
        "RFC 5681 § 4.2 allows 500 ms; most stacks use up to 200 ms"
    )]
    pub ack_delay: Duration,
    /// Conditions under which the receiver sends an ACK at once.
    #[default(AckPolicy::Rfc5681, "RFC 5681 § 4.2")]
    #[part("quick-acks")]
    pub ack_policy: AckPolicy,
    /// `true` if the first SACK block of an ACK reports data that arrived twice (D-SACK). No effect
    /// without SACK.
    #[default(
        false,
        "RFC 2883 § 4: optional, and nothing to a sender by RFC 6675; Linux tcp_dsack: on"
    )]
    #[part("dsack")]
    pub dsack: bool,
    /// Misbehaviour of the receiver.
    #[flatten(misbehaving_receiver::Params::default())]
    pub cheat: misbehaving_receiver::Params,
    /// `true` if a burst of several segments ends with PSH, for receivers with `ack_policy =
    /// "linux"`. Serves experiments on senders from before Linux 5.4 (ABE).
    #[default(false, "RFC 9293 § 3.9.1.2 leaves it to the sender; Linux since 5.4")]
    #[idle(self.ack_policy != AckPolicy::Quick, "without `ack_policy = \"linux\"`")]
    pub push_bursts: bool,
    /// Segmentation offload.
    #[flatten(TsoParams::default())]
    pub tso: TsoParams,
    /// `true` if the connection negotiates ECN and sends ECT(0) on new data (RFC 3168). Serves
    /// experiments on marks in place of losses (ABE, DCTCP, BECN).
    #[default(false, "RFC 3168 § 6.1; off in the RFC's default")]
    pub ecn: bool,
    /// `true` if an ECN-echo reduces the window and keeps it from growing. Off, the sender is still
    /// ECN-capable: for senders that learn of marks by other means. Serves experiments on senders
    /// that learn of congestion by quenches, load or code points (BECN, VCP, BMCC).
    #[default(true, "RFC 3168 § 6.1.2")]
    pub obey_ece: bool,
    /// `true` if the sender obeys a router's source quench. A quench reduces the window at most
    /// once a round trip, together with all other causes. Serves experiments on source quenches
    /// (BECN), and attacks by forged ones.
    #[default(false, "RFC 6633 § 3: hosts ignore them")]
    pub obey_quench: bool,
    /// Response to a source quench that the sender obeys. Serves experiments on source quenches:
    /// smaller windows (BECN) and pauses (RFC 1016).
    #[default(QuenchAnswer::Reduce, "BECN § IV-B")]
    #[idle(!self.obey_quench, "without `obey_quench`")]
    pub quench_answer: QuenchAnswer,
    /// Source quenches that the sender believes. Serves experiments on off-path attacks by forged
    /// quenches.
    #[default(QuenchCheck::InFlight, "RFC 5927 § 4.1")]
    pub quench_check: QuenchCheck,
    /// After so many quenches of a round trip that quote nothing outstanding the rest of that round
    /// trip's are not believed either; none is no limit. Nothing with `quench_check = "none"`.
    /// Serves experiments on off-path attacks by forged quenches.
    #[default(Some(10), "RFC 5927 has none; RFC 5961 § 7 answers 10 doubtful segments in 5 s")]
    #[idle(self.quench_check == QuenchCheck::None, "with `quench_check = \"none\"`")]
    pub quench_guesses: Option<u32>,
    /// With `quench_answer = "pause"`: how long.
    #[flatten(squid::Params::default())]
    pub squid: squid::Params,
    /// Feedback in ACKs on marks, and on the header fields that routers wrote. Serves experiments
    /// on explicit feedback (DCTCP, XCP, RCP, VCP, MLCP, BMCC) and one-way delays (LEDBAT).
    #[default(EchoKind::Classic, "RFC 3168 § 6.1.3")]
    pub echo: EchoKind,
    /// `true` if retransmissions, like new data, are ECN-capable and may carry CWR. Serves
    /// experiments on VCP and BMCC, and comparisons with ns-2, which mark retransmissions.
    #[default(false, "RFC 3168 § 6.1.5: never; ns-2 sets both (tcp.cc, SetCWRonRetransmit_)")]
    pub ecn_retransmissions: bool,
    /// `true` if an ECN-echo also counts while the sender repairs the losses of a timeout. The echo
    /// then reduces the window and prevents its growth. No effect without `ecn_retransmissions`:
    /// the sender would not send CWR, and the echo would never end. Serves comparisons with ns-2,
    /// whose senders count echoes after a timeout.
    #[default(
        false,
        "RFC 3168 § 6.1.2: once a window, which a timeout began; ns-2 and ns-3 count it (ecn, \
        EnterCwr)"
    )]
    pub ecn_in_loss: bool,
    /// `true` if the first ECN-echo after a timeout counts even for data that was outstanding at an
    /// earlier reduction. During the repair of losses it counts only with `ecn_in_loss`. Serves
    /// comparisons with ns-2, whose senders count echoes after a timeout.
    #[default(
        false,
        "RFC 3168 § 6.1.2: once a window; ns-2 counts it (tcp.cc, ecn: CWND_ACTION_TIMEOUT)"
    )]
    pub ecn_after_timeout: bool,
    /// `true` if an ECN-echo also counts in fast recovery, once for the data that was outstanding
    /// at the last one. Serves comparisons with ns-3, whose senders reduce twice.
    #[default(
        false,
        "RFC 3168 § 6.1.2: once a window, which a loss made smaller; ns-3 reduces again \
        (tcp-socket-base.cc, ReceivedAck and EnterCwr)"
    )]
    pub ecn_in_recovery: bool,
    /// `true` if fast recovery in a window that another cause reduced ends with that window. A
    /// later loss then begins another recovery, which reduces the window. Serves experiments on
    /// marks and losses in one window, and comparisons with ns-2 and ns-3.
    #[default(
        false,
        "RFC 3168 § 6.1.2 leaves it open; Linux: yes (tcp_enter_recovery leaves high_seq); ns-3's \
        CA_CWR ends so (tcp-socket-base.cc, ReceivedAck), and so does ns-2's recover_"
    )]
    pub reduced_window_ends_recovery: bool,
    /// `true` if a loss reduces a window that another cause (ECN, a quench, delay, load) reduced in
    /// the same round trip. Serves experiments on VCP, whose program for ns-2 answers marks and
    /// losses apart.
    #[default(false, "RFC 3168 § 6.1.2: once a window; VCP's program for ns-2 halves again")]
    pub loss_reduces_again: bool,
    /// Response to an ECN-echo at a window of one segment. Serves experiments on more flows than
    /// packets, and comparisons with ns-2.
    #[default(EchoAtOne::Waits, "RFC 3168 § 6.1.2: the timer MUST be waited for")]
    pub ecn_at_one: EchoAtOne,
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
    /// The timeout is SRTT and at least this. Serves experiments on spurious timeouts over paths of
    /// little variation (TCP*(n)).
    #[default(Duration::ZERO, "RFC 6298 § 2.3: the clock granularity")]
    pub rto_variation_min: Duration,
    /// Added to the timeout once it is backed off; a first timeout without a sample, that of a SYN,
    /// lacks it. Serves experiments on the margin of BSD stacks above a timeout that is backed off.
    #[default(Duration::ZERO, "RFC 6298 has none; FreeBSD 200 ms (tcp_timer.h, TCPT_RANGESET)")]
    pub rto_slop: Duration,
    /// Arithmetic of SRTT and RTTVAR. Serves comparisons of timers with ns-2 and with kernels.
    #[default(
        RttArithmetic::Exact,
        "RFC 6298 § 2; 4.4BSD and ns-2 count ticks (ns-2 tcp.cc, rtt_update); Linux: linux"
    )]
    pub rtt_arithmetic: RttArithmetic,
    /// `true` if RTT samples come from the sender's own log of send times, including those of
    /// SACKed segments. A sample is of newly acknowledged data that was sent once; otherwise the
    /// echoed timestamp gives it. The sender keeps this log only with `loss_rule = "rack"`. Serves
    /// experiments on timestamps and own notes as sources of delay (delay-based AIMD).
    #[default(false, "RFC 7323 § 4.1: what ACKs echo; Linux: yes (tcp_ack_update_rtt)")]
    pub rtt_from_notes: bool,
    /// `true` if a timeout keeps the slow-start threshold when the window was already reduced for
    /// the outstanding data. That is so in fast recovery, and in the response to an ECN-echo.
    #[default(false, "RFC 5681 § 3.1, eq. 4: no; Linux: yes (tcp_enter_loss)")]
    #[part("timeout-threshold")]
    pub timeout_keeps_threshold: bool,
    /// Response to spurious timeouts.
    #[flatten(spurious::Params::default())]
    pub spurious: spurious::Params,
    /// Growth of the timeout with each consecutive expiry. Serves experiments on TCP without
    /// backoff, or with less of it (TCP*(n)).
    #[default(Backoff::Exponential, "RFC 6298 § 5.5")]
    pub rto_backoff: Backoff,
    /// With `rto_backoff = "after"` and `"bounded"`: the n of TCP*(n), expiries in a row before the
    /// timeout doubles. Serves experiments on the n of TCP*(n), up to TCP without backoff.
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
    /// Timeout with which data begins after a SYN timed out, until there is an RTT sample; an
    /// echoed timestamp gives one. Serves experiments on short transfers after a lost SYN.
    #[default(Duration::from_secs(3), "RFC 6298 § 5.7; Linux TCP_TIMEOUT_FALLBACK")]
    pub rto_after_syn_loss: Duration,
    /// `true` if the window shrinks after an idle time longer than the timeout. Serves experiments
    /// on pauses between transfers, and closed forms of TCP*(n).
    #[default(true, "RFC 5681 § 4.1")]
    pub idle_restart: bool,
    /// Probing of a closed receive window.
    #[flatten(probing::Params::default())]
    pub probing: probing::Params,
    /// Validation of a congestion window that is not used.
    #[flatten(validation::Params::default())]
    pub validation: validation::Params,
}
