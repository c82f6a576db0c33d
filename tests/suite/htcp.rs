//! H-TCP in whole scenarios against closed forms.

use cwnd_tables::Records;

use crate::common::{BOTTLENECK, assert_golden, at, column, run};

fn link(records: &Records, name: &str) -> f64 {
    at(&records.links, BOTTLENECK, name)
}

/// Returns the window in segments after each millisecond from the first ACK on. It solves dw/dt =
/// α w(t − R) / (w R), since each ACK of the window one round trip earlier adds α / w. With
/// β = 1/2, α is 1 up to Δ = 1 s, then 1 + 10 (Δ − 1 s) + ((Δ − 1 s) / 2)². Steps are a
/// millisecond, evaluated at their midpoints.
fn window_of_the_equation(milliseconds: usize, first: f64, round_trip: usize) -> Vec<f64> {
    let mut windows = vec![first; round_trip + 1];
    let before = windows.len() - 1;
    for step in 0..milliseconds {
        let beyond = ((step as f64 + 0.5) / 1000.0 - 1.0).max(0.0);
        let alpha = 1.0 + 10.0 * beyond + beyond * beyond / 4.0;
        let now = windows[before + step];
        let acked =
            (windows[before + step - round_trip] + windows[before + step + 1 - round_trip]) / 2.0;
        let half = now + alpha * acked / now / round_trip as f64 / 2.0;
        windows.push(now + alpha * acked / half / round_trip as f64);
    }
    windows.split_off(before)
}

#[test]
fn the_window_grows_as_the_equation_says() {
    let records = run(r#"
        [run]
        duration = "10.2 s"
        sample = "100 ms"
        [dumbbell]
        rate = "1 Gbit/s"
        edge_rate = "10 Gbit/s"
        [flow.main]
        rtt = "100 ms"
        controller = "htcp"
        endpoint.ack_every = 1
        endpoint.clock = "1 us"
        endpoint.initial_ssthresh = "14480 B"
        endpoint.receive_window = "1 GB"
        "#);
    let windows = column(&records.flow_series, "snd_cwnd_pkts");
    let times = column(&records.flow_series, "time_s");
    let due = window_of_the_equation(10_000, 10.0, 100);
    let mut compared = 0;
    for (time, window) in times.iter().zip(&windows) {
        // One round trip for the handshake, one until the first ACK.
        let t = time - 0.2;
        if t < 0.5 {
            continue;
        }
        // ACKs of a window arrive as a burst: the growth of a round trip in the equation comes at
        // once.
        let now = (1000.0 * t).round() as usize;
        let (min, max) = (0.97 * due[now - 100], 1.03 * due[now]);
        assert!((min..=max).contains(window), "{time} s: {window}, not {min} to {max}");
        compared += 1;
    }
    assert!(compared > 90, "{compared}");
}

/// β = minRTT / maxRTT empties the queue and keeps the link busy, for any buffer from a quarter of
/// the path's capacity to all of it.
#[test]
fn a_backoff_empties_the_queue_and_leaves_the_link_busy() {
    let mut table = "# One flow, 20 Mbit/s, 100 ms, 60 to 180 s, \
                     by the buffer in parts of what the path holds; delays in ms.\n\
                     controller             buffer utilisation   mean   peak drops reductions\n"
        .to_owned();
    for (name, controller) in [
        ("newreno", r#""newreno""#),
        ("htcp", r#""htcp""#),
        ("htcp linux", r#"{ kind = "htcp", preset = "linux" }"#),
        ("htcp adaptive-backoff", r#"{ kind = "htcp", preset = "adaptive-backoff" }"#),
    ] {
        for buffer in [0.1, 0.25, 0.5, 1.0, 2.0] {
            let records = run(&format!(
                r#"
                [run]
                duration = "180 s"
                warmup = "60 s"
                sample = "none"
                [dumbbell]
                rate = "20 Mbit/s"
                queue = {{ kind = "fifo", limit = "{buffer} BDP" }}
                [flow.main]
                rtt = "100 ms"
                controller = {controller}
                endpoint = {{ ack_every = 1, clock = "1 us" }}
                "#
            ));
            let utilisation = link(&records, "utilisation");
            if name == "htcp" && (0.25..=1.0).contains(&buffer) {
                assert!(utilisation > 0.99, "{buffer}: {utilisation}");
            }
            table += &format!(
                "{name:22} {buffer:6} {utilisation:11.3} {:6.1} {:6.1} {:5} {:10}\n",
                link(&records, "qdelay_mean_us") / 1e3,
                link(&records, "qdelay_max_us") / 1e3,
                link(&records, "dropped_pkts"),
                at(&records.flows, 0, "cwnd_reductions_loss"),
            );
        }
    }
    assert_golden("htcp.txt", &table);
}
