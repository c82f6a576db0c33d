//! Replay of inputs that fuzzers found, by the fuzz targets of `fuzz/`.
//!
//! A corpus holds an input for each code path that a fuzzer reached, and each input that once
//! failed.

#[path = "../../fuzz/bytes.rs"]
mod bytes;
#[path = "../../fuzz/fuzz_targets/capture.rs"]
mod capture;
#[path = "../../fuzz/fuzz_targets/endpoint.rs"]
mod endpoint;
#[path = "../../fuzz/fuzz_targets/events.rs"]
mod events;
#[cfg(target_os = "linux")]
#[path = "../../fuzz/fuzz_targets/keeper.rs"]
mod keeper;
#[cfg(target_os = "linux")]
#[path = "../../fuzz/fuzz_targets/names.rs"]
mod names;
#[cfg(target_os = "linux")]
#[path = "../../fuzz/fuzz_targets/netlink.rs"]
mod netlink;
#[path = "../../fuzz/fuzz_targets/packet.rs"]
mod packet;
#[path = "../../fuzz/fuzz_targets/queue.rs"]
mod queue;
#[path = "../../fuzz/fuzz_targets/router.rs"]
mod router;
#[path = "../../fuzz/fuzz_targets/scenario.rs"]
mod scenario;
#[path = "../../fuzz/fuzz_targets/world.rs"]
mod world;

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use crate::custom_parts::parts;
use crate::feedback_schemes;

/// Runs a target on each input of its archive.
fn replay(target: &str, run: fn(&[u8])) {
    let corpora = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus");
    let path = corpora.join(target).with_extension("tar.gz");
    let file = File::open(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(file));
    let mut inputs = 0;
    for entry in archive.entries().expect("an archive can be read") {
        let mut entry = entry.expect("an archive can be read");
        let mut data = Vec::new();
        entry.read_to_end(&mut data).expect("an input can be read");
        let outcome = std::panic::catch_unwind(|| run(&data));
        let name = entry.path().expect("inputs have names").into_owned();
        assert!(outcome.is_ok(), "{} of {} fails", name.display(), path.display());
        inputs += 1;
    }
    assert!(inputs >= 5, "{inputs} inputs in {}", path.display());
}

#[test]
fn what_scenario_files_were_tried_gives_runs_or_errors() {
    replay("scenario", scenario::run);
}

#[test]
fn what_segments_were_tried_upset_no_endpoint() {
    replay("endpoint", endpoint::run);
}

#[test]
fn what_operations_were_tried_upset_no_queue() {
    replay("queue", queue::run);
}

#[test]
fn what_packets_were_tried_upset_no_router() {
    replay("router", router::run);
}

#[test]
fn what_bytes_were_tried_are_packets_or_none() {
    replay("packet", packet::run);
}

#[test]
fn what_captures_were_tried_are_read_or_refused() {
    replay("capture", capture::run);
}

#[test]
fn what_was_pushed_came_out_in_order() {
    replay("events", events::run);
}

#[test]
fn what_worlds_were_tried_lost_no_packet() {
    replay("world", world::run);
}

#[test]
#[cfg(target_os = "linux")]
fn what_replies_were_tried_upset_no_reader_of_netlink() {
    replay("netlink", netlink::run);
}

#[test]
#[cfg(target_os = "linux")]
fn what_messages_were_tried_upset_no_keeper() {
    replay("keeper", keeper::run);
}

#[test]
#[cfg(target_os = "linux")]
fn what_texts_were_tried_upset_no_relay_of_names() {
    replay("names", names::run);
}

proptest::proptest! {
    #[test]
    fn no_bytes_upset_a_router(data in proptest::collection::vec(proptest::num::u8::ANY, 0..3000)) {
        router::run(&data);
    }
}
