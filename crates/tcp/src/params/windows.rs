//! Windows at the start, and their bounds.

use cwnd_quantity::Bytes;
use cwnd_schema::Schema;

/// Windows at the start, and their bounds.
#[derive(Clone, Debug, PartialEq, Schema)]
pub struct Params {
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
