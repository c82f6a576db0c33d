//! What is read of captures, and what silences in them are found to be.

mod disorder;
mod formats;
mod pauses;
mod probes;
mod talk;
