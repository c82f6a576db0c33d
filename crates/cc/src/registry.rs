use cwnd_units::params_choice;

use crate::newreno;

params_choice! {
    /// Which controller, with its parameters.
    pub enum ControllerParams {
        /// NewReno: additive increase, multiplicative decrease (RFC 5681).
        NewReno(newreno::Params) = "newreno",
    }
}
