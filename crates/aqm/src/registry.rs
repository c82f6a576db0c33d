use cwnd_units::params_choice;

use crate::fifo;

params_choice! {
    /// Which queue discipline, with its parameters.
    pub enum QueueParams {
        /// First in, first out; drops when full.
        Fifo(fifo::Params) = "fifo",
    }
}
