//! Tests of reading captures, and of classifying their silences.

mod conversation;
mod disorder;
mod formats;
mod packets;
mod pauses;
mod probes;
