//! Controllers with load feedback in whole scenarios. BMCC is Qazi, Andrew, Znati 2009; VCP is Xia
//! et al. 2005; MLCP, Qazi & Znati 2008, is BMCC with quantized load.

use cwnd_tables::Records;

use crate::common::{BOTTLENECK, activity, assert_golden, at, column, jain, run, scenario};

/// Meter, controller and echo of a scheme.
struct Scheme {
    meter: &'static str,
    controller: &'static str,
    echo: &'static str,
}

const BMCC: Scheme = Scheme { meter: "\"adpm\"", controller: "\"bmcc\"", echo: "load" };
const UNPACED: Scheme = Scheme { controller: "{ kind = \"bmcc\", paced = false }", ..BMCC };
const MLCP: Scheme = Scheme { meter: "\"mlcp\"", controller: "\"mlcp\"", echo: "level" };
const VCP: Scheme = Scheme { meter: "\"vcp\"", controller: "\"vcp\"", echo: "changes" };

/// Writes the setting of the paper's § VII, scaled down: packets of 1000 B and 40 B, as many flows
/// in the reverse direction, a buffer of one BDP or, on the shortest paths, of 20 packets.
fn text(scheme: &Scheme, rate: &str, rtt: &str, flows: u32, seconds: u32, more: &str) -> String {
    let Scheme { meter, controller, echo } = scheme;
    let group = |name: &str, direction: &str| {
        format!(
            "[flow.{name}]\nrtt = \"{rtt}\"\ncount = {flows}\nstart = \"uniform(0 s, 1 s)\"\n\
             direction = \"{direction}\"\ncontroller = {controller}\n\
             endpoint = {{ ecn = true, echo = \"{echo}\", mss = \"960 B\", header = \"40 B\", \
             ack_size = \"40 B\", ack_every = 1, initial_window = 2, clock = \"1 us\" }}\n"
        )
    };
    // "The BDP, or two packets per-flow, whichever is larger."
    let short = matches!((rate, rtt), ("1 Mbit/s", _) | (_, "2 ms"));
    let limit = if short { "20 packets" } else { "1 BDP" };
    let queue = format!("{{ kind = \"fifo\", limit = \"{limit}\" }}");
    format!(
        "[run]\nduration = \"{seconds} s\"\nwarmup = \"{} s\"\nsample = \"100 ms\"\n[dumbbell]\n\
         rate = \"{rate}\"\nqueue = {queue}\nreverse_queue = {queue}\nmeter = {meter}\n\
         reverse_meter = {meter}\n{more}\n{}{}",
        seconds / 5,
        group("there", "forward"),
        group("back", "reverse"),
    )
}

/// Returns a counter of the activity; zero if the activity omits it.
fn count(records: &Records, name: &str) -> u64 {
    records.activity.get(name).unwrap_or(0)
}

fn row(name: &str, setting: &str, records: &Records) -> String {
    let goodputs = column(&records.flows, "goodput_bit_s");
    let link = |column| at(&records.links, BOTTLENECK, column);
    format!(
        "{name:8} {setting:22} {:6.3} {:9.2} {:6} {:5.3} {:9} {:9}\n",
        link("utilisation"),
        link("qdelay_mean_us") / 1e3,
        link("dropped_total_pkts"),
        jain(&goodputs[..goodputs.len() / 2]),
        count(records, "load_decreases"),
        (0..records.links.len())
            .map(|id| records.packets(id, "marked", "overload")[1])
            .sum::<u64>(),
    )
}

