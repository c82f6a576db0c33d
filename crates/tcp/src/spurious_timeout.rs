//! Spurious timeouts: the timer was early and nothing was lost (RFC 5682, RFC 3522).

use cwnd_schema::Schema;

/// Response to spurious timeouts.
#[derive(Clone, Debug, PartialEq, Schema)]
pub struct Params {
    /// `true` if new data follows the first retransmission of a timeout, so that ACKs show if
    /// anything was lost (F-RTO). If nothing was lost, the sender undoes the timeout. Without SACK
    /// this needs `loss_rule = "rack"` and `recovery = "newreno"`.
    #[default(
        false,
        "RFC 5682 § 2 and § 3, which RFC 6298 does not ask for; Linux: yes (tcp_frto)"
    )]
    #[part("frto")]
    pub timeout_frto: bool,
    /// `true` if the sender undoes a timeout when the first new ACK echoes a timestamp older than
    /// the retransmission (Eifel). No effect without `timestamps`. Without SACK this needs
    /// `loss_rule = "rack"` and `recovery = "newreno"`.
    #[default(
        false,
        "RFC 3522 and RFC 4015, which RFC 6298 does not ask for; Linux: yes (tcp_try_undo_loss)"
    )]
    #[part("eifel")]
    pub timeout_eifel: bool,
}
