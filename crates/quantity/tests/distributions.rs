//! Distributions of sizes: means and tails agree with SciPy's, and draws agree with the tails.

use cwnd_quantity::dist::{Shape, Table};
use cwnd_quantity::{DurationDist, ParseError, Rng, SizeDist};
use proptest::prelude::*;
use serde_json::Value as Json;

#[path = "../../../tests/vector_files.rs"]
mod vector_files;

fn size(text: &str) -> SizeDist {
    text.parse().unwrap_or_else(|e: ParseError| panic!("{text}: {e}"))
}

fn cases() -> (Json, Vec<Json>) {
    let file = vector_files::of_kind("distribution").remove(0);
    (file["tolerance"].clone(), file["cases"].as_array().expect("there are cases").clone())
}

#[test]
fn means_and_tails_are_those_of_scipy() {
    let (tolerance, cases) = cases();
    for case in &cases {
        let dist = size(case["name"].as_str().unwrap());
        let near = |found: f64, key: &str, event: &Json| match event[key].as_f64() {
            None => assert!(found.is_infinite(), "{}", case["name"]),
            Some(expected) => {
                let off = (found - expected).abs();
                let allowed = tolerance[key].as_f64().unwrap() * expected;
                assert!(off <= allowed, "{}: {event}, found {found}", case["name"]);
            }
        };
        for event in case["events"].as_array().unwrap() {
            if event["event"] == "mean" {
                near(dist.mean(), "mean", event);
                continue;
            }
            let x = event["x"].as_f64().unwrap();
            near(dist.0.ccdf(x), "ccdf", event);
            near(dist.0.limited_mean(x), "limited_mean", event);
        }
    }
}

/// Returns draws of a distribution in ascending order.
fn drawn(dist: &SizeDist) -> Vec<u64> {
    let mut rng = Rng::named(1, "draws");
    let mut draws: Vec<u64> = (0..DRAWS).map(|_| dist.sample(&mut rng).0).collect();
    draws.sort_unstable();
    draws
}

/// Returns the Kolmogorov–Smirnov distance between draws and a distribution, times the root of
/// their number.
fn distance(draws: &[u64], dist: &SizeDist) -> f64 {
    let number = draws.len() as f64;
    let mut worst = 0.0_f64;
    for (i, &value) in draws.iter().enumerate() {
        if draws.get(i + 1) != Some(&value) {
            // Draws are rounded: values up to half a byte above become this one.
            let expected = 1.0 - dist.0.ccdf(value as f64 + 0.5);
            worst = worst.max(((i + 1) as f64 / number - expected).abs());
        }
    }
    worst * number.sqrt()
}

const DRAWS: usize = 100_000;
/// Bound of the distance: of correct sets of draws, one in a thousand exceeds it, by
/// 2·exp(−2·1.95²). The seeds, and with them the results, are fixed.
const FAR: f64 = 1.95;

#[test]
fn what_is_drawn_is_what_the_tails_say() {
    for case in cases().1 {
        let dist = size(case["name"].as_str().unwrap());
        let found = distance(&drawn(&dist), &dist);
        assert!(found < FAR, "{dist}: {found}");
    }
    let (off, meant) = (size("exponential(30.6 kB)"), size("exponential(30 kB)"));
    assert!(distance(&drawn(&off), &meant) > FAR, "a mean that is off by two in a hundred shows");
}

#[test]
fn the_same_seed_draws_the_same_bytes_on_every_machine() {
    for (text, expected) in [
        ("weibull(0.5, 10 kB)", [3025, 18672, 14291, 4321]),
        ("lomax(1.5, 20 kB)", [6796, 26266, 20866, 8584]),
        ("mondal-trace-3", [4453, 658, 130, 3964]),
    ] {
        let mut rng = Rng::named(7, "bits");
        assert_eq!([(); 4].map(|()| size(text).sample(&mut rng).0), expected, "{text}");
    }
}

#[test]
fn trace_one_is_trace_two_cut_at_ten_kilobytes() {
    let (mut one, mut two) = (Rng::named(3, "t"), Rng::named(3, "t"));
    let (cut, whole) = (size("mondal-trace-1"), size("mondal-trace-2"));
    for _ in 0..10_000 {
        assert_eq!(cut.sample(&mut one).0, whole.sample(&mut two).0.min(10_000));
    }
}

#[test]
fn what_is_read_is_written_so_that_it_reads_back() {
    for text in [
        "lomax(1.5, 20 kB)",
        "pareto(1.1, scale 133 kB)",
        "weibull(0.7, scale 1.5 kB)",
        "cdf(40 B: 0, 1 kB: 0.5, 10 kB: 1)",
        "min(pareto(1.2, 30 kB), 1 GB)",
        "mix(0.25 30 kB, 0.75 min(exponential(1 kB), 2 kB))",
        "replace(exponential(4 kB) below 5 kB, 0.01 mix(0.5 1 MB, 0.5 2 MB))",
    ] {
        assert_eq!(size(text).to_string(), text);
    }
    let named = size("mondal-trace-3").to_string();
    assert!(named.starts_with("replace(mix(0.335 lognormal(145 B, 0.3), "), "{named}");
    assert_eq!(size(&named), size("mondal-trace-3"));
    let text = "mix(0.5 weibull(0.7, 10 ms), 0.5 lomax(2, scale 1 s))";
    let time = text.parse::<DurationDist>().unwrap();
    assert_eq!(time.to_string(), text);
}

