//! Recovery of flows with explicit feedback from a window of one segment.

use cwnd_tables::Records;

use crate::common::{BOTTLENECK, column, is_long, run};
use crate::feedback_schemes::{ControllerPreset, controller_presets};

/// Limit on the round trips that a flow stays at one segment while its link is loaded less than
/// half.
const ROUND_TRIPS: f64 = 20.0;

/// A link of the BMCC paper (Qazi, Andrew, Znati 2009, Fig. 10 to 12).
#[derive(Clone, Copy)]
struct Link {
    kbit: u32,
    rtt_ms: u32,
    flows: u32,
    buffer: &'static str,
}

/// Paths on which flows once stalled for 200 to 450 round trips.
const SOME: [Link; 2] = [
    Link { kbit: 20_000, rtt_ms: 500, flows: 5, buffer: "20 packets" },
    Link { kbit: 2_000, rtt_ms: 1_000, flows: 5, buffer: "1 BDP" },
];

fn all() -> Vec<Link> {
    let rates = [100, 1_000, 10_000, 45_000, 155_000].map(|kbit| (kbit, 80, 5));
    let rtts = [1, 5, 20, 80, 200, 500, 1_000, 2_000].map(|rtt_ms| (20_000, rtt_ms, 5));
    let flows = [1, 5, 20, 100].map(|flows| (45_000, 80, flows));
    let links = rates.into_iter().chain(rtts).chain(flows);
    let buffers = ["20 packets", "0.25 BDP", "1 BDP"];
    let with = |(kbit, rtt_ms, flows)| buffers.map(|buffer| Link { kbit, rtt_ms, flows, buffer });
    links.flat_map(with).collect()
}

/// Returns the longest time, in round trips, that a flow has a window below two segments while the
/// link is loaded less than half, and the flow.
fn longest(pair: &ControllerPreset, link: Link, seconds: u32) -> (f64, f64) {
    let Link { kbit, rtt_ms, flows, buffer } = link;
    let sample_ms = (rtt_ms / 2).clamp(5, 200);
    let endpoint = "mss = \"960 B\", header = \"40 B\", ack_size = \"40 B\", ack_every = 1, \
                    initial_window = 2, clock = \"1 us\", rto_min = \"200 ms\"";
    let records = run(&format!(
        "[run]\nduration = \"{seconds} s\"\nsample = \"{sample_ms} ms\"\n\
         [dumbbell]\nrate = \"{kbit} kbit/s\"\nbdp_rtt = \"{rtt_ms} ms\"\n\
         queue = {{ kind = \"fifo\", limit = \"{buffer}\" }}\n\
         reverse_queue = {{ kind = \"fifo\", limit = \"{buffer}\" }}\n{}\
         [flow.main]\nrtt = \"{rtt_ms} ms\"\ncount = {flows}\nstart = \"uniform(0 s, 1 s)\"\n{}",
        pair.beside(),
        pair.sender(endpoint),
    ));
    let idle = idle_samples(&records, f64::from(kbit) * 1e3);
    let (mut longest, mut of) = (0.0_f64, 0.0);
    let ids = column(&records.flow_series, "flow_id");
    let windows = column(&records.flow_series, "snd_cwnd_pkts");
    let times = column(&records.flow_series, "time_s");
    let mut since = vec![None; flows as usize];
    for ((id, window), time) in ids.into_iter().zip(windows).zip(times) {
        let sample = (time * 1e3 / f64::from(sample_ms)).round() as usize;
        let since = &mut since[id as usize];
        if window >= 2.0 || !idle[sample.min(idle.len() - 1)] {
            *since = None;
            continue;
        }
        let rounds = (time - *since.get_or_insert(time)) * 1e3 / f64::from(rtt_ms);
        if rounds > longest {
            (longest, of) = (rounds, id);
        }
    }
    (longest, of)
}

/// Returns `true` for each sample interval in which packets of 1000 B arrived at less than half of
/// the rate in bit/s, `false` for the others and for the first sample.
fn idle_samples(records: &Records, rate: f64) -> Vec<bool> {
    let links = column(&records.link_series, "link_id");
    let here: Vec<_> = (0..links.len()).filter(|&i| links[i] == BOTTLENECK as f64).collect();
    let came = column(&records.link_series, "enq");
    let times = column(&records.link_series, "time_s");
    let load = |pair: &[usize]| {
        let bits = (came[pair[1]] - came[pair[0]]) * 8e3;
        bits / rate / (times[pair[1]] - times[pair[0]])
    };
    let first = [false];
    first.into_iter().chain(here.windows(2).map(|pair| load(pair) < 0.5)).collect()
}

#[test]
fn no_guided_flow_stays_at_one_segment_on_an_idle_link() {
    let links = if is_long() { all() } else { SOME.to_vec() };
    for pair in controller_presets().iter().filter(|pair| pair.needs_feedback()) {
        for &link in &links {
            let seconds = (link.rtt_ms / 10).clamp(30, 120);
            let (rounds, flow) = longest(pair, link, seconds);
            let Link { kbit, rtt_ms, flows, buffer } = link;
            assert!(
                rounds <= ROUND_TRIPS,
                "{}: flow {flow} for {rounds:.0} round trips; {kbit} kbit/s, {rtt_ms} ms, {flows} \
                flows, {buffer}",
                pair.name()
            );
        }
    }
}
