//! Stub parameters.
use cwnd_units::params;
params! {
    /// NewReno.
    pub struct Params {
        /// Window after a loss over window before.
        #[source("RFC 5681 § 3.1 eq. 4")]
        pub beta: f64 = 0.5,
    }
}