#[test]
fn what_is_no_distribution_is_refused_with_the_fix() {
    let why = |text: &str| text.parse::<SizeDist>().unwrap_err().0;
    for (text, said) in [
        ("pareto(0.9, 30 kB)", "pareto(0.9, scale 30 kB)"),
        ("lomax(0, 30 kB)", "above 0"),
        ("weibull(0.01, 30 kB)", "from 0.05 to 100"),
        ("cdf(sizes.csv)", "no file that could be read"),
        ("cdf(1 kB: 0.5)", "last probability must be 1"),
        ("cdf(1 kB: 0.5, 2 kB: 0.4, 3 kB: 1)", "point 2 of `cdf`: a cumulative probability must"),
        ("cdf(2 kB: 0.5, 1 kB: 1)", "point 2 of `cdf`: the values must not fall"),
        ("cdf(2 kB: 1.5)", "between 0 and 1"),
        ("cdf(2 kB: 0.5, 3 kB)", "`3 kB` is no point"),
        ("min(30 kB)", "does not take 1 value"),
        ("min(30 kB, 0 B)", "zero"),
        ("mix(0.5 1 kB, 0.6 2 kB)", "add up to 1, not to 1.1"),
        ("mix(half 1 kB)", "lacks its share"),
        ("mix(-1 1 kB, 2 2 kB)", "above 0 and at most 1"),
        ("replace(1 kB, 0.5 2 kB)", "below limit"),
        ("mondal-trace-4", "mondal-trace-3"),
        ("normal(1 kB, 2 kB)", "unknown distribution `normal`"),
    ] {
        assert!(why(text).contains(said), "{text}: {}", why(text));
    }
    let deep = format!("{}1 kB{}", "min(".repeat(50_000), ", 1 kB)".repeat(50_000));
    assert!(why(&deep).contains("16 deep"));
    let time = "lomax(1, scale 1 s)".parse::<DurationDist>();
    assert!(time.unwrap_err().0.contains("min(lomax(1, scale 1 s), 1 h)"));
}

proptest! {
    /// Quantiles and tail of a table are inverse to each other, and its mean is that of its
    /// quantiles.
    #[test]
    fn a_table_is_one_distribution_however_one_looks_at_it(
        steps in prop::collection::vec((0u64..1000, 0u32..100), 1..20),
        first in 0u64..100,
    ) {
        let total: u32 = steps.iter().map(|(_, weight)| weight).sum();
        prop_assume!(total > 0);
        let (mut value, mut sum, mut points) = (first, 0, Vec::new());
        for (more, weight) in steps {
            value += more;
            sum += weight;
            let part = if sum == total { 1.0 } else { f64::from(sum) / f64::from(total) };
            points.push((value, part));
        }
        let table = Table::new(points).unwrap();
        let shape = Shape::Table(table.clone().into());
        let n = 4000;
        let mut mean = 0.0;
        for i in 0..n {
            let u = (f64::from(i) + 0.5) / f64::from(n);
            let q = table.quantile(u);
            mean += q / f64::from(n);
            // At a step, several fractions have the same quantile.
            prop_assert!(shape.ccdf(q + 1e-6) <= 1.0 - u + 1e-5);
            prop_assert!(shape.ccdf(q - 1e-6) >= 1.0 - u - 1e-5);
        }
        let (found, error) = (shape.mean(), value as f64 / f64::from(n) + 1e-6);
        prop_assert!((mean - found).abs() <= error, "{mean} {found}");
    }

    /// The mean up to a limit grows with the limit, and never faster than it.
    #[test]
    fn a_limited_mean_grows_no_faster_than_its_limit(
        text in prop::sample::select(vec![
            "mondal-trace-3", "weibull(0.3, 5 kB)", "lomax(0.8, scale 1 kB)", "lognormal(1 kB, 2)",
            "uniform(3 B, 90 kB)",
        ]),
        a in 0.0f64..1e9,
        b in 0.0f64..1e9,
    ) {
        let shape = size(text).0;
        let (low, high) = (a.min(b), a.max(b));
        let (at_low, at_high) = (shape.limited_mean(low), shape.limited_mean(high));
        prop_assert!(at_low <= low * (1.0 + 1e-9) && at_low <= at_high * (1.0 + 1e-9));
        prop_assert!(at_high - at_low <= (high - low) * (1.0 + 1e-9) + 1e-6);
    }
}
