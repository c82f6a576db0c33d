//! Scenarios whose flows are steered by routers, which have to be on each of their links.

use proptest::prelude::*;
use proptest::sample::select;

use super::{connection, faults_without_mercy, queue, rate, rtt, workload};

/// Controllers that need routers of their own on each link, with what their receivers echo: [`steered`] gives them both.
pub const STEERED: [(&str, &str); 2] = [("xcp", "sum"), ("rcp", "last")];

/// Flows that routers steer, both ways, and others beside them.
pub fn steered() -> impl Strategy<Value = String> {
    let group = (rtt(), 1..4u32, 0..100u32, workload(), any::<[bool; 2]>());
    let groups = proptest::collection::vec(group, 1..5);
    let links = (rate(), queue(), rate(), queue(), faults_without_mercy());
    (select(STEERED.to_vec()), links, groups).prop_map(
        |((kind, echo), (rate, queue, reverse_rate, reverse_queue, faults), groups)| {
            let mut text = format!(
                "[dumbbell]\nrate = {rate}\nqueue = {queue}\nmeter = \"{kind}\"\nreverse_rate = {reverse_rate}\n\
                 reverse_queue = {reverse_queue}\nreverse_meter = \"{kind}\"\nbdp_rtt = \"50 ms\"\n{faults}\n"
            );
            for (i, (rtt, count, start, workload, [back, plain])) in groups.into_iter().enumerate() {
                let preset = if plain { "" } else { ", preset = \"ns2\"" };
                let steered = format!(
                    "controller = {{ kind = \"{kind}\"{preset} }}\n\
                     endpoint = {{ echo = \"{echo}\", receive_window = \"150 kB\", handshake = {plain} }}\n"
                );
                // The last of four is nobody's.
                let sender = if i == 3 { String::new() } else { connection(&steered, &workload) };
                let direction = if back { "reverse" } else { "forward" };
                text += &format!(
                    "[flow.g{i}]\nrtt = \"{rtt}\"\ncount = {count}\nstart = \"{start} ms\"\n\
                     {sender}direction = \"{direction}\"\n{workload}\n"
                );
            }
            text
        },
    )
}
