//! Random scenarios: any network, queue and controller, and paths with impairments.

use cwnd_apps::{Transport, WorkloadParams};
use cwnd_aqm::{MessengerParams, MeterParams, QueueParams};
use cwnd_cc::ControllerParams;
use cwnd_packet::HasContract;
use cwnd_schema::{Field, ParamsChoice, ValueType};
use proptest::prelude::*;
use proptest::sample::select;

use crate::feedback_schemes::FEEDBACK_SCHEMES;
use crate::generators::{endpoint, feedback_group, persistent_timer, stack, timer};
use crate::quic;

/// Returns each registered kind without strict requirements, plain and with each of its presets, as
/// an unclosed inline table.
fn registered<T: ParamsChoice + HasContract>() -> Vec<String> {
    let mut all = Vec::new();
    for kind in T::KINDS {
        let plain = T::of_kind(kind.name).expect("it is registered");
        // A kind with strict requirements must have a feedback scheme, or no test would cover
        // it.
        if let Some(needs) =
            plain.contract().requirements.into_iter().find(|requirement| requirement.required)
        {
            let given = FEEDBACK_SCHEMES.iter().any(|feedback| feedback.controller == kind.name);
            assert!(given, "`{}` is drawn where it gets what it needs: {needs:?}", kind.name);
            continue;
        }
        let plain_text = format!("{{ kind = \"{}\"", kind.name);
        let presets = plain.params().presets().iter();
        all.extend(presets.map(|p| format!("{plain_text}, preset = \"{}\"", p.name)));
        all.push(plain_text);
    }
    all
}

fn queue() -> impl Strategy<Value = String> {
    let kinds = registered::<QueueParams>();
    let limited = (select(kinds.clone()), 2..60u32)
        .prop_map(|(kind, n)| format!("{kind}, limit = \"{n} packets\" }}"));
    let fifo = (1..60u32).prop_map(|n| format!("{{ kind = \"fifo\", limit = \"{n} packets\" }}"));
    // A FIFO of one BDP of a slow link has no room for a packet.
    let own_limit = kinds.into_iter().filter(|kind| !kind.contains("\"fifo\"")).collect::<Vec<_>>();
    let plain = select(own_limit).prop_map(|kind| format!("{kind} }}"));
    prop_oneof![2 => fifo, 2 => limited, 3 => plain]
}

/// Generates meter and messenger beside a queue; usually none.
fn beside() -> impl Strategy<Value = String> {
    let of = |key: &'static str, kinds: Vec<String>| {
        let named = select(kinds).prop_map(move |kind| format!("{key} = {kind} }}\n"));
        prop_oneof![3 => Just(String::new()), 1 => named]
    };
    let meter = of("meter", registered::<MeterParams>());
    let messenger = of("messenger", registered::<MessengerParams>());
    (meter, messenger).prop_map(|(meter, messenger)| meter + &messenger)
}

/// Generates a rate, usually of a few Mbit/s: constant, in steps, or a trace.
fn rate() -> impl Strategy<Value = String> {
    let constant = (200..8000u32).prop_map(|k| format!("\"{k} kbit/s\""));
    // From a modem to far more than the windows can fill.
    let extreme = prop_oneof![
        (9_000..200_000u32).prop_map(|bits| format!("\"{bits} bit/s\"")),
        (20..40_000u32).prop_map(|mbit| format!("\"{mbit} Mbit/s\"")),
    ];
    let steps = (200..8000u32, 50..2000u32, 200..8000u32, 1..1000u32, 200..80_000u32).prop_map(
        |(initial, at, next, gap, last)| {
            format!(
                "{{ initial = \"{initial} kbit/s\", steps = [{{ at = \"{at} ms\", \
                 rate = \"{next} kbit/s\" }}, {{ at = \"{} ms\", rate = \"{last} kbit/s\" }}] }}",
                at + gap
            )
        },
    );
    let trace = proptest::collection::vec(0..40u64, 1..40).prop_map(|mut at_ms| {
        at_ms.sort_unstable();
        at_ms.push(at_ms.last().copied().unwrap_or(0) + 1);
        format!("{{ trace_ms = {at_ms:?} }}")
    });
    prop_oneof![6 => constant, 4 => steps, 2 => trace, 1 => extreme]
}

