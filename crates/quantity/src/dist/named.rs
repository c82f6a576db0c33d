//! Named distributions of sizes.

/// Names, and the text each stands for. A resolved scenario contains the text.
pub(super) const SIZES: &[(&str, &str)] = &[
    // Mondal & Kuzmanovic 2008, § 3.2, Trace-I: each size of Trace-II above 10 kB is cut to 10 kB.
    ("mondal-trace-1", "min(mondal-trace-2, 10 kB)"),
    // Trace-II: web responses with a mean of about 7 kB and up to gigabytes. The paper takes them
    // from a generator (Cao et al. 2004, PackMime), which ns-2 has, too. There a third of the
    // responses validate cached objects (some 145 B). The rest have a median of 2.3 kB and a tail
    // that falls like x^−1.23. docs/reference/arrivals.md has both curves.
    (
        "mondal-trace-2",
        "mix(0.335 lognormal(145 B, 0.3), 0.565 lognormal(1600 B, 1.3), \
         0.1 pareto(1.23, scale 9 kB))",
    ),
    // Trace-III: one in a hundred of the sizes of Trace-II below 5 kB is replaced by a draw with a
    // mean of 10 MB.
    ("mondal-trace-3", "replace(mondal-trace-2 below 5 kB, 0.01 exponential(10 MB))"),
];
