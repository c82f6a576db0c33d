//! Replays of `vectors/`, computed by the reference in `tests/reference`: retransmission timer,
//! F-RTO, PRR, delivery rates, RTTs of controllers, and RFC 1016's pause.

use cwnd_cc::{Backoff, ControllerParams, RateSample, RtoPolicy};
use cwnd_packet::{Echo, Range, Ranges};
use cwnd_quantity::{Divisor, Duration, Time};
use cwnd_schema::{Params as _, ParamsChoice as _, Value};
use serde_json::Value as Json;

use crate::config::Config;
use crate::controller_rtt::ControllerRtt;
use crate::delivery_rate::DeliveryRate;
use crate::params::{Params, SquidParams, TimingParams};
use crate::prr::{Prr, PrrAck, PrrRule};
use crate::rtt::{At, RttEstimator};
use crate::segment::{SackBlock, SackBlocks};
use crate::sender::cwr::Squid;
use crate::sent_segments::{Notes, Retransmission, SentSegments};
use crate::spurious_timeout::{AckFacts, Frto, Verdict};

#[path = "../../../tests/vector_files.rs"]
mod vector_files;

fn cases(files: &[Json]) -> (Json, Vec<Json>) {
    let [file] = files else { panic!("each of these kinds has one file") };
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
        granularity: Divisor::new(ns("granularity_ns").0),
        variation_min: Duration(p["variation_min_ns"].as_u64().unwrap_or(0))
            .max(ns("granularity_ns")),
        slop: Duration(p["slop_ns"].as_u64().unwrap_or(0)),
        backoff: match p["backoff"].as_str().unwrap() {
            "exponential" => Backoff::Exponential,
            "after" => Backoff::After,
            "bounded" => Backoff::Bounded,
            "off" => Backoff::Off,
            other => panic!("{other}"),
        },
        backoff_after: u32::try_from(number(&p["backoff_after"])).unwrap(),
        backoff_rounds: p["backoff_rounds"].as_u64().map(|n| u32::try_from(n).unwrap()),
    }
}

/// Tolerance of the timeout: zero if a bound or a tick of the clock decides, else that of the
/// estimator, doubled by each backoff.
fn rto_tolerance(policy: &RtoPolicy, base: u64, doubled: u64, tolerance: u64) -> u64 {
    let before = base.saturating_sub(policy.slop.0).max(1);
    let decided = before == policy.min.0 || doubled == policy.max.0 || policy.granularity.get() > 1;
    if decided { 0 } else { tolerance * (doubled / before) }
}

#[test]
fn the_timeout_is_that_of_rfc_6298_and_of_tcp_star() {
    let (tolerance, cases) = cases(&vector_files::of_kind("rto"));
    for case in cases {
        let policy = policy(&case["parameters"]);
        let of_linux = case["parameters"]["arithmetic"] == "linux";
        let mut rtt = match &case["parameters"]["variation_min_ns"] {
            floor if of_linux => RttEstimator::windowed_deviation(Duration(number(floor))),
            _ => RttEstimator::default(),
        };
        let (mut expired, mut base) = (0, number(&case["events"][0]["rto_ns"]));
        for event in case["events"].as_array().unwrap() {
            let at = || format!("{}: {event}", case["name"]);
            let rto = number(&event["rto_ns"]);
            match event["event"].as_str().unwrap() {
                "start" => {}
                "expiry" => expired += 1,
                "sample" => {
                    let far = |key: &str| event[key].as_u64().unwrap_or(0);
                    let at = At { una: far("una"), sent: far("sent") };
                    rtt.sample(Duration(number(&event["rtt_ns"])), at);
                    (expired, base) = (0, rto);
                }
                other => panic!("{other}"),
            }
            if let Some((srtt, rttvar)) = rtt.estimate() {
                // Linux's integer arithmetic has no tolerance.
                let allowed = |key: &str| if of_linux { 0 } else { number(&tolerance[key]) };
                let near = |ours: Duration, key: &str| {
                    ours.0.abs_diff(number(&event[key])) <= allowed(key)
                };
                assert!(near(srtt, "srtt_ns"), "{srtt}, {}", at());
                assert!(near(rttvar, "rttvar_ns"), "{rttvar}, {}", at());
            }
            let ours = policy.armed(rtt.estimate(), expired);
            let inexact = if of_linux { 0 } else { number(&tolerance["rto_ns"]) };
            let allowed = rto_tolerance(&policy, base, rto, inexact);
            assert!(ours.0.abs_diff(rto) <= allowed, "{ours}, {}", at());
        }
    }
}

