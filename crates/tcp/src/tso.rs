//! Segmentation offload: the stack hands down chunks of many segments, which leave as one burst, and waits for them to be full (McCullagh 2008
//! § 5.3).

use cwnd_quantity::{Bytes, Duration, param_enum, params};

param_enum! {
    /// How large a chunk is at most.
    pub enum TsoSizing {
        /// As large as `tso` says (Linux until 3.11).
        Full = "full",
        /// What the rate passes in a millisecond, two segments at least; and chunks are a pace apart, as Linux does it since 3.12
        /// (`tcp_tso_autosize`) with pacing.
        Rate = "rate",
        /// The same size, but nothing is paced, as in Linux without `fq` and SO_MAX_PACING_RATE; and data waits for a chunk to be full only
        /// while ACKs come close to each other (`tcp_tso_should_defer` of 6.18).
        Unpaced = "rate-unpaced",
    }
}

params! {
    /// Segmentation offload.
    pub struct Params {
        /// The largest chunk of payload that is handed down at once; none sends segment by segment.
        #[source("McCullagh 2008 § 5.3: e.g. 64 kB; Linux GSO_MAX_SIZE")]
        #[bounds(from Bytes(1), up_to Bytes(65_536))]
        pub tso: Option<Bytes> = None,
        /// For how long at most data that may go waits until a chunk is full; none waits for ACKs, however long they take.
        #[source("McCullagh 2008 § 5.3: Linux until 2.6.18 waits; Heffner 2006 bounds it to about 5 ms")]
        pub tso_defer: Option<Duration> = None,
        /// A chunk of this part of the window, one in so many, is full enough.
        #[source("Linux tcp_tso_win_divisor")]
        #[bounds(from 1; "a chunk is at most the whole window")]
        pub tso_window_part: u32 = 3,
        /// How large chunks are.
        #[source("McCullagh 2008 § 5.3: as large as they may be")]
        pub tso_sizing: TsoSizing = TsoSizing::Full,
    }
}
