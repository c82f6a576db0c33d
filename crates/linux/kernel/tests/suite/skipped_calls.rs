//! Program calls that the kernel skips (bpf/skipped_calls.h): untold.bpf.c skips some of a
//! controller's. A window or threshold that no program computed must last no longer than until the
//! next ACK.

use libbpf_rs::{MapCore as _, MapFlags};

use crate::machine;

#[test]
fn what_was_not_told_is_made_up_for_before_the_next_ack_is_processed() {
    let Some(_root) = machine::root_with_btf() else { return };
    let name = machine::unique("untold");
    let (object, _link) = machine::load_controller("untold", &name);
    let paths = [
        "--seconds 8 --mbit 10 --rtt-ms 20 --drop-above 20000",
        "--seconds 8 --mbit 10 --rtt-ms 30 --mark-above 20000",
        "--seconds 8 --mbit 10 --rtt-ms 30 --drop-above 30000 --dead 1",
    ];
    // One at a time: the skipped calls are those of one connection.
    for path in paths {
        machine::flow(&name, path);
    }
    let [acks, left_out, wild, left_wild] = machine::tally(&object)[..] else { panic!("a tally") };
    let untold = counter(&object, UNTOLD);
    eprintln!(
        "{acks} ACKs, {left_out} left out, {wild} wild, {left_wild} left, {untold} made up for"
    );
    assert!(acks > 1_000 && left_out >= 3 && wild >= 3, "{acks} {left_out} {wild}");
    assert_eq!(left_wild, 0);
    assert!(untold >= left_out, "{untold} of {left_out}");
}

/// Index of the counter in CAUSES of bpf/cause.h, and offset of the counters in bpf/info_map.h.
const UNTOLD: usize = 7;
const COUNTERS: usize = 16 + 16 + 20 * 4 + 4 * 4;

fn counter(object: &libbpf_rs::Object, index: usize) -> u64 {
    let card = object.maps().find(|map| map.name() == "cwnd_card").unwrap();
    let bytes = card.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY).unwrap().unwrap();
    let at = COUNTERS + 8 * index;
    u64::from_ne_bytes(bytes[at..at + 8].try_into().unwrap())
}
