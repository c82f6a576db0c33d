//! Detection of losses, and the data presumed in the network (RFC 6675 and 8985).

use cwnd_schema::{Choice, Schema};

/// Rule by which SACK shows that a segment was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum LossRule {
    /// Above the segment, `dup_thresh` discontiguous ranges or more bytes than in `dup_thresh` − 1
    /// full segments are SACKed (RFC 6675 § 4).
    #[name("rfc6675")]
    Rfc6675,
    /// The highest SACKed segment is `dup_thresh` or more above the segment: forward
    /// acknowledgement (Mathis & Mahdavi 1996).
    #[name("fack")]
    Fack,
    /// A segment sent later has arrived, and the latest RTT plus a reordering window has passed
    /// since it was sent (RFC 8985 § 6.2). With SACK the reordering window is a quarter of the
    /// least RTT, wider after D-SACKs, and at most SRTT. It is zero in recovery and once
    /// `dup_thresh` segments are SACKed, unless reordering was observed. Data still lost at the end
    /// of a recovery begins the next one. With `lost_retransmissions` the rule applies to
    /// retransmissions, too. With `timestamps`, a reduction is undone if the original arrived late
    /// (RFC 4015), unless the controller has no undo.
    #[name("rack")]
    Rack,
}

/// Data that SACK recovery presumes in the network (pipe), and the holes that it fills.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum PipeRule {
    /// Data neither SACKed nor lost, plus retransmissions; holes are filled once they are lost (RFC
    /// 6675 § 4).
    #[name("rfc6675")]
    Rfc6675,
    /// Outstanding data, less a segment for each ACK and another for each partial ACK, plus each
    /// segment sent. Lost data stays in it until a partial ACK. Holes are filled as soon as
    /// anything above them is SACKed, and the tail is not rescued (Fall & Floyd 1996).
    #[name("sack1")]
    CountedByAcks,
    /// RFC 6675's pipe, but retransmitted data stays in it until it is cumulatively acknowledged,
    /// also if it is SACKed (ns-3).
    #[name("ns-3")]
    KeepsRetransmissions,
}

/// Detection of losses, and the data presumed in the network.
#[derive(Clone, Debug, PartialEq, Schema)]
pub struct Params {
    /// Duplicate ACKs that mean a loss. Serves experiments on reordering, and comparisons with
    /// ns-2.
    #[default(3, "RFC 5681 § 3.2, RFC 6675 § 2 DupThresh")]
    #[bounds(from 1; "at least one duplicate ACK means a loss")]
    pub dup_thresh: u32,
    /// Loss detection rule; with SACK it defines what `dup_thresh` counts.
    #[default(LossRule::Rfc6675, "RFC 6675 § 4, IsLost; Linux has RACK")]
    #[part("rack")]
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
    /// after it is SACKed, or once a retransmission sent more than `dup_thresh` later arrives; with
    /// `loss_rule = "rack"` by that rule.
    #[default(
        false,
        "RFC 6675 leaves it to the timer; Linux until 4.x (tcp_mark_lost_retrans), ns-2's \
        scoreboard1.cc"
    )]
    #[part("lost-retransmissions")]
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
}
