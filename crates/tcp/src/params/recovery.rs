//! Recovery from losses (RFC 5681, 6582 and 6675).

use cwnd_schema::{Choice, Schema};

/// Response of a sender to a hole in the acknowledged data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum Recovery {
    /// Fast retransmit, then slow start from one segment (4.3BSD-Tahoe).
    #[name("tahoe")]
    Tahoe,
    /// Fast recovery that ends with the first new ACK (RFC 2581).
    #[name("reno")]
    Reno,
    /// Fast recovery that stays through partial ACKs (RFC 6582).
    #[name("newreno")]
    NewReno,
    /// Selective acknowledgements (RFC 2018) with the scoreboard of RFC 6675.
    #[name("sack")]
    Sack,
}

/// FlightSize that a sender reports to its controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum FlightSize {
    /// All data not cumulatively acknowledged (RFC 5681 § 2), without the segments of limited
    /// transmit (§ 3.2). At a timeout and during its repair, the data presumed in the network.
    #[name("outstanding")]
    Outstanding,
    /// Data presumed in the network: RFC 6675's pipe, without SACKed or lost data.
    #[name("pipe")]
    Pipe,
}

/// Recovery from losses.
#[derive(Clone, Debug, PartialEq, Schema)]
pub struct Params {
    /// Loss recovery algorithm. Serves comparisons of Tahoe, Reno, NewReno and SACK, such as that
    /// of Fall & Floyd.
    #[default(Recovery::Sack, "RFC 6675")]
    pub recovery: Recovery,
    /// FlightSize that the factors of a controller with `base = "flight-size"` multiply. Serves
    /// comparisons with ns-3.
    #[default(
        FlightSize::Outstanding,
        "RFC 5681 § 2, RFC 6675 § 5 (4.2); ns-3's BytesInFlight is the pipe (tcp-socket-base.cc)"
    )]
    pub flight_size: FlightSize,
    /// `true` if fast recovery retransmits holes not known to be lost, and then the tail once. It
    /// does so only when no lost and no new data is left to send. No effect with `pipe_rule =
    /// "sack1"`.
    #[default(
        true,
        "RFC 6675 § 4, NextSeg rules 3 and 4; Linux has neither (tcp_xmit_retransmit_queue)"
    )]
    #[part("rescue")]
    #[was("doubtful_holes")]
    pub rescue_holes: bool,
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
    #[was("reneging_hurries")]
    pub reneging_shortens_rto: bool,
    /// `true` if lost retransmissions reduce the window again, at most once a round trip. No effect
    /// without `lost_retransmissions`. Without `prr`, or with `prr_rule = "halving"`, they always
    /// do, unless the controller sends by rate.
    #[default(
        false,
        "RFC 5681 § 4.3: they must, where RFC 6675 finds none; Linux: no; FreeBSD: yes \
        (tcp_sack_lost_retransmission)"
    )]
    #[part("lost-retransmissions")]
    pub lost_retransmissions_reduce: bool,
    /// `true` if, during the repair of a timeout, a fast recovery begins with a lost
    /// retransmission, or with any loss that the reordering timer finds. That recovery reduces the
    /// window again. No effect without SACK and `loss_rule = "rack"`.
    #[default(
        false,
        "RFC 5681 § 4.3: two indications of congestion; Linux: yes (tcp_fastretrans_alert, \
        FLAG_LOST_RETRANS in TCP_CA_Loss)"
    )]
    #[part("rack")]
    pub recovers_in_loss: bool,
    /// `true` if the first two duplicate ACKs send new data (RFC 3042); with SACK, as much as the
    /// pipe allows (RFC 6675 § 5). Serves experiments on BECN and Padhye's formula, whose senders
    /// lack it.
    #[default(true, "RFC 3042, RFC 5681 § 3.2")]
    pub limited_transmit: bool,
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
    /// `true` if a timeout keeps the slow-start threshold when the window was already reduced for
    /// the outstanding data. That is so in fast recovery, and after a reduction without losses
    /// (ECN, a quench, delay, load).
    #[default(false, "RFC 5681 § 3.1, eq. 4: no; Linux: yes (tcp_enter_loss)")]
    #[part("timeout-threshold")]
    pub timeout_keeps_threshold: bool,
}
