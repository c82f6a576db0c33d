//! Tests of the controllers in the running kernel. Those that need root print that and do nothing
//! without it.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]
mod command;
mod flows;
mod loads;
mod machine;
mod quenches;
mod safety;
mod shadow;
mod timeouts;
