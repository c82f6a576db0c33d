//! Custom parts in scenarios: a controller, a meter with its header and echo, a queue and an
//! application, each in one file that no crate knows of. Tests check them against closed forms, and
//! check their declared needs, their counters in the activity and their packets in captures. The
//! fuzzer's worlds use them, too; the application is run in `applications`.

use cwnd_quantity::Duration;
use cwnd_scenario::requirements::key;
use cwnd_sim::World;

use crate::common::{BOTTLENECK, Kept, activity, at, column, run_audited, scenario};

pub mod delay_backoff;
pub mod fair_share;
pub mod mark_every_nth;
pub mod object_sequence;

use delay_backoff::DelayBackoff;
use fair_share::{FairShareMeter, FeedbackSender, SumEcho};
use mark_every_nth::MarkEveryNth;

/// Returns the unmet requirements of a world, as messages that begin with their keys.
fn unmet_messages(world: &World) -> Vec<String> {
    let text = |unmet| {
        let place = key(world.scenario(), &unmet, true).join(".");
        format!("{place}: {}", unmet.message)
    };
    world.unmet().into_iter().map(text).collect()
}

fn dumbbell(flows: u32, queue: &str, endpoint: &str) -> World {
    World::new(scenario(&format!(
        r#"
        [run]
        duration = "40 s"
        warmup = "10 s"
        [dumbbell]
        rate = "10 Mbit/s"
        queue = {queue}
        [flow.own]
        count = {flows}
        rtt = "50 ms"
        endpoint = {{ {endpoint} }}
        "#
    )))
}

#[test]
fn a_controller_of_ones_own_asks_for_reductions_by_delay() {
    let most = Duration::from_millis(10);
    let with = |endpoint: &str| {
        let mut world = dumbbell(
            1,
            r#"{ kind = "fifo", limit = "3 BDP" }"#,
            &format!("ack_every = 1, {endpoint}"),
        );
        assert!(world.replace_controllers("own", move |start| DelayBackoff::new(start, most)));
        assert!(!world.replace_controllers("nobody", move |start| DelayBackoff::new(start, most)));
        world
    };
    assert_eq!(
        unmet_messages(&with("timestamps = false")),
        ["flow.own.controller: `own` measures retransmissions, too: segments carry no timestamps"]
    );
    let world = with("timestamps = true");
    assert_eq!(unmet_messages(&world), [] as [&str; 0]);
    let records = run_audited(world);
    // It keeps min / RTT of the window: the reduction removes the queue exactly, and the link stays
    // busy.
    assert!(at(&records.links, BOTTLENECK, "utilisation") > 0.97);
    assert_eq!(at(&records.links, BOTTLENECK, "dropped_pkts"), 0.0);
    // The queueing delay stays below the threshold plus the growth in the round trip until the
    // reduction acts.
    let grows = Duration::from_millis(5).0 as f64 / 1000.0;
    let longest = at(&records.flows, 0, "rtt_p99_us") - at(&records.flows, 0, "rtt_min_us");
    assert!((5_000.0..10_000.0 + grows).contains(&longest), "{longest} us");
    // From an empty queue to 10 ms at 1.25 MB/s the window grows by 12.5 kB, a segment each round
    // trip of 50 to 60 ms.
    let (mss, rtt_s) = (1448.0, 0.055);
    let period_s = 12_500.0 / mss * rtt_s;
    let reductions = activity(&records, "delay_reductions") as f64;
    let expected = 40.0 / period_s;
    assert!((0.75..1.25).contains(&(reductions / expected)), "{reductions}, {expected}");
    assert!(activity(&records, "shy_waited_too_long") as f64 >= reductions);
    assert_eq!(activity(&records, "loss_reductions"), 0);
}