#[test]
fn prr_is_that_of_rfc_6937_and_that_of_linux() {
    let (_, cases) = cases(&vector_files::of_kind("prr"));
    for case in cases {
        let p = &case["parameters"];
        let (ssthresh, mss) = (number(&p["ssthresh"]), number(&p["mss"]));
        let linux = p["prr_rule"] == "linux";
        let rule = if linux { PrrRule::WholeSegments } else { PrrRule::Rfc6937 };
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

/// Reads pairs of a start and an end.
fn pairs(value: &Json) -> Vec<(u64, u64)> {
    let pairs = value.as_array().unwrap().iter();
    pairs.map(|pair| (number(&pair[0]), number(&pair[1]))).collect()
}

/// Converts pairs to the SACK blocks of an ACK.
fn blocks(ack: u64, pairs: &[(u64, u64)]) -> SackBlocks {
    let mut blocks = SackBlocks::default();
    for (block, &(start, end)) in blocks.iter_mut().zip(pairs) {
        *block = SackBlock::of(ack, start, end);
    }
    blocks
}

#[test]
fn f_rto_is_that_of_rfc_5682() {
    let (_, cases) = cases(&vector_files::of_kind("frto"));
    for case in cases {
        let events = case["events"].as_array().unwrap();
        let recover = number(&events[0]["high"]);
        let sack = case["parameters"]["sack"].as_bool().unwrap();
        let mut repeated = pairs(&events[0]["again"]);
        repeated.push((0, number(&case["parameters"]["mss"]).min(recover)));
        let mut board = SentSegments::default();
        for (start, end) in pairs(&events[0]["sacked"]) {
            board.on_sack(&blocks(0, &[(start, end)]), 0, recover);
        }
        let again = pairs(&events[0]["again"]).into_iter();
        let mut frto = Frto::new(again, 0, recover, board.sacked());
        let (mut una, mut high) = (0, recover);
        for event in &events[1..] {
            if event["event"] == "sent" {
                high = number(&event["high"]);
                continue;
            }
            let ack = number(&event["ack"]);
            let sacked = board.on_sack(&blocks(ack, &pairs(&event["sack"])), ack, high);
            board.on_ack(ack, None);
            let again = repeated.iter().any(|&(start, end)| start < ack && una < end);
            let facts = AckFacts {
                advances: ack > una,
                sacks: if sack { sacked > 0 } else { ack <= una },
                acks_retransmission: !sack && again,
                recovers: ack >= recover,
                new_sent: high > recover,
                new_waits: event["waits"].as_bool().unwrap(),
            };
            una = ack;
            let blocks = pairs(&event["sack"]).into_iter().map(Range::from);
            let verdict = match frto.on_ack(facts, una, blocks, board.sacked()) {
                Verdict::Open => "open",
                Verdict::SendNew => "new",
                Verdict::Spurious => "spurious",
                Verdict::Lost => "lost",
            };
            assert_eq!(event["verdict"], verdict, "{}: {event}", case["name"]);
        }
    }
}

/// Records a transmission of `range`; returns `true` if some of it is a retransmission.
fn send(segments: &mut SentSegments, range: Range, una: u64, high: &mut u64, now: Time) -> bool {
    let again = range.start < *high;
    if again {
        segments.on_retransmission_sent(Retransmission { range, una, high: *high, marked: None });
    } else {
        segments.on_sent(range, now, 1000);
    }
    *high = (*high).max(range.end);
    again
}

#[test]
fn delivery_rates_are_those_of_draft_cheng() {
    let (_, cases) = cases(&vector_files::of_kind("delivery-rate"));
    for case in cases {
        let mut rates = DeliveryRate::default();
        let notes = Notes { rates: true, ..Notes::default() };
        let mut segments = SentSegments::new(&Params::default(), notes);
        let mut sacked = Ranges::default();
        // Bytes delivered: those acknowledged, and those SACKed above.
        let delivered = |una: u64, sacked: &Ranges| una + sacked.covered(una, u64::MAX);
        let (mut una, mut high) = (0, 0);
        for event in case["events"].as_array().unwrap() {
            let now = Time(number(&event["now_ns"]));
            if event["event"] == "sent" {
                let first = event["first"].as_bool().unwrap();
                let range = Range { start: number(&event["seq"]), end: number(&event["end"]) };
                let again = send(&mut segments, range, una, &mut high, now);
                let note = rates.on_sent(now, delivered(una, &sacked), first);
                segments.record_send_state(range, note, again);
                continue;
            }
            let ack = number(&event["ack"]);
            for block in event["sack"].as_array().into_iter().flatten() {
                let (seq, end) = (number(&block[0]), number(&block[1]));
                let (_, new) = sacked.insert(seq, end);
                segments.note_sacked([Range { start: seq, end }].into_iter(), new);
            }
            una = una.max(ack);
            segments.forget_times_below(una);
            let in_flight = number(&event["in_flight"]);
            let idle = event["idle"].as_bool().unwrap_or(false);
            let newest = segments.take_newest();
            let found = rates.on_ack(now, newest, delivered(una, &sacked), in_flight, idle);
            let expected = RateSample {
                newly_delivered: number(&event["newly"]),
                total_delivered: number(&event["total"]),
                prior_delivered: event["prior"].as_u64(),
                interval: event["interval_ns"].as_u64().map(Duration),
                rtt: event["rtt_ns"].as_u64().map(Duration),
                in_flight,
                app_limited: event["app_limited"].as_bool().unwrap_or(false),
            };
            assert_eq!(found, expected, "{}: {event}", case["name"]);
        }
    }
}

#[test]
fn the_pause_is_that_of_rfc_1016() {
    let (_, cases) = cases(&vector_files::of_kind("squid"));
    for case in cases {
        let ns = |key: &str| Duration(number(&case["parameters"][key]));
        let params = SquidParams {
            squid_step: ns("k_ns"),
            squid_min_pause: ns("i_ns"),
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

/// Builds the configuration with a case's parameters.
fn endpoint(p: &Json) -> Config {
    let timing = TimingParams {
        rtt_clock: Duration(number(&p["rtt_clock_ns"])),
        rtt_lone_acks: p["rtt_lone_acks"].as_bool().unwrap(),
        // Creates a `ControllerRtt` even if the controller sees the timer's samples.
        record_delays: true,
        ..TimingParams::default()
    };
    let mut params = Params::default();
    params.rtt.clock = Duration(number(&p["clock_ns"]));
    params.acks.ack_every = u32::try_from(number(&p["ack_every"])).unwrap();
    params.timing = timing;
    for key in ["rtt_from", "rtt_every"] {
        params.set(key, &Value::Text(p[key].as_str().unwrap().to_owned())).unwrap();
    }
    Config::new(params, ControllerParams::of_kind("newreno").unwrap())
}

#[test]
fn round_trips_are_seen_as_each_way_of_measuring_has_it() {
    let (_, cases) = cases(&vector_files::of_kind("round-trips"));
    let ns = |event: &Json, key: &str| Time(number(&event[key]));
    for case in cases {
        let config = endpoint(&case["parameters"]);
        let mut timing = ControllerRtt::new(&config).expect("its own notes");
        let mut segments = SentSegments::new(&Params::default(), timing.notes());
        let (mut una, mut high) = (0, 0);
        let mut sacked = Ranges::default();
        for event in case["events"].as_array().unwrap() {
            let now = ns(event, "now_ns");
            let echoed = |echo: Time| Some((now.since(echo), config.measured(echo.0, now.0)));
            let seen = match event["event"].as_str().unwrap() {
                "sent" => {
                    let range = Range { start: number(&event["seq"]), end: number(&event["end"]) };
                    send(&mut segments, range, una, &mut high, now);
                    continue;
                }
                "handshake" => {
                    let timer = echoed(ns(event, "ecr_ns")).map(|(_, measured)| measured);
                    let once = event["once"].as_bool().unwrap();
                    timing.on_handshake(now, ns(event, "sent_ns"), timer, once)
                }
                _ => {
                    let ack = number(&event["ack"]);
                    let blocks = event["sack"].as_array().into_iter().flatten();
                    let blocks: Vec<_> =
                        blocks.map(|block| (number(&block[0]), number(&block[1]))).collect();
                    let new = blocks.iter().map(|&(seq, end)| sacked.insert(seq, end).1).sum();
                    segments.note_sacked(blocks.iter().map(|&block| Range::from(block)), new);
                    let echo = event["delay_us"]
                        .as_u64()
                        .map_or(Echo::None, |us| Echo::Delay { us: u32::try_from(us).unwrap() });
                    let sample = if ack > una {
                        segments.forget_times_below(ack);
                        let timer = echoed(ns(event, "ecr_ns"));
                        timing.on_ack(now, (ack, high), segments.take_arrivals(), timer, echo)
                    } else {
                        timing.on_duplicate(now, (una, high), segments.take_sacked())
                    };
                    una = una.max(ack);
                    sample.map(|(_, measured)| measured)
                }
            };
            let expected = event["seen_ns"].as_u64().map(Duration);
            assert_eq!(seen, expected, "{}: {event}", case["name"]);
        }
    }
}