/// Generates loss, jitter, reordering and steps of the delay; three in seven have none.
fn faults() -> impl Strategy<Value = String> {
    let some = (0.0..0.05f64, 0..20u32, 0.0..0.1f64, 1..30u32).prop_map(
        |(loss, jitter, reorder, late)| {
            format!(
                "loss = {loss}\njitter = \"{jitter} ms\"\nreorder = {reorder}\n\
                 reorder_delay = \"{late} ms\""
            )
        },
    );
    let route =
        (0..20u32, 0..1500u32, 0..90u32, 1..300u32).prop_map(|(jitter, at, added, later)| {
            format!(
                "jitter = \"{jitter} ms\"\n\
                 delay_steps = [{{ at = \"{at} ms\", added = \"{added} ms\" }}, \
                 {{ at = \"{} ms\", added = \"0 ms\" }}]",
                at + later
            )
        });
    let noise = (1..20u32, 0.0..2.0f64, 0..90u32, 0.0..0.05f64).prop_map(
        |(median, sigma, correlation, loss)| {
            format!(
                "loss = {loss}\njitter = \"lognormal({median} ms, {sigma:.3})\"\n\
                 jitter_correlation = \"{correlation} ms\"\n\
                 delay_steps = [{{ at = \"20 ms\", added = \"{correlation} ms\" }}]\n\
                 delay_steps_period = \"100 ms\""
            )
        },
    );
    prop_oneof![2 => some, 1 => route, 1 => noise, 3 => Just(String::new())]
}

/// Generates impairments that may include periodic loss, which can hit every retransmission of a
/// segment: delivery is not guaranteed.
fn impairments_with_periodic_loss() -> impl Strategy<Value = String> {
    prop_oneof![4 => faults(), 1 => (2..200u32).prop_map(|n| format!("loss_every = {n}"))]
}

fn controller() -> impl Strategy<Value = String> {
    let any = select(registered::<ControllerParams>()).prop_map(|kind| format!("{kind} }}"));
    let hystart = select(vec!["newreno", "cubic"])
        .prop_map(|kind| format!("{{ kind = \"{kind}\", slow_start = \"hystart++\" }}"));
    let backing_off = (select(vec!["newreno", "cubic"]), 0.05..0.99f64, 0.05..0.99f64).prop_map(
        |(kind, beta, beta_ecn)| {
            format!("{{ kind = \"{kind}\", beta = {beta:.3}, beta_ecn = {beta_ecn:.3} }}")
        },
    );
    let by_delay = (1..100u32, 0.05..1.0f64, prop::bool::ANY, 1..300u32).prop_map(
        |(threshold, delta, per_packet, wrong)| {
            format!(
                "{{ kind = \"delay-aimd\", threshold = \"{threshold} ms\", delta = {delta:.3}, \
                 per_packet = {per_packet}, initial_min_rtt = \"{wrong} ms\" }}"
            )
        },
    );
    let adaptive = (select(vec!["newreno", "cubic"]), 0.05..1.0f64)
        .prop_map(|(kind, delta)| format!("{{ kind = \"{kind}\", adaptive_delta = {delta:.3} }}"));
    prop_oneof![2 => any, 1 => hystart, 1 => backing_off, 1 => by_delay, 1 => adaptive]
}

