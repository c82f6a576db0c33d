//! Quantities with a unit, distributions of them, and random streams.
//!
//! Quantities are integers: time in nanoseconds, sizes in bytes, rates in bits per second. Text
//! with units (`"10 Mbit/s"`, `"100 ms"`, `"64 kB"`) is read and printed here, exactly, without
//! floating point.
//!
//! Random streams have names ([`Streams`]): an added flow changes no draw of another.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

#[macro_use]
extern crate alloc;

pub mod dist;
mod parse;
mod print;
mod queue_size;
mod rate;
mod rng;
mod time;

pub use dist::{CountDist, DurationDist, Shape, SizeDist};
pub use parse::{ParseError, parse_bytes, parse_duration, parse_rate, split_number};
pub use queue_size::{Levels, LinkProperties, QueueLimit, QueueSize};
pub use rate::{Bytes, Divisor, Rate, Serialiser};
pub use rng::{Draw, DrawLog, Rng, Streams, splitmix64};
pub use time::{Duration, Time};
