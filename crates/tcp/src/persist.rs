//! Probing of a closed receive window (RFC 9293 § 3.8.6.1).

use cwnd_schema::{Choice, Schema};

/// Payload of a probe of a closed receive window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum WindowProbe {
    /// The next byte.
    #[name("next")]
    Next,
    /// Nothing, with the number of the byte before the window, which the receiver must answer as
    /// well. At the first byte, which has none before it, the next byte.
    #[name("before")]
    Before,
}

/// Probing of a closed receive window.
#[derive(Clone, Debug, PartialEq, Schema)]
pub struct Params {
    /// Payload of a probe of a closed receive window.
    #[default(
        WindowProbe::Next,
        "RFC 9293 § 3.8.6.1: at least one octet of new data; Linux: before (tcp_xmit_probe_skb)"
    )]
    #[part("zero-window-probes")]
    pub window_probe: WindowProbe,
    /// `true` if the answer to a probe restarts the time until the next probe.
    #[default(
        false,
        "RFC 9293 § 3.8.6.1: it follows the probe before; Linux: yes (tcp_ack_probe)"
    )]
    #[part("zero-window-probes")]
    pub probe_answer_restarts: bool,
}
