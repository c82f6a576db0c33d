//! Tests of the controllers in the running kernel. Those that need root print that and do nothing
//! without it.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]
mod attached;
mod command;
mod delay;
mod each;
mod flows;
mod loads;
mod machine;
mod objects;
mod quenches;
mod remains;
mod safety;
mod shadow;
mod strangers;
mod timeouts;
mod untold;
