//! What must hold in every scenario, at every instant: checked on scenarios drawn at random.

use std::sync::Arc;

use cwnd_scenario::Document;
use cwnd_sim::{Records, World};
use proptest::prelude::*;
use proptest::sample::select;

use crate::common::{column, scenario};

fn queue() -> impl Strategy<Value = String> {
    let limited = (select(vec!["red", "codel", "pie", "fq-codel"]), 2..60u32)
        .prop_map(|(kind, n)| format!("{{ kind = \"{kind}\", limit = \"{n} packets\" }}"));
    let fifo = (1..60u32).prop_map(|n| format!("{{ kind = \"fifo\", limit = \"{n} packets\" }}"));
    let plain = select(vec!["red", "codel", "pie", "fq-codel"]).prop_map(|k| format!("\"{k}\""));
    let preset = Just("{ kind = \"pie\", preset = \"abe\" }".to_owned());
    prop_oneof![2 => fifo, 2 => limited, 2 => plain, 1 => preset]
}

/// Some rate of a few Mbit/s: constant, in steps, or a trace.
fn rate() -> impl Strategy<Value = String> {
    let constant = (200..8000u32).prop_map(|k| format!("\"{k} kbit/s\""));
    let steps = (200..8000u32, 50..2000u32, 200..8000u32, 1..1000u32, 200..80_000u32).prop_map(
        |(initial, at, next, gap, last)| {
            format!(
                "{{ initial = \"{initial} kbit/s\", steps = [{{ at = \"{at} ms\", rate = \"{next} kbit/s\" }}, \
                 {{ at = \"{} ms\", rate = \"{last} kbit/s\" }}] }}",
                at + gap
            )
        },
    );
    let trace = proptest::collection::vec(0..40u64, 1..40).prop_map(|mut at_ms| {
        at_ms.sort_unstable();
        at_ms.push(at_ms.last().copied().unwrap_or(0) + 1);
        format!("{{ trace_ms = {at_ms:?} }}")
    });
    prop_oneof![3 => constant, 2 => steps, 1 => trace]
}

/// Loss, jitter and reordering; about half of the links have none.
fn faults() -> impl Strategy<Value = String> {
    let some = (0.0..0.05f64, 0..20u32, 0.0..0.1f64, 1..30u32).prop_map(
        |(loss, jitter, reorder, late)| {
            format!(
                "loss = {loss}\njitter = \"{jitter} ms\"\nreorder = {reorder}\nreorder_delay = \"{late} ms\""
            )
        },
    );
    prop_oneof![some, Just(String::new())]
}

fn controller() -> impl Strategy<Value = String> {
    let preset = |kind| {
        select(vec!["rfc", "abe", "paper", "freebsd", "ns-3", "neqo", "quicly"])
            .prop_map(move |p| format!("{{ kind = \"{kind}\", preset = \"{p}\" }}"))
    };
    let hystart = select(vec!["newreno", "cubic"])
        .prop_map(|kind| format!("{{ kind = \"{kind}\", slow_start = \"hystart++\" }}"));
    prop_oneof![preset("newreno"), preset("cubic"), hystart]
}

/// The receive window bounds what unlimited links would otherwise carry.
fn endpoint() -> impl Strategy<Value = String> {
    let recovery = select(vec!["tahoe", "reno", "newreno", "sack"]);
    let free = (recovery, any::<[bool; 4]>(), 1..4u32, 100..3000u32).prop_map(
        |(recovery, [ecn, timestamps, handshake, limited], ack_every, mss)| {
            format!(
                "{{ recovery = \"{recovery}\", ecn = {ecn}, timestamps = {timestamps}, handshake = {handshake}, \
                 limited_transmit = {limited}, ack_every = {ack_every}, mss = \"{mss} B\", receive_window = \"150 kB\" }}"
            )
        },
    );
    let preset = (select(vec!["rfc", "ns2", "linux"]), any::<bool>()).prop_map(|(preset, ecn)| {
        format!("{{ preset = \"{preset}\", ecn = {ecn}, receive_window = \"150 kB\" }}")
    });
    prop_oneof![2 => free, 1 => preset]
}

