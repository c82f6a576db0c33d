//! A TCP endpoint without input or output: segments and time go in, segments and timers come out.
#![forbid(unsafe_code)]

mod params;

pub use params::{Params, Recovery};
