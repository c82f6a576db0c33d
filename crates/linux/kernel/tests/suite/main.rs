//! Tests of the controllers in the running kernel. Those that need root print that and do nothing
//! without it.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]
mod attached;
mod command;
mod delay;
mod each;
mod flows;
mod kernel_objects;
mod loads;
mod machine;
mod objects;
mod off_path;
mod quenches;
mod safety;
mod shadow;
mod skipped_calls;
mod timeouts;
