//! Vegas in whole scenarios. Equations without a document are of McCullagh, *Exploring Delay-Based TCP Congestion Control*, 2008.

use cwnd_trace::Records;

use crate::common::{BOTTLENECK, activity, assert_golden, at, column, run};

/// Flows over 10 Mbit/s that start one after the other, ten seconds apart, and then share for two minutes.
fn one_after_the_other(flows: u32, controller: &str) -> Records {
    run(&format!(
        r#"
        [run]
        duration = "{} s"
        warmup = "{} s"
        sample = "10 s"
        [dumbbell]
        rate = "10 Mbit/s"
        queue = {{ kind = "fifo", limit = "2000 packets" }}
        [flow.main]
        rtt = "50 ms"
        count = {flows}
        spacing = "10 s"
        controller = {controller}
        endpoint = {{ ack_every = 1, clock = "1 us" }}
        "#,
        10 * flows + 180,
        10 * flows + 60,
    ))
}

fn jain(goodputs: &[f64]) -> f64 {
    let squares: f64 = goodputs.iter().map(|x| x * x).sum();
    goodputs.iter().sum::<f64>().powi(2) / (goodputs.len() as f64 * squares)
}

/// Mean queueing delay in packets of 1500 B at 10 Mbit/s.
fn queued(records: &Records) -> f64 {
    at(&records.links, BOTTLENECK, "qdelay_mean_us") / 1.2e3
}

/// Eq. 2.4: the window rests once between α and β segments of it wait. A packet's own way past the queue is in its RTT and in baseRTT.
#[test]
fn one_flow_keeps_between_alpha_and_beta_packets_in_the_queue_and_loses_none() {
    for (preset, least, most) in
        [("thesis", 2.0, 4.0), ("paper", 1.0, 3.0), ("ns2", 1.0, 3.0), ("linux", 2.0, 4.0)]
    {
        let records =
            one_after_the_other(1, &format!(r#"{{ kind = "vegas", preset = "{preset}" }}"#));
        let link = |name| at(&records.links, BOTTLENECK, name);
        assert_eq!(link("dropped_total_pkts"), 0.0, "{preset}");
        assert!(link("utilisation") > 0.9999, "{preset}");
        let packets = queued(&records);
        // The window is whole segments, and what the path holds is not.
        assert!((least - 1.0..most + 1.0).contains(&packets), "{preset}: {packets}");
        // At rest in two minutes of round trips.
        assert!(activity(&records, "rounds_same") > 2000, "{preset}");
    }
}

/// § 2.3.1: the queue grows with the flows, and who comes late takes the queue for the path and more than its share (claim D16).
#[test]
fn late_flows_of_vegas_take_more_than_their_share_and_those_of_delay_aimd_do_not() {
    let mut table = "# Flows one after the other, 10 s apart, 10 Mbit/s, 50 ms; two minutes after all came. Mean queue in packets, goodput\n\
         # of the last in shares of the first's, and by how much the last one's minRTT is wrong, in ms.\n\
         controller          flows  queue utilisation drops jain last/first  error\n"
        .to_owned();
    for (name, controller) in [
        ("vegas", r#""vegas""#),
        ("vegas paper", r#"{ kind = "vegas", preset = "paper" }"#),
        ("vegas ns2", r#"{ kind = "vegas", preset = "ns2" }"#),
        ("vegas linux", r#"{ kind = "vegas", preset = "linux" }"#),
        ("delay-aimd", r#""delay-aimd""#),
    ] {
        for flows in [1, 2, 5, 10] {
            let records = one_after_the_other(flows, controller);
            let goodputs = column(&records.flows, "goodput_bit_s");
            let (first, last) = (goodputs[0], goodputs[goodputs.len() - 1]);
            let found = column(&records.flows, "min_rtt_us");
            let base = column(&records.flows, "rtt_base_us");
            let errors: Vec<f64> = found.iter().zip(&base).map(|(f, b)| (f - b) / 1e3).collect();
            let drops = at(&records.links, BOTTLENECK, "dropped_total_pkts");
            table += &format!(
                "{name:19} {flows:5} {:6.1} {:11.3} {drops:5} {:.2} {:10.2} {:6.1}\n",
                queued(&records),
                at(&records.links, BOTTLENECK, "utilisation"),
                jain(&goodputs),
                last / first,
                errors[errors.len() - 1],
            );
            if flows != 10 {
                continue;
            }
            let late = name != "delay-aimd";
            assert_eq!(last / first > 1.5, late, "{name}: {goodputs:?}");
            // Each of Vegas' came to a longer queue than the one before it.
            assert_eq!(errors.is_sorted() && errors[9] > 10.0, late, "{name}: {errors:?}");
        }
    }
    assert_golden("vegas.txt", &table);
}

/// Brakmo & Peterson's slow start doubles every other round trip, Linux's each.
#[test]
fn slow_start_doubles_as_often_as_it_is_told() {
    let reached = |preset: &str| {
        let records = run(&format!(
            r#"
            [run]
            duration = "1.06 s"
            sample = "50 ms"
            [dumbbell]
            rate = "1 Gbit/s"
            [flow.main]
            rtt = "100 ms"
            controller = {{ kind = "vegas", preset = "{preset}" }}
            endpoint = {{ ack_every = 1, clock = "1 us", initial_window = 2 }}
            "#
        ));
        column(&records.flow_series, "snd_cwnd_pkts").pop().expect("was sampled")
    };
    // A round trip for the handshake, one for the first window, and then eight.
    assert_eq!(reached("paper"), 32.0);
    assert_eq!(reached("linux"), 1024.0);
}
