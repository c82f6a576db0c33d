//! Kernels may skip a controller's programs (bpf/skipped_calls.h). Each reduction is skipped here,
//! and the next ACK compensates for it.

use super::{HZ, NO_RACK, compiled, cubic, flow, line, recorded, reno, run_program};

/// Paths with drops that ACKs report, and timeouts.
const PATHS: [(&str, &str, &str); 3] = [
    (r#"{ kind = "fifo", limit = "60 packets" }"#, "", ""),
    (r#"{ kind = "codel" }"#, "loss = 0.01", ""),
    (r#"{ kind = "codel" }"#, "loss = 0.05", NO_RACK),
];

#[test]
fn what_the_kernel_did_not_tell_is_made_up_for_with_the_next_ack() {
    let halves = 500_000_000;
    let delta = 800_000_000;
    for (name, defines, settings) in [
        ("abe_reno", &[][..], &[halves, 0, 0, HZ][..]),
        ("abe_cubic", &[], &[halves, 0, 0, HZ]),
        ("adaptive_reno", &[], &[delta, HZ, 0]),
        ("adaptive_cubic", &[], &[delta, HZ, 0]),
        ("delay_aimd", &[], &[50_000, delta, 2, 0]),
        ("becn_reno", &["-DQUENCHES"], &[halves, 0, 10, HZ]),
        ("becn_cubic", &["-DQUENCHES"], &[halves, 0, 10, HZ]),
    ] {
        let program = compiled(name, &[&["-DUNTOLD"], defines].concat());
        let mut all = 0;
        for (queue, more, own) in PATHS {
            let of = if name.ends_with("cubic") { cubic } else { reno };
            let text = flow(&of("beta = 0.5"), "60 ms", queue, more, own);
            let (start, mss, record) = recorded(&text, true);
            let mss = u64::from(mss);
            let mut events = format!("{} {} 60000\n", start.cwnd / mss, i32::MAX);
            for entry in &record {
                line(entry, entry.window.cwnd, &mut events);
            }
            let output = run_program(&program, settings, &events);
            let apart = output.lines().find(|line| line.starts_with("apart"));
            assert_eq!(apart, None, "{name}");
            let mut last = output.lines().rev();
            let counters = last.next().expect("the counters");
            let made_up = last.next().and_then(|line| line.strip_prefix("made up for "));
            let made_up: u64 = made_up.and_then(|number| number.parse().ok()).expect("a number");
            assert!(counters.contains(&format!("untold {made_up} ")), "{name}: {counters}");
            all += made_up;
        }
        eprintln!("{name}: {all}");
        assert!(all > 30, "{name}: {all}");
    }
}