/// § VII a–c: full link, short queue, no loss and equal shares, from 2 ms to 400 ms. Without
/// pacing, RTTs are limited to a measuring interval (§ II-D.1), because a window sent as a burst is
/// measured as alternating double and zero load.
#[test]
fn bmcc_and_vcp_fill_links_of_any_length_without_a_queue() {
    let mut table = "# Five flows each way (§ VII), 40 s, the first 8 s left out; queue in ms.\n\
                     scheme   link                     util     queue  drops  jain \
                     decreases marks\n"
        .to_owned();
    let settings = [
        ("1 Mbit/s", "80 ms"),
        ("10 Mbit/s", "2 ms"),
        ("10 Mbit/s", "80 ms"),
        ("10 Mbit/s", "400 ms"),
        ("45 Mbit/s", "80 ms"),
    ];
    for (name, scheme) in [("bmcc", &BMCC), ("unpaced", &UNPACED), ("vcp", &VCP)] {
        for (rate, rtt) in settings {
            let records = run(&text(scheme, rate, rtt, 5, 40, ""));
            table += &row(name, &format!("{rate}, {rtt}"), &records);
            if name == "bmcc" {
                let link = |column| at(&records.links, BOTTLENECK, column);
                // § VII a and b: 90 % of any rate at 80 ms, 80 % at any round trip.
                let min_utilisation = if rtt == "80 ms" { 0.9 } else { 0.8 };
                assert!(
                    link("utilisation") > min_utilisation,
                    "{rate} {rtt}: {}",
                    link("utilisation")
                );
                // At 400 ms (1 + ξ)^(T/t_p) is 8.9 a round trip: the first windows overflow the
                // buffer in both directions, and so may the growth after a decrease. Both
                // directions carry data: flows that repair a timeout do not stay at one segment.
                let max_drops = if rtt == "400 ms" { 0.005 } else { 0.001 };
                assert!(link("drop_ratio") < max_drops, "{rate} {rtt}: {}", link("drop_ratio"));
                let goodputs = column(&records.flows, "goodput_bit_s");
                let (there, back) = goodputs.split_at(goodputs.len() / 2);
                let (there, back) = (there.iter().sum::<f64>(), back.iter().sum::<f64>());
                assert!(back > 0.8 * there, "{rate} {rtt}: {there} bit/s, back {back}");
            }
        }
    }
    assert_golden("load.txt", &table);
}

/// § VII a–c, e, of MLCP: 85 % of any rate at 80 ms (here 90 %), 80 % at any round trip, a queue
/// below a tenth of the BDP, no loss (here less than 0.1 %), similar shares. § IV-B: sixteen levels
/// are as good as the load factor itself.
#[test]
fn sixteen_levels_fill_links_as_the_load_factor_does() {
    for (rate, rtt, bdp_ms) in
        [("10 Mbit/s", "80 ms", 80.0), ("10 Mbit/s", "400 ms", 400.0), ("45 Mbit/s", "80 ms", 80.0)]
    {
        let records = run(&text(&MLCP, rate, rtt, 5, 40, ""));
        let link = |column| at(&records.links, BOTTLENECK, column);
        let min_utilisation = if rtt == "80 ms" { 0.9 } else { 0.8 };
        assert!(link("utilisation") > min_utilisation, "{rate} {rtt}: {}", link("utilisation"));
        let queue_ms = link("qdelay_mean_us") / 1e3;
        assert!(queue_ms < 0.1 * bdp_ms, "{rate} {rtt}: {queue_ms} ms");
        assert!(link("drop_ratio") < 0.001, "{rate} {rtt}");
        if rate == "10 Mbit/s" {
            let goodputs = column(&records.flows, "goodput_bit_s");
            assert!(jain(&goodputs[..5]) > 0.9, "{rtt}: {goodputs:?}");
        }
        assert!(count(&records, "levels_raised") > 0 && count(&records, "load_decreases") > 0);
    }
}

/// § II-C.2: rates do not depend on the round-trip time.
#[test]
fn flows_of_different_round_trips_get_equal_rates() {
    for (name, scheme) in [("bmcc", &BMCC), ("vcp", &VCP), ("mlcp", &MLCP)] {
        let with = text(scheme, "20 Mbit/s", "uniform(40 ms, 160 ms)", 8, 200, "");
        let records = run(&with);
        let goodputs = column(&records.flows, "goodput_bit_s");
        assert!(jain(&goodputs[..8]) > 0.93, "{name}: {goodputs:?}");
    }
}

