//! Segmentation offload (TSO): the stack sends chunks of many segments, each as one burst, and may
//! wait until a chunk is full (McCullagh 2008 § 5.3).

use cwnd_quantity::{Bytes, Duration};
use cwnd_schema::{Choice, Schema};

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

/// Segmentation offload.
#[derive(Clone, Debug, PartialEq, Schema)]
#[idle([tso_defer, tso_win_divisor, tso_sizing], self.tso.is_none(), "without `tso`")]
pub struct Params {
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