/// What a flow sends; also when bulk flows stop.
fn workload() -> impl Strategy<Value = String> {
    let size = || {
        prop_oneof![
            (1..200_000u32).prop_map(|n| format!("{n} B")),
            (1..50u32).prop_map(|k| format!("exponential({k} kB)")),
            (1..50u32).prop_map(|k| format!("pareto(1.3, {k} kB)")),
        ]
    };
    let bulk = (100..1900u32).prop_map(|ms| format!("stop = \"{ms} ms\""));
    let bytes = size().prop_map(|s| format!("workload = {{ kind = \"bytes\", size = \"{s}\" }}"));
    let on_off = (size(), 1..300u32).prop_map(|(s, off)| {
        format!(
            "workload = {{ kind = \"on-off\", size = \"{s}\", off = \"exponential({off} ms)\" }}"
        )
    });
    let poisson = (size(), 10..200u32).prop_map(|(s, gap)| {
        format!("workload = {{ kind = \"poisson\", interval = \"{gap} ms\", size = \"{s}\" }}")
    });
    prop_oneof![bulk, bytes, on_off, poisson, Just(String::new())]
}

fn rtt() -> impl Strategy<Value = String> {
    prop_oneof![
        (0..150u32).prop_map(|ms| format!("{} ms", ms + 1)),
        (1..50u32, 0..100u32)
            .prop_map(|(low, more)| format!("uniform({low} ms, {} ms)", low + more)),
        (1..50u32).prop_map(|ms| format!("lognormal({ms} ms, 0.7)")),
    ]
}

fn dumbbell(workload: BoxedStrategy<String>) -> impl Strategy<Value = String> {
    let group = (rtt(), 1..4u32, 0..100u32, controller(), endpoint(), workload, any::<bool>());
    let groups = proptest::collection::vec(group, 1..4);
    let edge_rate = prop_oneof![2 => Just("none"), 1 => Just("5 Mbit/s")];
    (rate(), queue(), rate(), queue(), faults(), edge_rate, groups).prop_map(
        |(rate, queue, reverse_rate, reverse_queue, faults, edge_rate, groups)| {
            let mut text = format!(
                "[dumbbell]\nrate = {rate}\nqueue = {queue}\nreverse_rate = {reverse_rate}\n\
                 reverse_queue = {reverse_queue}\nedge_rate = \"{edge_rate}\"\nbdp_rtt = \"50 ms\"\n{faults}\n"
            );
            for (i, (rtt, count, start, controller, endpoint, workload, back)) in
                groups.into_iter().enumerate()
            {
                let direction = if back { "reverse" } else { "forward" };
                text += &format!(
                    "[flow.g{i}]\nrtt = \"{rtt}\"\ncount = {count}\nstart = \"{start} ms\"\n\
                     controller = {controller}\nendpoint = {endpoint}\ndirection = \"{direction}\"\n{workload}\n"
                );
            }
            text
        },
    )
}

/// Four nodes in a ring of duplex links, so that there are routes of one to three links.
fn graph(workload: BoxedStrategy<String>) -> impl Strategy<Value = String> {
    const NODES: [&str; 4] = ["a", "b", "c", "d"];
    let rates = prop_oneof![3 => rate(), 1 => Just("\"none\"".to_owned())];
    let link = (rates, 1..40u32, queue(), faults());
    let group = (0..4usize, 1..4usize, 1..3u32, controller(), endpoint(), workload);
    (proptest::collection::vec(link, 4), proptest::collection::vec(group, 1..4)).prop_map(
        |(links, groups)| {
            let mut text = String::new();
            for (i, (rate, delay, queue, faults)) in links.into_iter().enumerate() {
                text += &format!(
                    "[link.l{i}]\nfrom = \"{}\"\nto = \"{}\"\nrate = {rate}\ndelay = \"{delay} ms\"\n\
                     queue = {queue}\nduplex = true\nbdp_rtt = \"80 ms\"\n{faults}\n",
                    NODES[i],
                    NODES[(i + 1) % 4]
                );
            }
            for (i, (from, hops, count, controller, endpoint, workload)) in
                groups.into_iter().enumerate()
            {
                text += &format!(
                    "[flow.g{i}]\nfrom = \"{}\"\nto = \"{}\"\ncount = {count}\ncontroller = {controller}\n\
                     endpoint = {endpoint}\n{workload}\n",
                    NODES[from],
                    NODES[(from + hops) % 4]
                );
            }
            text
        },
    )
}

fn any_scenario() -> impl Strategy<Value = String> {
    let network = prop_oneof![dumbbell(workload().boxed()), graph(workload().boxed())];
    (network, any::<u32>(), 0..1500u32).prop_map(|(network, seed, warmup)| {
        format!(
            "[run]\nduration = \"2 s\"\nwarmup = \"{warmup} ms\"\nseed = {seed}\nsample = \"90 ms\"\n{network}"
        )
    })
}

/// Transfers that end, and all the time they may need.
fn transfers() -> impl Strategy<Value = String> {
    let bytes = (1..150_000u32)
        .prop_map(|n| format!("workload = {{ kind = \"bytes\", size = \"exponential({n} B)\" }}"));
    let network = prop_oneof![dumbbell(bytes.clone().boxed()), graph(bytes.boxed())];
    (network, any::<u32>()).prop_map(|(network, seed)| {
        format!("[run]\nduration = \"5000 s\"\nseed = {seed}\nsample = \"none\"\n{network}")
    })
}