/// § I: losses unrelated to load are repaired without a reduction of the window.
#[test]
fn losses_that_are_not_of_load_are_only_repaired() {
    let lossy = "loss = 0.001";
    let lose = |controller| {
        let scheme = Scheme { controller, ..BMCC };
        run(&text(&scheme, "45 Mbit/s", "80 ms", 2, 60, lossy))
    };
    let repairs = lose("\"bmcc\"");
    let decreases = lose("{ kind = \"bmcc\", on_loss = \"decrease\" }");
    let used = |records: &Records| at(&records.links, BOTTLENECK, "utilisation");
    assert!(used(&repairs) > 0.8, "{}", used(&repairs));
    assert!(used(&decreases) < used(&repairs) - 0.1, "{} {}", used(&decreases), used(&repairs));
    assert!(count(&repairs, "losses_only_repaired") > 100);
    assert_eq!(count(&decreases, "losses_only_repaired"), 0);
}

/// A receiver that conceals half of the estimate never reports a load of 1, so its sender decreases
/// only for losses.
#[test]
fn who_hides_the_load_from_a_sender_keeps_it_from_decreasing() {
    let run_with = |cheats: &str| {
        let with = text(&BMCC, "10 Mbit/s", "80 ms", 2, 20, "");
        run(&with.replace("echo = \"load\"", &format!("echo = \"load\"{cheats}")))
    };
    assert!(count(&run_with(""), "load_decreases") > 0);
    let hidden = run_with(", cheat_load = 0.5");
    assert_eq!(count(&hidden, "load_decreases"), 0);
    assert!(at(&hidden.links, BOTTLENECK, "dropped_total_pkts") > 0.0);
}

/// § VI, Table I: fewer ACKs with the estimate are better, and all schedules perform alike.
#[test]
fn schedules_of_the_estimate_differ_in_what_they_cost_only() {
    let costs = |echo| {
        let records = run(&text(&Scheme { echo, ..BMCC }, "20 Mbit/s", "80 ms", 5, 40, ""));
        let used = at(&records.links, BOTTLENECK, "utilisation");
        (used, activity(&records, "load_acks_heard") as f64)
    };
    let [every, spaced, changed] = ["load-every", "load", "load-changed"].map(costs);
    assert!((0.05..0.3).contains(&(spaced.1 / every.1)), "{spaced:?} {every:?}");
    assert!((0.0..0.05).contains(&(changed.1 / every.1)), "{changed:?} {every:?}");
    for (used, _) in [spaced, changed] {
        assert!((used - every.0).abs() < 0.05, "{used} {}", every.0);
    }
}

/// An estimate adds four bytes of options to the ACKs that carry it, and to no others.
#[test]
fn the_option_makes_acks_longer() {
    let alone = |echo| {
        let only = text(&Scheme { echo, ..BMCC }, "10 Mbit/s", "20 ms", 1, 10, "");
        let records = run(only.split("[flow.back]").next().expect("it has a part before"));
        let link = |column| at(&records.links, BOTTLENECK + 1, column);
        let seconds = 8.0;
        link("utilisation") * link("rate_bit_s") / 8.0 * seconds / link("delivered_pkts")
    };
    let (every, changed) = (alone("load-every"), alone("load-changed"));
    assert!((every - 44.0).abs() < 0.1, "{every}");
    assert!((40.0..41.0).contains(&changed), "{changed}");
}

/// A controller that needs router feedback is refused on a path without it, with an error that
/// names the link and the missing feedback.
#[test]
fn what_a_path_cannot_give_is_told_before() {
    for (controller, lacks) in [
        ("bmcc", "link `bottleneck` does not compare a load factor"),
        ("vcp", "link `bottleneck` does not write a load factor"),
        ("mlcp", "link `bottleneck` does not raise the level of load that data carries"),
    ] {
        let scheme = Scheme { meter: "\"none\"", controller, ..BMCC };
        let with = text(&scheme, "10 Mbit/s", "20 ms", 1, 1, "");
        let with = with.replace(
            &format!("controller = {controller}"),
            &format!("controller = \"{controller}\""),
        );
        let error = cwnd_scenario::Document::parse("t.toml", &with, &|_| Err(String::new()))
            .and_then(|document| document.cells())
            .expect_err("nothing is told")
            .to_string();
        assert!(error.contains(lacks), "{error}");
    }
    // The complete scheme gives no message.
    drop(scenario(&text(&BMCC, "10 Mbit/s", "20 ms", 1, 1, "")));
}
