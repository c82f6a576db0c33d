//! Delays of groups: one-way queueing delay, jitter and round trips, beside the delays of links.

use cwnd_tables::Records;

use crate::common::{BOTTLENECK, at, column, run};

const QUEUEING: f64 = 0.0;
const JITTER: f64 = 1.0;
const ROUND_TRIP: f64 = 2.0;

/// Returns the buckets of a group's delays: middle in µs and number of packets.
fn buckets(records: &Records, group: f64, kind: f64) -> Vec<(f64, f64)> {
    let of = |name| column(&records.delays, name);
    let (groups, kinds) = (of("group"), of("what"));
    let rows = of("delay_us").into_iter().zip(of("packets")).enumerate();
    rows.filter(|&(row, _)| groups[row] == group && kinds[row] == kind).map(|(_, of)| of).collect()
}

fn count(buckets: &[(f64, f64)]) -> f64 {
    buckets.iter().map(|(_, packets)| packets).sum()
}

/// Returns the sum of all delays, µs, within the width of a bucket.
fn sum(buckets: &[(f64, f64)]) -> f64 {
    buckets.iter().map(|(delay, packets)| delay * packets).sum()
}

/// Returns the least delay that a fraction `q` of the packets does not exceed, µs.
fn quantile(buckets: &[(f64, f64)], q: f64) -> f64 {
    let (wanted, mut seen) = (q * count(buckets), 0.0);
    let reaches = |&&(_, packets): &&(f64, f64)| {
        seen += packets;
        seen >= wanted
    };
    buckets.iter().find(reaches).expect("a fraction is at most one").0
}

