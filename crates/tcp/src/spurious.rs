//! Timeouts that need not have been: nothing was lost, and the timer was early (RFC 5682, RFC 3522).

use cwnd_schema::Schema;

/// What is done about timeouts that need not have been.
#[derive(Clone, Debug, PartialEq, Schema)]
pub struct Params {
    /// Whether what follows the first retransmission of a timeout is new data, so that ACKs tell
    /// whether anything was lost at all; if not, the timeout is taken back (F-RTO). Without SACK
    /// only with `loss_rule = "rack"` and `recovery = "newreno"`.
    #[default(
        false,
        "RFC 5682 § 2 and § 3, which RFC 6298 does not ask for; Linux: yes (tcp_frto)"
    )]
    pub timeout_frto: bool,
    /// Whether a timeout is taken back if the first new ACK after it echoes a timestamp that is
    /// older than the retransmission (Eifel). Nothing without `timestamps`, and without SACK only
    /// with `loss_rule = "rack"` and `recovery = "newreno"`.
    #[default(
        false,
        "RFC 3522 and RFC 4015, which RFC 6298 does not ask for; Linux: yes (tcp_try_undo_loss)"
    )]
    pub timeout_eifel: bool,
}
