//! Tests of the disciplines through their trait, in one binary, so that helpers are shared and the
//! link step is paid once.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod codel;
mod common;
mod invariants;
mod load;
mod meters;
mod pie;
mod red;
mod vectors;