/// Generates the workload of a flow, and the stop of bulk flows.
fn workload() -> impl Strategy<Value = String> {
    let size = || {
        prop_oneof![
            (1..200_000u32).prop_map(|n| format!("{n} B")),
            (1..50u32).prop_map(|k| format!("exponential({k} kB)")),
            (1..50u32).prop_map(|k| format!("pareto(1.3, {k} kB)")),
            (1..50u32).prop_map(|k| format!("min(weibull(0.5, {k} kB), 1 MB)")),
            Just("mondal-trace-3".to_owned()),
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
    let connections = prop_oneof![
        2 => Just(String::new()),
        1 => Just(
            ", connections = \"object\", parallel = \"none\", \
             object_gap = \"exponential(5 ms)\""
                .to_owned()
        ),
        1 => (1..4u32).prop_map(|n| format!(", connections = \"object\", parallel = {n}")),
    ];
    let pages = prop_oneof![
        3 => (1..4u32, 1..4u32).prop_map(|(p, o)| (p.to_string(), o.to_string())),
        1 => Just(("\"exponential(2)\"".to_owned(), "\"lomax(1.5, 3)\"".to_owned())),
    ];
    let request = (1..9_000u32, 0..60u32, 0..60u32);
    let web = (size(), any::<bool>(), pages, request, connections);
    let web = web.prop_map(|(s, arrive, (pages, objects), (request, server, reading), each)| {
        let interval = if arrive { ", interval = \"40 ms\"" } else { "" };
        format!(
            "workload = {{ kind = \"web\", size = \"{s}\", pages = {pages}, \
             objects = {objects}, request = \"{request} B\", server_time = \"{server} ms\", \
             reading = \"{reading} ms\"{interval}{each} }}"
        )
    });
    let bursts = (size(), 10..200u32, 1..500u32, 0..500u32).prop_map(|(s, gap, on, off)| {
        format!(
            "workload = {{ kind = \"bytes\", size = \"{s}\" }}\n\
             arrivals = {{ kind = \"on-off\", interval = \"{gap} ms\", \
             on = \"pareto(1.5, {on} ms)\", off = \"uniform(0 ms, {off} ms)\" }}"
        )
    });
    let recorded = (size(), proptest::collection::vec((0..2000u32, 1..90_000u32), 1..20)).prop_map(
        |(s, rows)| {
            let row = |(at, size): &(u32, u32)| format!("{at} ms, , , {size} B");
            let rows: Vec<String> = rows.iter().map(row).collect();
            format!(
                "workload = {{ kind = \"bytes\", size = \"{s}\" }}\n\
                 arrivals = {{ kind = \"list\", rows = \"{}\" }}",
                rows.join("; ")
            )
        },
    );
    let users = (size(), any::<bool>(), 0..300u32).prop_map(|(s, asked, pause)| {
        let kind = if asked { "web" } else { "bytes" };
        format!(
            "workload = {{ kind = \"{kind}\", size = \"{s}\" }}\narrivals = {{ kind = \"closed\", \
             pause = \"uniform(0 ms, {pause} ms)\" }}"
        )
    });
    let all: Vec<_> = WorkloadParams::KINDS.iter().map(|kind| of_kind(kind.name).boxed()).collect();
    let any = (0..all.len()).prop_flat_map(move |kind| all[kind].clone());
    prop_oneof![
        3 => bulk,
        3 => bytes,
        3 => on_off,
        3 => poisson,
        3 => web,
        2 => bursts,
        1 => recorded,
        2 => users,
        3 => Just(String::new()),
        1 => datagrams(),
        2 => any,
    ]
}

/// Generates a workload of this kind, with a value for each required parameter.
pub fn of_kind(kind: &'static str) -> impl Strategy<Value = String> {
    let params = WorkloadParams::of_kind(kind).expect("it is registered");
    let required: Vec<Field> =
        params.params().fields().iter().copied().filter(|field| field.required).collect();
    proptest::collection::vec(1..100u32, required.len()).prop_map(move |drawn| {
        let given: Vec<String> = required
            .iter()
            .zip(drawn)
            .map(|(field, n)| format!(", {} = {}", field.name, written(field.value_type, n)))
            .collect();
        format!("workload = {{ kind = \"{kind}\"{} }}", given.concat())
    })
}

/// Generates a source of datagrams, possibly faster than any link.
fn datagrams() -> impl Strategy<Value = String> {
    let cycle = prop_oneof![
        Just(String::new()),
        (1..300u32, 1..300u32).prop_map(|(on, off)| {
            format!(", on = \"exponential({on} ms)\", off = \"uniform(0 ms, {off} ms)\"")
        })
    ];
    (10..20_000u32, 100..3000u32, select(vec!["constant", "poisson"]), cycle).prop_map(
        |(rate, size, arrivals, cycle)| {
            format!(
                "workload = {{ kind = \"udp\", rate = \"{rate} kbit/s\", size = \"{size} B\", \
                 arrivals = \"{arrivals}\"{cycle} }}"
            )
        },
    )
}

fn rtt() -> impl Strategy<Value = String> {
    prop_oneof![
        (0..150u32).prop_map(|ms| format!("{} ms", ms + 1)),
        (1..50u32, 0..100u32)
            .prop_map(|(low, more)| format!("uniform({low} ms, {} ms)", low + more)),
        (1..50u32).prop_map(|ms| format!("lognormal({ms} ms, 0.7)")),
    ]
}

/// Generates an attacker of each connection of a group; usually none.
fn attacker() -> impl Strategy<Value = String> {
    let knows = select(vec!["addresses", "ports", "packets"]);
    let quenches = (knows, any::<bool>(), 1..500u32, 1..20u32, 0..900u32).prop_map(
        |(knows, marked, rate, ports, start)| {
            format!(
                "attacker = {{ kind = \"quench\", knows = \"{knows}\", marked = {marked}, \
                 rate = {rate}, ports = {ports}, start = \"{start} ms\" }}\n"
            )
        },
    );
    prop_oneof![3 => Just(String::new()), 1 => quenches]
}

/// Generates the keys of a group of connections, usually of TCP, that datagrams lack.
fn sender(timer: BoxedStrategy<String>) -> impl Strategy<Value = String> {
    let tcp = (controller(), endpoint(timer), attacker());
    let tcp = tcp.prop_map(|(controller, endpoint, attacker)| {
        format!("controller = {controller}\n{endpoint}\n{attacker}")
    });
    prop_oneof![5 => tcp, 1 => quic::sender()]
}

/// Key that selects QUIC for a sender.
const QUIC: &str = "stack = \"quic\"";

/// Returns the keys of a connection; none for datagrams, which have no connection.
fn connection(sender: &str, workload: &str) -> String {
    let kind = workload.split("kind = \"").nth(1).and_then(|rest| rest.split('"').next());
    let facts = WorkloadParams::of_kind(kind.unwrap_or("bulk")).expect("a kind").facts();
    match facts.transport {
        Transport::Datagrams { .. } => String::new(),
        // Clients open connections of TCP only.
        Transport::Connection if facts.client_opens && sender.contains(QUIC) => String::new(),
        Transport::Connection => sender.to_owned(),
    }
}

fn dumbbell(
    workload: BoxedStrategy<String>,
    faults: BoxedStrategy<String>,
    timer: BoxedStrategy<String>,
) -> impl Strategy<Value = String> {
    let sender = (sender(timer.clone()), stack(), timer);
    let group = (rtt(), 1..4u32, 0..100u32, sender, workload, any::<bool>());
    let groups = proptest::collection::vec(group, 1..4);
    let edge_rate = prop_oneof![2 => Just("none"), 1 => Just("5 Mbit/s")];
    let beside = (beside(), feedback_group());
    (rate(), queue(), beside, rate(), queue(), faults, edge_rate, groups).prop_map(
        |(
            rate,
            queue,
            (beside, feedback),
            reverse_rate,
            reverse_queue,
            faults,
            edge_rate,
            groups,
        )| {
            let beside = feedback.map_or(beside, |feedback| feedback.beside());
            let mut text = format!(
                "[dumbbell]\nrate = {rate}\nqueue = {queue}\n\
                 {beside}reverse_rate = {reverse_rate}\nreverse_queue = {reverse_queue}\n\
                 edge_rate = \"{edge_rate}\"\nbdp_rtt = \"50 ms\"\n{faults}\n"
            );
            for (i, group) in groups.into_iter().enumerate() {
                let (rtt, count, start, (sender, stack, timer), workload, back) = group;
                let direction = if back { "reverse" } else { "forward" };
                // The third group has no explicit feedback.
                let feedback = feedback.filter(|_| i < 2);
                let sender = feedback.map_or(sender, |feedback| stack + &feedback.sender(&timer));
                text += &format!(
                    "[flow.g{i}]\nrtt = \"{rtt}\"\ncount = {count}\nstart = \"{start} ms\"\n\
                     {}direction = \"{direction}\"\n{workload}\n",
                    connection(&sender, &workload)
                );
            }
            text
        },
    )
}

/// Routing of a group in a graph.
#[derive(Clone, Copy, Debug)]
enum Way {
    Shortest,
    /// Data and ACKs go around the ring in the given directions.
    Given([bool; 2]),
    /// Flows go between several nodes.
    Several(&'static str),
    /// Flows go between drawn peers.
    Peers,
}

/// Generates four nodes in a ring of duplex links, with routes of one to three links.
fn graph(
    workload: BoxedStrategy<String>,
    faults: BoxedStrategy<String>,
    timer: BoxedStrategy<String>,
) -> impl Strategy<Value = String> {
    const NODES: [&str; 4] = ["a", "b", "c", "d"];
    let rates = prop_oneof![3 => rate(), 1 => Just("\"none\"".to_owned())];
    let link = (rates, 1..40u32, queue(), beside(), faults);
    // Between two nodes by shortest or given routes, or between several nodes.
    let way = prop_oneof![
        4 => Just(Way::Shortest),
        2 => any::<[bool; 2]>().prop_map(Way::Given),
        1 => select(vec!["random", "round-robin"]).prop_map(Way::Several),
        1 => Just(Way::Peers),
    ];
    let group = (0..4usize, 1..4usize, 1..3u32, sender(timer), workload, way);
    (proptest::collection::vec(link, 4), proptest::collection::vec(group, 1..4)).prop_map(
        |(links, groups)| {
            let mut text = String::new();
            for (i, (rate, delay, queue, beside, faults)) in links.into_iter().enumerate() {
                text += &format!(
                    "[link.l{i}]\nfrom = \"{}\"\nto = \"{}\"\nrate = {rate}\n\
                     delay = \"{delay} ms\"\nqueue = {queue}\n{beside}duplex = true\n\
                     bdp_rtt = \"80 ms\"\n{faults}\n",
                    NODES[i],
                    NODES[(i + 1) % 4]
                );
            }
            for (i, (from, hops, count, sender, workload, way)) in groups.into_iter().enumerate() {
                text += &format!(
                    "[flow.g{i}]\ncount = {count}\n{}{workload}\n",
                    connection(&sender, &workload),
                );
                let (a, b) = (NODES[from], NODES[(from + hops) % 4]);
                text += &match way {
                    Way::Peers => {
                        format!("from = {NODES:?}\nto = [\"{a}\", \"{b}\"]\npeers = {count}\n")
                    }
                    Way::Shortest => format!("from = \"{a}\"\nto = \"{b}\"\n"),
                    Way::Given(senses) => {
                        format!("from = \"{a}\"\nto = \"{b}\"\n{}", routes(from, hops, senses))
                    }
                    Way::Several(ends) => {
                        let c = NODES[(from + hops + 1) % 4];
                        format!("from = [\"{a}\", \"{c}\"]\nto = {NODES:?}\nends = \"{ends}\"\n")
                            .replace(&format!("[\"{a}\", \"{a}\"]"), &format!("[\"{a}\"]"))
                    }
                };
            }
            text
        },
    )
}

/// Returns the routes of data and ACKs around the ring, each in one of the two directions.
fn routes(from: usize, hops: usize, [there, back]: [bool; 2]) -> String {
    let with: Vec<String> = (from..from + hops).map(|i| format!("l{}", i % 4)).collect();
    let against: Vec<String> =
        (from + hops..from + 4).rev().map(|i| format!("l{}.reverse", i % 4)).collect();
    // The same two paths, walked from the other end.
    let flip = |links: &[String]| -> Vec<String> {
        let other = |name: &String| match name.strip_suffix(".reverse") {
            Some(plain) => plain.to_owned(),
            None => format!("{name}.reverse"),
        };
        links.iter().rev().map(other).collect()
    };
    let route = if there { &with } else { &against };
    let reverse = flip(if back { &with } else { &against });
    format!("route = {route:?}\nreverse_route = {reverse:?}\n")
}

pub fn any_scenario() -> impl Strategy<Value = String> {
    let network = prop_oneof![
        4 => dumbbell(
            workload().boxed(),
            impairments_with_periodic_loss().boxed(),
            timer().boxed(),
        ),
        3 => graph(workload().boxed(), impairments_with_periodic_loss().boxed(), timer().boxed())
    ];
    (network, any::<u32>(), 0..1500u32).prop_map(|(network, seed, warmup)| {
        format!(
            "[run]\nduration = \"2 s\"\nwarmup = \"{warmup} ms\"\nseed = {seed}\n\
             sample = \"90 ms\"\n{network}"
        )
    })
}

/// Generates transfers that end, with enough time for each of them.
pub fn transfers() -> impl Strategy<Value = String> {
    let bytes = (1..150_000u32)
        .prop_map(|n| format!("workload = {{ kind = \"bytes\", size = \"exponential({n} B)\" }}"));
    let asked = (1..50_000u32, 1..4u32, 1..9_000u32).prop_map(|(n, objects, request)| {
        format!(
            "workload = {{ kind = \"web\", size = \"exponential({n} B)\", objects = {objects}, \
             request = \"{request} B\" }}"
        )
    });
    let transfer = prop_oneof![bytes, asked];
    let network = prop_oneof![
        dumbbell(transfer.clone().boxed(), faults().boxed(), persistent_timer().boxed()),
        graph(transfer.boxed(), faults().boxed(), persistent_timer().boxed())
    ];
    (network, any::<u32>()).prop_map(|(network, seed)| {
        // A window below one segment can fall until it sends one in 16 s: a lone segment's delayed
        // ACK looks like a queue.
        let seconds = if network.contains("below-one") { 100_000 } else { 5000 };
        format!("[run]\nduration = \"{seconds} s\"\nseed = {seed}\nsample = \"none\"\n{network}")
    })
}

/// Writes a value of a kind, chosen by a drawn number.
fn written(kind: ValueType, n: u32) -> String {
    match kind {
        ValueType::Bool => "true".to_owned(),
        ValueType::Integer => n.to_string(),
        ValueType::Number | ValueType::Fractions | ValueType::Share => {
            (f64::from(n) / 100.0).to_string()
        }
        ValueType::Duration => format!("\"{} ms\"", n + 10),
        ValueType::DurationDist => format!("\"exponential({n} ms)\""),
        ValueType::Rate => format!("\"{} kbit/s\"", n * 10),
        ValueType::Bytes => format!("\"{} B\"", n + 100),
        ValueType::CountDist => format!("\"exponential({n})\""),
        ValueType::SizeDist => format!("\"exponential({n} kB)\""),
        ValueType::QueueSize | ValueType::QueueSizes => format!("\"{n} packets\""),
        ValueType::Choice(names) => format!("\"{}\"", names[n as usize % names.len()]),
        ValueType::Arrivals => format!("\"{n} ms\""),
        ValueType::SourceFile => "\"own.py\\nclass Own: pass\"".to_owned(),
        ValueType::Argument => n.to_string(),
        ValueType::Text => format!("\"{n}\""),
        ValueType::Optional(inner) => written(*inner, n),
    }
}