/// The tables say what they must.
fn check_records(records: &Records) {
    let link = |name: &str| column(&records.links, name);
    let (arrived, delivered) = (link("arrived_total_pkts"), link("delivered_total_pkts"));
    let (dropped, marked) = (link("dropped_total_pkts"), link("marked_total_pkts"));
    let queued = link("queued_pkts");
    let reasons = ["overlimit", "red_early", "red_forced", "codel", "pie", "link_loss"]
        .map(|reason| link(&format!("drops_{reason}")));
    for i in 0..records.links.len() {
        assert_eq!(arrived[i], delivered[i] + dropped[i] + queued[i], "link {i}");
        assert_eq!(link("dropped_pkts")[i], reasons.iter().map(|r| r[i]).sum::<f64>());
        for (part, whole) in [
            ("arrived_pkts", &arrived),
            ("delivered_pkts", &delivered),
            ("dropped_pkts", &dropped),
            ("marked_pkts", &marked),
            ("delivered_data_pkts", &link("delivered_pkts")),
        ] {
            assert!(link(part)[i] <= whole[i], "link {i}: {part}");
        }
        let utilisation = link("utilisation")[i];
        let seconds = 0.5;
        // A packet that was on the line when counting began counts in full.
        let one_packet = 3052.0 * 8.0 / (link("rate_bit_s")[i] * seconds);
        assert!(utilisation.is_nan() || utilisation <= 1.0 + one_packet, "{utilisation}");
    }
    let flow = |name: &str| column(&records.flows, name);
    let (size, received, fct) = (flow("size_bytes"), flow("bytes_received"), flow("fct_s"));
    let (min, base) = (flow("rtt_min_us"), flow("rtt_base_us"));
    for i in 0..records.flows.len() {
        assert!(fct[i].is_nan() || received[i] == size[i], "flow {i} has what it was sent");
        assert!(size[i].is_nan() || received[i] <= size[i], "flow {i} has no more");
        assert!(min[i].is_nan() || min[i] >= base[i], "flow {i}: {} under {}", min[i], base[i]);
        assert!(flow("delivered_bytes")[i] <= received[i]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn every_packet_that_was_sent_is_somewhere_once_at_every_instant(text in any_scenario()) {
        let mut world = World::new(scenario(&text));
        let mut last = world.now();
        let mut events = 0_u64;
        while world.step() {
            prop_assert!(world.now() >= last, "time goes forward");
            last = world.now();
            events += 1;
            if events.is_multiple_of(5) {
                prop_assert_eq!(world.audit(), Ok(()));
            }
        }
        check_records(&world.finish());
    }

    #[test]
    fn every_transfer_ends_when_it_has_the_time(text in transfers()) {
        let mut world = World::new(scenario(&text));
        while world.step() {}
        prop_assert_eq!(world.audit(), Ok(()));
        let records = world.finish();
        check_records(&records);
        let (size, received) =
            (column(&records.flows, "size_bytes"), column(&records.flows, "bytes_received"));
        for (i, fct) in column(&records.flows, "fct_s").into_iter().enumerate() {
            prop_assert!(!fct.is_nan(), "flow {} has {} of {} bytes", i, received[i], size[i]);
            prop_assert_eq!(received[i], size[i]);
        }
        prop_assert!(column(&records.links, "queued_pkts").iter().all(|&q| q == 0.0));
    }
}

#[test]
fn the_scenarios_to_start_from_keep_their_packets() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenarios");
    let read = |name: &str| {
        std::fs::read_to_string(folder.join(name)).map_err(|error| format!("{name}: {error}"))
    };
    let mut files = 0;
    for entry in std::fs::read_dir(&folder).expect("there are scenarios") {
        let name =
            entry.expect("a folder can be listed").file_name().to_string_lossy().into_owned();
        if !name.ends_with(".toml") {
            continue;
        }
        files += 1;
        let text = read(&name).expect("a scenario is text");
        let plan = Document::parse(&name, &text, &read).and_then(|d| d.plan());
        let mut cells = plan.unwrap_or_else(|problems| panic!("{problems}")).cells;
        let mut world = World::new(Arc::new(cells.swap_remove(0).scenario));
        let mut events = 0_u64;
        while world.step() {
            events += 1;
            if events.is_multiple_of(1009) {
                assert_eq!(world.audit(), Ok(()), "{name}");
            }
        }
        check_records(&world.finish());
    }
    assert!(files >= 5, "{files} scenarios");
}
