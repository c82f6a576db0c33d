//! Reading of captures, and kinds of silences found in them.

mod disorder;
mod formats;
mod pauses;
mod probes;
mod talk;
