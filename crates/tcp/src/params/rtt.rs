//! RTT samples and their estimator (RFC 6298 § 2, RFC 7323 § 4).

use cwnd_quantity::Duration;
use cwnd_schema::Schema;

use crate::rtt::RttArithmetic;

/// RTT samples and their estimator.
#[derive(Clone, Debug, PartialEq, Schema)]
pub struct Params {
    /// `true` if segments carry timestamps, so that every ACK of new data gives an RTT sample; off,
    /// the sender times one segment a round trip. Serves experiments on spurious timeouts, and
    /// delay-based control by one sample a round trip.
    #[default(true, "RFC 7323 § 4")]
    pub timestamps: bool,
    /// Resolution of the timestamp clock and of RTT samples. Serves experiments on delay-based
    /// control with coarse clocks (BMCC, ns-2).
    #[default(Duration::from_millis(1), "RFC 7323 § 5.4: 1 ms is typical")]
    pub clock: Duration,
    /// Arithmetic of SRTT and RTTVAR. Serves comparisons of timers with ns-2 and with kernels.
    #[default(
        RttArithmetic::Exact,
        "RFC 6298 § 2; 4.4BSD and ns-2 count ticks (ns-2 tcp.cc, rtt_update); Linux: linux"
    )]
    pub rtt_arithmetic: RttArithmetic,
    /// `true` if RTT samples come from the sender's own log of send times, including those of
    /// SACKed segments. A sample is of newly acknowledged data that was sent once; otherwise the
    /// echoed timestamp gives it. No effect without `loss_rule = "rack"`.
    #[default(false, "RFC 7323 § 4.1: what ACKs echo; Linux: yes (tcp_ack_update_rtt)")]
    #[part("own-rtt-notes")]
    pub rtt_from_notes: bool,
}
