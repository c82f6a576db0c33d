//! Tests of reading captures, and of classifying their silences.

mod disorder;
mod formats;
mod pauses;
mod probes;
mod talk;
