#![no_main]

#[path = "../../tests/suite/fuzz/bytes.rs"]
mod bytes;
#[path = "../../tests/suite/guides/table.rs"]
mod guides;
#[path = "../../tests/suite/doors/nth.rs"]
mod nth;
#[path = "../../tests/suite/doors/objects.rs"]
mod objects;
#[path = "../../tests/suite/doors/sharer.rs"]
mod sharer;
#[path = "../../tests/suite/doors/shy.rs"]
mod shy;
#[path = "../../tests/suite/fuzz/world.rs"]
mod world;

libfuzzer_sys::fuzz_target!(|data: &[u8]| world::run(data));