#[test]
fn over_a_fifo_a_group_that_is_alone_waits_as_the_link_does() {
    let records = run(r#"
        [run]
        duration = "60 s"
        sample = "none"
        [dumbbell]
        rate = "8 Mbit/s"
        queue = { kind = "fifo", limit = "40 packets" }
        edge_rate = "none"
        [flow.noise]
        rtt = "20 ms"
        stop = "59 s"
        workload = { kind = "udp", rate = "7.6 Mbit/s", size = "1000 B", arrivals = "poisson" }
    "#);
    let group = buckets(&records, 0.0, QUEUEING);
    let link: Vec<f64> = column(&records.qdelay, "packets");
    assert_eq!(group.iter().map(|bucket| bucket.1).collect::<Vec<_>>(), link);
    assert!(at(&records.links, BOTTLENECK, "dropped_pkts") > 0.0, "the dropped ones do not count");
    assert_eq!(count(&group), records.delivered_data_packets as f64);
    let median = at(&records.links, BOTTLENECK, "qdelay_p50_us");
    assert!((quantile(&group, 0.5) / median - 1.0).abs() < 1e-3);
}

#[test]
fn over_fq_codel_a_sparse_flow_waits_for_few_packets_while_the_link_has_a_standing_queue() {
    let records = run(r#"
        [run]
        duration = "30 s"
        warmup = "5 s"
        [dumbbell]
        rate = "10 Mbit/s"
        queue = "fq-codel"
        edge_rate = "none"
        [flow.bulk]
        count = 4
        rtt = "40 ms"
        controller = "cubic"
        [flow.call]
        rtt = "40 ms"
        workload = { kind = "udp", rate = "80 kbit/s", size = "200 B" }
    "#);
    let (bulk, call) = (buckets(&records, 0.0, QUEUEING), buckets(&records, 1.0, QUEUEING));
    // A datagram each 20 ms is always of a new flow (RFC 8290 § 4.2), which is served once the
    // packet in transmission has left: 1.2 ms. The others were new before it at the worst.
    assert_eq!(count(&call), 25.0 * 50.0);
    let packet = 1500.0 * 8.0 / 10.0;
    assert!(quantile(&call, 0.5) <= packet && quantile(&call, 1.0) <= 5.0 * packet);
    let link = at(&records.links, BOTTLENECK, "qdelay_p50_us");
    let mut all = [bulk, call].concat();
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    assert!(link > 4_000.0 && (quantile(&all, 0.5) / link - 1.0).abs() < 0.02, "{link}");
    // Of the four bulk flows each RTT is that of the path and what it waited, both ways.
    let waits = buckets(&records, 0.0, ROUND_TRIP);
    let rtts = column(&records.flows, "rtt_p50_us");
    let median = rtts[..4].iter().sum::<f64>() / 4.0 - at(&records.flows, 0, "rtt_base_us");
    assert!((quantile(&waits, 0.5) / median - 1.0).abs() < 0.2, "{median}");
    assert!(count(&buckets(&records, 1.0, ROUND_TRIP)) == 0.0, "datagrams are not answered");
}

#[test]
fn over_several_links_a_packet_waits_for_the_sum() {
    let link = |from: &str, to: &str, rate: u32| {
        format!(
            "[link.{from}-{to}]\nfrom = \"{from}\"\nto = \"{to}\"\nrate = \"{rate} Mbit/s\"\n\
             delay = \"5 ms\"\nduplex = true\n\
             queue = {{ kind = \"fifo\", limit = \"1000 packets\" }}\n"
        )
    };
    let noise = |rate: u32| {
        format!(
            "workload = {{ kind = \"udp\", rate = \"{rate} Mbit/s\", size = \"1000 B\", \
             arrivals = \"poisson\" }}"
        )
    };
    let records = run(&format!(
        "[run]\nduration = \"60 s\"\nsample = \"none\"\n{}{}\
         [flow.noise]\nfrom = \"a\"\nto = \"c\"\nstop = \"58 s\"\n\
         {}\n\
         [flow.cross]\nfrom = \"b\"\nto = \"c\"\nstop = \"58 s\"\n\
         {}\n",
        link("a", "b", 8),
        link("b", "c", 10),
        noise(7),
        noise(1),
    ));
    assert!(column(&records.links, "dropped_pkts").iter().all(|&drops| drops == 0.0));
    let of = |name| column(&records.links, name);
    let links = of("qdelay_mean_us").into_iter().zip(of("delivered_pkts"));
    let on_links: f64 = links.filter(|(_, packets)| *packets > 0.0).map(|(us, n)| us * n).sum();
    let (noise, cross) = (buckets(&records, 0.0, QUEUEING), buckets(&records, 1.0, QUEUEING));
    let of_groups = sum(&noise) + sum(&cross);
    assert!((of_groups / on_links - 1.0).abs() < 1.0 / 256.0, "{of_groups} µs, {on_links} µs");
    assert!(sum(&noise) / count(&noise) > 2.0 * sum(&cross) / count(&cross));
    assert_eq!(count(&noise) + count(&cross), records.delivered_data_packets as f64);
}

/// Each second datagram finds another of 1500 B in transmission, which takes 1.2 ms and began
/// 0.1 ms before.
#[test]
fn jitter_is_the_difference_in_transit_time_to_the_packet_before() {
    let records = run(r#"
        [run]
        duration = "10 s"
        noise = "none"
        [dumbbell]
        rate = "10 Mbit/s"
        edge_rate = "none"
        [flow.call]
        rtt = "20 ms"
        start = "0.1 ms"
        workload = { kind = "udp", rate = "160 kbit/s", size = "200 B" }
        [flow.beside]
        rtt = "20 ms"
        start = "0 s"
        workload = { kind = "udp", rate = "600 kbit/s", size = "1500 B" }
    "#);
    let [(delay, packets)] = buckets(&records, 0.0, JITTER)[..] else { panic!("one difference") };
    assert!((delay / 1100.0 - 1.0).abs() < 1.0 / 256.0, "{delay} µs");
    assert_eq!(packets, count(&buckets(&records, 0.0, QUEUEING)) - 1.0);
    assert_eq!(buckets(&records, 1.0, JITTER)[..].len(), 1, "the other one always finds it empty");
    assert_eq!(sum(&buckets(&records, 1.0, JITTER)), 0.0);
}

#[test]
fn packets_of_tcp_and_quic_count_once_each() {
    for stack in ["linux", "quic"] {
        let records = run(&format!(
            r#"
            [run]
            duration = "10 s"
            [dumbbell]
            rate = "5 Mbit/s"
            loss = 0.01
            [flow.main]
            count = 3
            rtt = "uniform(10 ms, 80 ms)"
            controller = "newreno"
            stack = "{stack}"
            "#
        ));
        let packets = count(&buckets(&records, 0.0, QUEUEING));
        assert_eq!(packets, records.delivered_data_packets as f64, "{stack}");
        assert_eq!(count(&buckets(&records, 0.0, JITTER)), 0.0, "{stack}: jitter is of datagrams");
        let rtts = column(&records.flows, "rtt_p50_us").into_iter();
        let waits = rtts.zip(column(&records.flows, "rtt_base_us")).map(|(rtt, base)| rtt - base);
        let (least, most) = waits.fold((f64::MAX, 0.0_f64), |(a, b), us| (a.min(us), b.max(us)));
        let median = quantile(&buckets(&records, 0.0, ROUND_TRIP), 0.5);
        assert!((0.99 * least..=1.01 * most).contains(&median), "{stack}: {median} µs");
    }
}
