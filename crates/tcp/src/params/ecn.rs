//! A sender's part of ECN (RFC 3168).

use cwnd_schema::{Choice, Schema};

/// Response of a sender to an ECN-echo when its window is below two segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum EchoAtOne {
    /// The sender continues with one segment a round trip (Linux).
    #[name("sends")]
    Sends,
    /// Once nothing is in flight, the sender sends the next segment when the retransmission timer,
    /// restarted by the echo, expires (RFC 3168 § 6.1.2).
    #[name("waits")]
    Waits,
    /// The sender waits for the timer; each further consecutive echo at a window of at most one
    /// segment doubles the timeout (ns-2's tcp.cc, ecn).
    #[name("backs-off")]
    BacksOff,
}

/// A sender's part of ECN.
#[derive(Clone, Debug, PartialEq, Schema)]
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
pub struct Params {
    /// `true` if the sender is ECN-capable: it sends ECT(0) on new data (RFC 3168). The simulator
    /// does not negotiate that. Serves experiments on marks in place of losses (ABE, DCTCP, BECN).
    #[default(false, "RFC 3168 § 6.1; off in the RFC's default")]
    pub ecn: bool,
    /// `true` if an ECN-echo reduces the window and keeps it from growing. Off, the sender is still
    /// ECN-capable: for senders that learn of marks by other means. Serves experiments on senders
    /// that learn of congestion by quenches, load or code points (BECN, VCP, BMCC).
    #[default(true, "RFC 3168 § 6.1.2")]
    pub obey_ece: bool,
    /// `true` if retransmissions, like new data, are ECN-capable and may carry CWR; those of VCP
    /// and BMCC always are. Serves experiments on VCP and BMCC, and comparisons with ns-2, which
    /// mark retransmissions.
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
    /// `true` if an ECN-echo on an ACK of new data also counts in fast recovery, once for the data
    /// that was outstanding at the last one. Serves comparisons with ns-3, whose senders reduce
    /// twice.
    #[default(
        false,
        "RFC 3168 § 6.1.2: once a window, which a loss made smaller; ns-3 reduces again \
        (tcp-socket-base.cc, ReceivedAck and EnterCwr)"
    )]
    pub ecn_in_recovery: bool,
    /// Response to an ECN-echo at a window below two segments. Serves experiments on more flows
    /// than packets, and comparisons with ns-2.
    #[default(EchoAtOne::Waits, "RFC 3168 § 6.1.2: the timer MUST be waited for")]
    pub ecn_at_one: EchoAtOne,
}
