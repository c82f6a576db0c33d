//! A connection: its beginning, and its end when nothing arrives (RFC 9293 § 3.5 and 3.8.3);
//! sizes of packets, and segmentation offload (TSO); windows at the start, their bounds, and the
//! probing of a closed receive window (RFC 9293 § 3.8.6.1).

use cwnd_quantity::{Bytes, Duration};
use cwnd_schema::{Choice, Schema};

/// Beginning of a connection, and its end when nothing arrives.
#[derive(Clone, Debug, PartialEq, Schema)]
pub struct Params {
    /// `true` if a connection begins with SYN and SYN-ACK; off, data flows at once. Serves
    /// experiments on closed forms and packet counts, which begin with data.
    #[default(true, "RFC 9293 § 3.5")]
    pub handshake: bool,
    /// Retransmissions of a SYN before the sender gives up the connection. Serves experiments on
    /// users without backoff, none of which gives up.
    #[default(6, "Linux tcp_syn_retries")]
    pub syn_retries: u32,
    /// Consecutive expiries of the timer that retransmit data before the sender gives up the
    /// connection, R2 as a count; none is never. Serves experiments on users without backoff, none
    /// of which gives up.
    #[default(None, "RFC 9293 § 3.8.3, R2; FreeBSD 12 (TCP_MAXRXTSHIFT)")]
    pub data_retries: Option<u32>,
    /// Time since the first of consecutive expiries for data: the connection is given up at the
    /// first expiry that comes so much later, R2 as a time. None is never. Serves experiments on
    /// long outages: how long a connection outlives them.
    #[default(None, "RFC 9293 § 3.8.3, R2: at least 100 s; Linux 924.6 s (tcp_retries2 = 15)")]
    #[bounds(from Duration(1))]
    pub data_retry_time: Option<Duration>,
}

/// Sizes of packets.
#[derive(Clone, Debug, PartialEq, Schema)]
pub struct Packets {
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
    /// Wire size of a SYN, and of an ACK without the option of an `echo`. Serves experiments on
    /// setups of papers, and congestion on the path of ACKs.
    #[default(Bytes(52), "IPv4 20 B + TCP 20 B + timestamps 12 B")]
    #[bounds(from Bytes(1), up_to Bytes(65_535))]
    pub ack_size: Bytes,
}

/// Windows at the start, and their bounds.
#[derive(Clone, Debug, PartialEq, Schema)]
pub struct Windows {
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
}

/// Maximum size of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum TsoSizing {
    /// The value of `tso` (Linux until 3.11).
    #[name("full")]
    Full,
    /// Data sent in a millisecond at the pacing rate, more over short round trips, and at least two
    /// segments; `tso` stays the maximum. Pacing separates the chunks, as in Linux since 3.12
    /// (`tcp_tso_autosize`) with pacing.
    #[name("rate")]
    Rate,
    /// The same size without pacing, as in Linux without `fq` and SO_MAX_PACING_RATE. Data waits
    /// for a full chunk only while ACKs arrive close together (`tcp_tso_should_defer` of 6.18).
    #[name("rate-unpaced")]
    Unpaced,
}

/// Segmentation offload (TSO): the stack sends chunks of many segments, each as one burst, and may
/// wait until a chunk is full (McCullagh 2008 § 5.3).
#[derive(Clone, Debug, PartialEq, Schema)]
#[idle([tso_defer, tso_win_divisor, tso_sizing], self.tso.is_none(), "without `tso`")]
pub struct TsoParams {
    /// The largest chunk of payload that is handed down at once; none sends segment by segment.
    /// Serves experiments on chunks: bursts, pacing, and noise of round-trip times.
    #[default(None, "McCullagh 2008 § 5.3: e.g. 64 kB; Linux GSO_MAX_SIZE")]
    #[bounds(from Bytes(1), up_to Bytes(65_536))]
    pub tso: Option<Bytes>,
    /// For how long at most data that may go waits until a chunk is full; none waits for ACKs,
    /// however long they take. Serves experiments on chunks of old kernels and delay-based control
    /// (delay-based AIMD).
    #[default(
        None,
        "McCullagh 2008 § 5.3: Linux until 2.6.18 waits; Heffner 2006 bounds it to about 5 ms"
    )]
    pub tso_defer: Option<Duration>,
    /// A chunk of this part of the window, one in so many, is full enough. Serves experiments on
    /// chunks of old kernels and delay-based control (delay-based AIMD).
    #[default(3, "Linux tcp_tso_win_divisor")]
    #[bounds(from 1; "a chunk is at most the whole window")]
    #[was("tso_window_part")]
    pub tso_win_divisor: u32,
    /// Maximum size of a chunk. Serves experiments on pacing beside chunks of full size.
    #[default(TsoSizing::Full, "McCullagh 2008 § 5.3: as large as they may be")]
    pub tso_sizing: TsoSizing,
}

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
pub struct ProbingParams {
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
