//! ACKs, their feedback, and the PSH that asks for them.

use cwnd_quantity::Duration;
use cwnd_schema::{Choice, Schema};

use crate::echo::EchoKind;

/// ACKs, their feedback, and the PSH that asks for them.
#[derive(Clone, Debug, PartialEq, Schema)]
pub struct Params {
    /// Segments in order for each ACK, short ones included; 1 acknowledges each. Serves experiments
    /// on delayed ACKs: growth of the window, and noise of round-trip times.
    #[default(2, "RFC 5681 § 4.2: at least every second")]
    #[bounds(from 1; "0 would acknowledge no segment")]
    pub ack_every: u32,
    /// An ACK waits no longer than this. With the part `quick-acks` this is the first wait, in
    /// ticks of 4 ms; later ones last up to a round trip, at most 196 ms, if that is longer. Serves
    /// experiments on delayed ACKs: growth of the window, and noise of round-trip times.
    #[default(
        Duration::from_millis(200),
        "RFC 5681 § 4.2 allows 500 ms; most stacks use up to 200 ms"
    )]
    pub ack_delay: Duration,
    /// Conditions under which the receiver sends an ACK at once.
    #[default(AckRule::Rfc5681, "RFC 5681 § 4.2")]
    #[part("quick-acks")]
    pub ack_policy: AckRule,
    /// `true` if the first SACK block of an ACK reports data that arrived twice (D-SACK). No effect
    /// without SACK.
    #[default(
        false,
        "RFC 2883 § 4: optional, and nothing to a sender by RFC 6675; Linux tcp_dsack: on"
    )]
    #[part("dsack")]
    pub dsack: bool,
    /// `true` if a burst of several segments ends with PSH, for receivers with the part
    /// `quick-acks`.
    #[default(false, "RFC 9293 § 3.9.1.2 leaves it to the sender; Linux since 5.4")]
    #[idle(self.ack_policy != AckRule::Quick, "without the part `quick-acks`")]
    #[part("push")]
    pub push_bursts: bool,
    /// Feedback in ACKs on marks, and on the header fields that routers wrote. Serves experiments
    /// on explicit feedback (DCTCP, XCP, RCP, VCP, MLCP, BMCC) and one-way delays (LEDBAT).
    #[default(EchoKind::Classic, "RFC 3168 § 6.1.3")]
    pub echo: EchoKind,
}

/// Conditions under which the receiver sends an ACK at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum AckRule {
    /// On a gap, on the filling of a gap, or on a segment without new data (RFC 5681 § 4.2); also
    /// for an `echo` that must not wait.
    #[name("rfc5681")]
    Rfc5681,
    /// Also at the start, after a duplicate or a pause, while the receive window grows, after the
    /// first mark, with CWR, and at the end of each burst (PSH). With SACK, behind a gap, after
    /// three duplicates, one ACK for the arrivals of about a millisecond, or of a twentieth of a
    /// shorter round trip.
    #[name("linux")]
    Quick,
}
