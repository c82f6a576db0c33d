#![no_main]

#[path = "../../tests/suite/fuzz/bytes.rs"]
mod bytes;
#[path = "../../tests/suite/custom_parts/delay_backoff.rs"]
mod delay_backoff;
#[path = "../../tests/suite/custom_parts/fair_share.rs"]
mod fair_share;
#[path = "../../tests/suite/feedback_schemes.rs"]
mod feedback_schemes;
#[path = "../../tests/suite/custom_parts/mark_every_nth.rs"]
mod mark_every_nth;
#[path = "../../tests/suite/custom_parts/object_sequence.rs"]
mod object_sequence;
#[path = "../../tests/suite/fuzz/world.rs"]
mod world;

libfuzzer_sys::fuzz_target!(|data: &[u8]| world::run(data));
