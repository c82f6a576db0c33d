//! How a closed receive window is probed (RFC 9293 § 3.8.6.1).

use cwnd_quantity::{param_enum, params};

param_enum! {
    /// What goes into a window that is closed.
    pub enum WindowProbe {
        /// The next byte.
        Next = "next",
        /// Nothing, with the number of the byte before the window, which the receiver must answer as well. At the first byte, which has
        /// none before it, the next byte.
        Before = "before",
    }
}

params! {
    /// How a closed receive window is probed.
    pub struct Params {
        /// What goes into a window that is closed.
        #[source("RFC 9293 § 3.8.6.1: at least one octet of new data; Linux: before (tcp_xmit_probe_skb)")]
        pub window_probe: WindowProbe = WindowProbe::Next,
        /// Whether the time until the next probe begins anew with the answer to one.
        #[source("RFC 9293 § 3.8.6.1: it follows the probe before; Linux: yes (tcp_ack_probe)")]
        pub probe_answer_restarts: bool = false,
    }
}
