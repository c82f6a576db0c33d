//! Adaptive backoff and delay-based AIMD in the kernel against the simulator.

use super::{HZ, NO_RACK, PATHS, Replay, Seen, assert_same, compiled, cubic, flow, reno};

/// δ in units of 10⁻⁹.
const DELTA: u32 = 800_000_000;
/// RTT source of the kernel program (bpf/rtt_source.h).
const SACK: u32 = 0;

fn assert_adaptive(
    controller: &str,
    paths: &[(&str, &str, &str, &str)],
    of: fn(&str) -> String,
) -> Seen {
    // RTT known to the transport at a signal, which it learned from duplicate ACKs.
    let hear = "-DHEAR(rtt)=rtts_hear(&((struct adaptive *)sk.private)->rtts, rtt)";
    let program = compiled(controller, &[hear]);
    let replay =
        Replay { program, settings: vec![DELTA, HZ, SACK], fractional: false, duplicates: false };
    let mut all = Seen::default();
    for (queue, rtt, more, own) in paths {
        let text = flow(&of("adaptive_delta = 0.8"), rtt, queue, more, own);
        all = all.and(assert_same(&replay, &text));
    }
    eprintln!("{controller}: {all:?}");
    assert!(all.acks > 100_000 && all.ecn > 30 && all.losses > 30 && all.timeouts > 0, "{all:?}");
    all
}

/// The paths of ABE's comparison; the same exceptions apply.
#[test]
fn adaptive_reno_of_the_kernel_is_newreno_with_adaptive_backoff() {
    assert_adaptive("adaptive_reno", &PATHS[..7], reno);
}

#[test]
fn adaptive_cubic_of_the_kernel_is_cubic_with_adaptive_backoff() {
    let seen = assert_adaptive("adaptive_cubic", &PATHS, cubic);
    assert!(seen.timeouts > 20 && seen.idle > 5 && seen.hystart > 3, "{seen:?}");
}

/// Queues longer and shorter than the threshold, random losses that RACK or the timer finds, and
/// other flows whose queue delays this one.
#[test]
fn delay_aimd_of_the_kernel_is_delay_aimd_of_the_simulator() {
    let exact = "-DEXACT=((struct state *)sk.private)->window";
    let hear = "-DHEAR(rtt)=rtts_hear(&((struct state *)sk.private)->rtts, rtt)";
    let program = compiled("delay_aimd", &[exact, hear]);
    let deep = r#"{ kind = "fifo", limit = "400 packets" }"#;
    let short = r#"{ kind = "fifo", limit = "30 packets" }"#;
    let others = r#"
        [flow.other]
        controller = "newreno"
        rtt = "90 ms"
        [flow.two]
        start = "20 s"
        controller = "newreno"
        rtt = "30 ms""#;
    let mut all = Seen::default();
    for (threshold_ms, least) in [(20, 2), (50, 1)] {
        let settings = vec![threshold_ms * 1000, DELTA, least, SACK];
        let replay =
            Replay { program: program.clone(), settings, fractional: true, duplicates: false };
        let controller = format!(
            "{{ kind = 'delay-aimd', preset = 'thesis', threshold = '{threshold_ms} ms', \
             least_window = {least}, allow_delayed_acks = false, abc_limit = 'none', \
             abc_limit_after_timeout = 'none' }}"
        );
        for (queue, rtt, more, own) in [
            (deep, "40 ms", "", ""),
            (deep, "120 ms", "", ""),
            (deep, "200 ms", "loss = 0.002", ""),
            (short, "60 ms", "", ""),
            (deep, "40 ms", "loss = 0.03", ""),
            (deep, "40 ms", "loss = 0.03", NO_RACK),
            (deep, "40 ms", "loss = 0.15", NO_RACK),
        ] {
            all = all.and(assert_same(&replay, &flow(&controller, rtt, queue, more, own)));
        }
        let beside = flow(&controller, "60 ms", deep, "", "") + others;
        all = all.and(assert_same(&replay, &beside));
    }
    eprintln!("delay_aimd: {all:?}");
    assert!(
        all.acks > 100_000 && all.delay > 100 && all.losses > 50 && all.timeouts > 10,
        "{all:?}"
    );
    assert!(all.spared > 0, "{all:?}");
}