#[test]
fn a_meter_with_its_header_and_echo_fills_the_link_without_a_queue() {
    let new = |flows: u32| {
        let mut world = dumbbell(flows, r#"{ kind = "fifo", limit = "1 BDP" }"#, "ack_every = 2");
        assert!(world.replace_controllers("own", FeedbackSender::new));
        world
    };
    // With a queue that fills no headers, the sender stays at its initial window; the missing meter
    // is reported first, and the run confirms it.
    let world = new(1);
    assert_eq!(
        unmet_messages(&world),
        [
            "flow.own.controller: `own` stays at its first window: \
             link `bottleneck` does not fill XCP's header (fifo)",
            "flow.own.controller: `own` hears of no share: ACKs do not sum what routers wrote",
        ]
    );
    let records = run_audited(world);
    let window_rate = 10.0 * 1448.0 * 8.0 / 0.05;
    let goodput = at(&records.flows, 0, "goodput_bit_s");
    assert!((0.95..=1.0).contains(&(goodput / window_rate)), "{goodput}, {window_rate}");
    assert_eq!(records.activity.get("sharer_filled"), None);

    // A meter alone requires senders of headers.
    let mut world = dumbbell(1, r#""codel""#, "ecn = true");
    assert!(world.add_meter("bottleneck", FairShareMeter::new(Duration::from_millis(50))));
    let nobody = "dumbbell.meter: `own` has nobody to tell: data has no XCP header";
    assert_eq!(unmet_messages(&world), [nobody]);

    for flows in [1, 4] {
        let mut world = new(flows);
        assert!(world.replace_echo("own", SumEcho::default()));
        assert!(!world.replace_echo("nobody", SumEcho::default()));
        assert!(world.add_meter("bottleneck", FairShareMeter::new(Duration::from_millis(50))));
        assert_eq!(unmet_messages(&world), [] as [&str; 0]);
        let records = run_audited(world);
        let link = |name: &str| at(&records.links, BOTTLENECK, name);
        assert!(link("utilisation") > 0.97, "{flows}: {}", link("utilisation"));
        assert_eq!(link("dropped_pkts"), 0.0);
        // Drop-tail would fill its 50 ms of buffer.
        assert!(link("qdelay_p99_us") < 12_500.0, "{flows}: {} us", link("qdelay_p99_us"));
        // Each data packet is filled in once; some packets have not arrived yet.
        let filled = activity(&records, "sharer_filled") as f64;
        let sent = column(&records.flows, "bytes_received").iter().sum::<f64>() / 1448.0;
        assert!((sent..sent + 200.0).contains(&filled), "{filled}, {sent}");
    }
}

#[test]
fn a_queue_of_ones_own_marks_by_its_own_rule_and_reason() {
    const N: u64 = 200;
    let world = |ecn: bool| {
        let mut world = dumbbell(2, r#""fifo""#, &format!("ecn = {ecn}"));
        assert!(world.replace_queue("bottleneck", |_, _| MarkEveryNth::new(N, 1000)));
        // The queue declares that it marks; with a FIFO there would be a warning.
        assert_eq!(unmet_messages(&world), [] as [&str; 0]);
        world
    };
    assert!(!unmet_messages(&dumbbell(2, r#""fifo""#, "ecn = true")).is_empty());
    for ecn in [true, false] {
        let records = run_audited(world(ecn));
        let came = activity(&records, "toy_nth_came");
        let by = |verdict: &str| records.packets(BOTTLENECK, verdict, "toy_nth")[1];
        let (marked, dropped) = (by("marked"), by("dropped"));
        // A SYN and similar packets are not ECN-capable, so a few are dropped.
        assert_eq!(marked + dropped, came / N, "{ecn}: {came} came");
        assert!(if ecn { dropped <= 3 } else { marked == 0 }, "{ecn}: {marked}, {dropped}");
        let acted = if ecn { "ecn_reductions" } else { "loss_reductions" };
        assert!(activity(&records, acted) > 20);
    }
}

#[test]
fn captures_show_what_they_did_and_change_nothing() {
    let world = || {
        let mut world = dumbbell(2, r#""fifo""#, "ecn = true");
        assert!(world.replace_controllers("own", |start| DelayBackoff::new(
            start,
            Duration::from_millis(30)
        )));
        assert!(world.replace_queue("bottleneck", |_, _| MarkEveryNth::new(50, 100)));
        world
    };
    let kept = Kept::default();
    let mut captured_world = world();
    captured_world.capture(&[BOTTLENECK], Box::new(kept.clone())).expect("it can be captured");
    let (captured, plain) = (run_audited(captured_world), run_audited(world()));
    assert_eq!(captured.digest(), plain.digest());
    let comments = String::from_utf8_lossy(&kept.bytes()).matches("toy_nth").count() as u64;
    let by = |verdict: &str| captured.packets(BOTTLENECK, verdict, "toy_nth")[1];
    let verdicts = by("marked") + by("dropped");
    assert!(verdicts > 20 && comments == verdicts, "{comments} comments, {verdicts}");
}
