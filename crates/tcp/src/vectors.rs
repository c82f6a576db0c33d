//! The vectors of `vectors/` for the timer, for PRR and for RFC 1016's pause, computed by the reference in `tests/reference`.

use cwnd_cc::{Backoff, RtoPolicy};
use cwnd_units::{Duration, Time};
use serde_json::Value as Json;

use crate::prr::{Prr, PrrAck, PrrRule};
use crate::rtt::RttEstimator;
use crate::squid::{self, Squid};

fn cases(text: &str) -> (Json, Vec<Json>) {
    let file: Json = serde_json::from_str(text).unwrap();
    let cases = file["cases"].as_array().unwrap().clone();
    (file["tolerance"].clone(), cases)
}

fn number(value: &Json) -> u64 {
    value.as_u64().unwrap()
}

fn policy(p: &Json) -> RtoPolicy {
    let ns = |key: &str| Duration(number(&p[key]));
    RtoPolicy {
        min: ns("min_ns"),
        initial: ns("initial_ns"),
        max: ns("max_ns"),
        granularity: ns("granularity_ns"),
        variation_min: ns("granularity_ns"),
        backoff: match p["backoff"].as_str().unwrap() {
            "exponential" => Backoff::Exponential,
            "after" => Backoff::After,
            "off" => Backoff::Off,
            other => panic!("{other}"),
        },
        backoff_after: u32::try_from(number(&p["backoff_after"])).unwrap(),
        backoff_rounds: p["backoff_rounds"].as_u64().map(|n| u32::try_from(n).unwrap()),
    }
}

/// The timeout's tolerance: none where a bound or a tick of the clock decides, else that of the estimator, which each
/// doubling doubles.
fn rto_tolerance(policy: &RtoPolicy, base: u64, doubled: u64, tolerance: u64) -> u64 {
    let decided = base == policy.min.0 || doubled == policy.max.0 || policy.granularity.0 > 1;
    if decided { 0 } else { tolerance * (doubled / base) }
}

#[test]
fn the_timeout_is_that_of_rfc_6298_and_of_tcp_star() {
    let (tolerance, cases) = cases(include_str!("../../../vectors/rto.json"));
    for case in cases {
        let policy = policy(&case["parameters"]);
        let mut rtt = RttEstimator::default();
        let (mut expired, mut base) = (0, number(&case["events"][0]["rto_ns"]));
        for event in case["events"].as_array().unwrap() {
            let at = || format!("{}: {event}", case["name"]);
            let rto = number(&event["rto_ns"]);
            match event["event"].as_str().unwrap() {
                "start" => {}
                "expiry" => expired += 1,
                "sample" => {
                    rtt.sample(Duration(number(&event["rtt_ns"])));
                    (expired, base) = (0, rto);
                }
                other => panic!("{other}"),
            }
            if let Some((srtt, rttvar)) = rtt.estimate() {
                let near = |ours: Duration, key: &str| {
                    ours.0.abs_diff(number(&event[key])) <= number(&tolerance[key])
                };
                assert!(near(srtt, "srtt_ns"), "{srtt}, {}", at());
                assert!(near(rttvar, "rttvar_ns"), "{rttvar}, {}", at());
            }
            let ours = policy.timeout(policy.base(rtt.estimate()), expired);
            let allowed = rto_tolerance(&policy, base, rto, number(&tolerance["rto_ns"]));
            assert!(ours.0.abs_diff(rto) <= allowed, "{ours}, {}", at());
        }
    }
}

#[test]
fn prr_is_that_of_rfc_6937_and_that_of_linux() {
    let (_, cases) = cases(include_str!("../../../vectors/prr.json"));
    for case in cases {
        let p = &case["parameters"];
        let (ssthresh, mss) = (number(&p["ssthresh"]), number(&p["mss"]));
        let linux = p["prr_rule"] == "linux";
        let rule = if linux { PrrRule::Linux } else { PrrRule::Rfc6937 };
        let mut prr = Prr::new(rule, number(&p["recover_fs"]), mss);
        for event in case["events"].as_array().unwrap() {
            if event["event"] == "sent" {
                prr.on_sent(number(&event["bytes"]));
                continue;
            }
            let sndcnt = number(&event["sndcnt"]);
            let (delivered, pipe) = (number(&event["delivered"]), number(&event["pipe"]));
            let safe = event["safe"].as_bool().unwrap_or(true);
            prr.on_ack(PrrAck { delivered, pipe, safe }, ssthresh, mss);
            assert!(prr.allows(sndcnt), "{}: {event}", case["name"]);
            assert!(!prr.allows(sndcnt + 1), "{}: {event}", case["name"]);
        }
    }
}

#[test]
fn the_pause_is_that_of_rfc_1016() {
    let (_, cases) = cases(include_str!("../../../vectors/squid.json"));
    for case in cases {
        let ns = |key: &str| Duration(number(&case["parameters"][key]));
        let params = squid::Params {
            squid_step: ns("k_ns"),
            squid_least: ns("i_ns"),
            squid_decrease: ns("j_ns"),
            squid_event: ns("e_ns"),
            squid_period: ns("s_ns"),
        };
        let mut squid: Option<Squid> = None;
        for event in case["events"].as_array().unwrap() {
            let now = Time(number(&event["now_ns"]));
            let pause = match (event["event"].as_str().unwrap(), &mut squid) {
                ("send", None) => Duration::ZERO,
                ("send", Some(squid)) => squid.on_send(now, &params),
                (_, None) => {
                    assert_eq!(event["begins"], true, "{}: {event}", case["name"]);
                    squid.insert(Squid::begin(now, &params)).pause()
                }
                (_, Some(squid)) => {
                    let begins = squid.on_quench(now, &params);
                    assert_eq!(event["begins"], begins, "{}: {event}", case["name"]);
                    squid.pause()
                }
            };
            assert_eq!(pause.0, number(&event["pause_ns"]), "{}: {event}", case["name"]);
        }
    }
}
