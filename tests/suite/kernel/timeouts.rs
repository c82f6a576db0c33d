//! TCP*(n) in the kernel: timeouts against the policy of crates/cc as far as the kernel supports
//! it, and its behaviour otherwise.

use std::fmt::Write as _;

use cwnd_cc::{Backoff, RtoPolicy};
use cwnd_quantity::{Divisor, Duration};

use super::{HZ, host, run_program};

/// Returns the timeouts of consecutive expiries, ms.
fn policy(backoff: Backoff, after: u32, base_ms: u64, expiries: u32) -> Vec<u64> {
    let ms = Duration::from_millis;
    let policy = RtoPolicy {
        min: ms(200),
        initial: ms(1000),
        max: ms(120_000),
        granularity: Divisor::new(ms(1).0),
        variation_min: ms(200),
        slop: Duration::ZERO,
        backoff,
        backoff_after: after,
        backoff_rounds: None,
    };
    (0..expiries).map(|k| policy.timeout(ms(base_ms), k).0 / 1_000_000).collect()
}

#[test]
fn tcpstar_of_the_kernel_is_the_policy_of_the_simulator_as_far_as_it_goes() {
    let program = host("timer", &[]);
    let mut compared = 0;
    for after in 1..=8 {
        let mut connections = Vec::new();
        for base_ms in [200, 240, 700, 999, 1000, 1001, 1500, 3000, 100_000] {
            connections.extend([false, true].map(|thin| (base_ms, thin)));
        }
        let mut text = String::new();
        for (base_ms, thin) in &connections {
            writeln!(text, "{base_ms} {} 0 12", u8::from(*thin)).expect("a String");
        }
        let output = run_program(&program, &[after, HZ, 0], &text);
        assert_eq!(output.lines().count(), connections.len());
        for ((base_ms, thin), line) in connections.iter().zip(output.lines()) {
            let (timeouts, after_it) = line.split_once(" : ").expect("both");
            let timeouts: Vec<u64> =
                timeouts.split(' ').map(|number| number.parse().expect("ms")).collect();
            // A thin stream backs off linearly for six expiries, and a base of 1 s or more is its
            // own bound.
            let exact = *base_ms >= 1000 || *thin && after <= 6;
            if exact {
                let policy = policy(Backoff::After, after, *base_ms, 12);
                assert_eq!(timeouts, policy, "TCP*({after}), {base_ms} ms");
                compared += 1;
            } else if !thin {
                let policy = policy(Backoff::Bounded, after, *base_ms, 12);
                assert_eq!(timeouts, policy, "bounded, {after}, {base_ms} ms");
            }
            // Once a round trip is measured, all settings are the kernel's again.
            assert_eq!(after_it, "120000 0 0");
        }
    }
    assert_eq!(compared, 8 * 10 + 6 * 4);
    // A SYN's timeout has its own n, or that of data; the kernel's four linear timeouts of a SYN
    // remain in any case.
    for (after, syn_after) in [(1, 0), (6, 0), (6, 4), (1, 7), (3, 5)] {
        let output = run_program(&program, &[after, HZ, syn_after], "1000 0 1 10");
        let (timeouts, _) = output.split_once(" : ").expect("both");
        let after = if syn_after == 0 { after } else { syn_after };
        let expected: Vec<String> =
            policy(Backoff::After, after.max(4), 1000, 10).iter().map(u64::to_string).collect();
        assert_eq!(timeouts, expected.join(" "), "SYNs, {after}");
    }
}
