//! Stub parameters.
use cwnd_units::{QueueSize, params};
params! {
    /// First in, first out.
    pub struct Params {
        /// How much may wait.
        #[source("rule of thumb: one bandwidth-delay product")]
        pub limit: QueueSize = QueueSize::MilliBdp(1000),
    }
}
