//! Custom parts in scenarios: a controller, a meter with its header and echo, a queue and an
//! application, in one file that no crate knows of. Tests check them against closed forms, and
//! check their declared needs, their counters in the activity and their packets in captures.
//! Further custom controllers, defined here, ask for reductions, pace, write headers and read
//! feedback. The fuzzer's worlds use the parts, too; the application is run in `applications`.

pub mod parts;

use std::sync::{Arc, Mutex};

use cwnd_aqm::{Backlog, Context, Meter, Packet};
use cwnd_cc::newreno::{self, NewReno};
use cwnd_cc::{
    AckSample, Cause, Controller, DelayDecrease, OutgoingData, Path, Request, Rule, Signal, Start,
    Window,
};
use cwnd_packet::{Ability, CongestionHeader, Contract, Echo, HasContract};
use cwnd_quantity::{Duration, Rate, Time};
use cwnd_scenario::requirements::key;
use cwnd_sim::World;
use parts::{DelayBackoff, FairShareMeter, FeedbackSender, MarkEveryNth, SumEcho};

use crate::common::{BOTTLENECK, Kept, activity, at, column, run_audited, scenario};

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

/// A controller with a constant window and pacing rate.
#[derive(Clone, Debug)]
struct Paced {
    window: u64,
    rate: Rate,
}

impl HasContract for Paced {
    fn contract(&self) -> Contract {
        Contract::new().needs(Ability::Pacing, "has a rate that nobody keeps")
    }
}

impl Controller for Paced {
    fn on_ack(&mut self, _: &Path, _: &AckSample) -> Request {
        Request::Nothing
    }
    fn on_signal(&mut self, _: &Path, _: Signal) {}
    fn window(&self) -> Window {
        Window { cwnd: self.window, ssthresh: self.window }
    }
    fn pacing(&self) -> Option<Rate> {
        Some(self.rate)
    }
}

/// With a large window and a pacing rate R below the link's rate C, throughput is R, the link
/// is busy for R / C of the time, and no packet queues; ACK clocking would send whole windows at
/// once.
#[test]
fn a_rate_is_kept_and_nothing_waits() {
    for mbit in [1, 4, 7] {
        let text = r#"
            [run]
            duration = "30 s"
            [dumbbell]
            rate = "8 Mbit/s"
            [flow.main]
            rtt = "50 ms"
            endpoint = { handshake = false }
        "#;
        let mut world = World::new(scenario(text));
        let rate = Rate::from_mbit(mbit);
        assert!(world.replace_controllers("main", move |_| Paced { window: 1_000_000, rate }));
        let records = world.run(|_| true).expect("nothing stops it");
        let busy = at(&records.links, BOTTLENECK, "utilisation");
        // All packets except those of half a round trip at the start.
        let expected = mbit as f64 / 8.0;
        assert!((busy / expected - 1.0).abs() < 0.002, "{mbit}: {busy}");
        assert_eq!(at(&records.links, BOTTLENECK, "qdelay_max_us"), 0.0, "{mbit}");
        assert_eq!(at(&records.links, BOTTLENECK, "dropped_total_pkts"), 0.0);
    }
}

/// NewReno that asks for a reduction when packets are queued for longer than a threshold:
/// delay-AIMD (Leith et al., PFLDnet 2007).
#[derive(Clone, Debug)]
struct DelayAimd {
    reno: NewReno,
    threshold: Duration,
}

impl HasContract for DelayAimd {
    fn contract(&self) -> Contract {
        Contract::new().wants(Ability::Timestamps, "retransmissions are not measured")
    }
}

impl Controller for DelayAimd {
    fn on_ack(&mut self, path: &Path, ack: &AckSample) -> Request {
        let _ = self.reno.on_ack(path, ack);
        match (path.rtt, path.min_rtt) {
            (Some(rtt), Some(least)) if rtt > least + self.threshold => {
                Request::Reduce(Cause::Delay)
            }
            _ => Request::Nothing,
        }
    }
    fn on_signal(&mut self, path: &Path, signal: Signal) {
        self.reno.on_signal(path, signal);
    }
    fn window(&self) -> Window {
        self.reno.window()
    }
}

/// With δ = 1 a reduction exactly empties the queue, so the link stays busy. The queueing delay
/// exceeds the threshold only slightly, and no packet is lost.
#[test]
fn delay_aimd_keeps_a_link_busy_without_loss_and_the_queue_at_its_threshold() {
    let text = r#"
        [run]
        duration = "70 s"
        warmup = "10 s"
        [dumbbell]
        rate = "10 Mbit/s"
        queue = { kind = "fifo", limit = "1000 packets" }
        [flow.main]
        rtt = "50 ms"
        endpoint = { ack_every = 1 }
    "#;
    let threshold = Duration::from_millis(18);
    let mut world = World::new(scenario(text));
    assert!(world.replace_controllers("main", move |start: &Start| {
        let rule = DelayDecrease::new(1.0, &Rule::default());
        let reno = NewReno::new(&newreno::Params::default(), start).with_decrease(rule);
        DelayAimd { reno, threshold }
    }));
    let records = world.run(|_| true).expect("nothing stops it");
    let link = |name: &str| at(&records.links, BOTTLENECK, name);
    assert_eq!(link("dropped_total_pkts"), 0.0);
    assert!(link("utilisation") > 0.99, "{}", link("utilisation"));
    // A segment takes 1.2 ms, and each round trip adds one. A delay above the threshold is known a
    // round trip later, and two more have arrived by then.
    let longest = link("qdelay_max_us") / 1000.0;
    assert!((18.0..18.0 + 3.0 * 1.2).contains(&longest), "{longest} ms");
    assert_eq!(at(&records.flows, 0, "cwnd_reductions_loss"), 0.0);
}

/// A controller that writes its window into headers and grows by the feedback of routers.
#[derive(Clone, Debug)]
struct FeedbackController {
    window: u64,
    received: Arc<Mutex<i64>>,
}

impl HasContract for FeedbackController {
    fn contract(&self) -> Contract {
        Contract::new().provides(Ability::SendsXcp)
    }
}

impl Controller for FeedbackController {
    fn on_ack(&mut self, _: &Path, ack: &AckSample) -> Request {
        if let Echo::Delta(delta) = ack.echo {
            *self.received.lock().expect("nobody panicked with it") += i64::from(delta);
            self.window = self.window.saturating_add_signed(i64::from(delta)).max(3000);
        }
        Request::Nothing
    }
    fn on_signal(&mut self, _: &Path, _: Signal) {}
    fn window(&self) -> Window {
        Window { cwnd: self.window, ssthresh: self.window }
    }
    fn stamp(&mut self, data: &OutgoingData) -> CongestionHeader {
        let rtt_us = data.rtts.srtt().map_or(0, |rtt| (rtt.0 / 1000) as u32);
        CongestionHeader::Xcp { cwnd: self.window as u32, rtt_us, delta: 0 }
    }
}

/// A meter that gives each packet some bytes, and takes some back now and then.
#[derive(Debug)]
struct FeedbackMeter {
    packets: u64,
    given: Arc<Mutex<i64>>,
}

impl HasContract for FeedbackMeter {
    fn contract(&self) -> Contract {
        Contract::new().needs(Ability::SendsXcp, "has nobody to tell").provides(Ability::WritesXcp)
    }
}

impl<P: Packet> Meter<P> for FeedbackMeter {
    fn leaves(&mut self, _: Time, packet: &mut P, _: Backlog, context: &mut dyn Context<P>) {
        let Some(CongestionHeader::Xcp { cwnd, delta, .. }) = context.header(packet) else {
            return;
        };
        assert!(*cwnd >= 3000, "the sender wrote its window");
        self.packets += 1;
        *delta = if self.packets.is_multiple_of(7) { -90 } else { 20 };
        *self.given.lock().expect("nobody panicked with it") += i64::from(*delta);
    }
}

/// The sender receives the sum of the routers' feedback, also with delayed ACKs; the echo policy of
/// RFC 3168, which echoes marks only, delivers none.
#[test]
fn what_a_router_writes_reaches_the_controller_whole() {
    for (echo, every) in [("sum", 1), ("sum", 2), ("sum", 4), ("classic", 2)] {
        let text = format!(
            r#"
            [run]
            duration = "60 s"
            [dumbbell]
            rate = "8 Mbit/s"
            queue = {{ kind = "fifo", limit = "2000 packets" }}
            [flow.main]
            rtt = "50 ms"
            workload = {{ kind = "bytes", size = "2 MB" }}
            endpoint = {{ echo = "{echo}", ack_every = {every} }}
            "#
        );
        let (given, received) = (Arc::<Mutex<i64>>::default(), Arc::<Mutex<i64>>::default());
        let mut world = World::new(scenario(&text));
        let packets = 0;
        assert!(
            world.add_meter("bottleneck", FeedbackMeter { packets, given: Arc::clone(&given) })
        );
        let controller = FeedbackController { window: 30_000, received: Arc::clone(&received) };
        assert!(world.replace_controllers("main", move |_| controller.clone()));
        let records = world.run(|_| true).expect("nothing stops it");
        assert!(at(&records.flows, 0, "fct_s") > 2.0, "it has ended");
        let sum = |of: &Mutex<i64>| *of.lock().expect("nobody panicked with it");
        assert!(sum(&given) > 1000, "{}", sum(&given));
        let expected = if echo == "sum" { sum(&given) } else { 0 };
        assert_eq!(sum(&received), expected, "{echo}, {every}");
    }
}

#[test]
fn a_group_that_is_not_there_gets_none() {
    let text = "[run]\nduration = \"1 s\"\n[dumbbell]\nrate = \"1 Mbit/s\"\n[flow.main]\n\
                rtt = \"50 ms\"\n";
    let mut world = World::new(scenario(text));
    let paced = |_: &Start| Paced { window: 10_000, rate: Rate::from_mbit(1) };
    assert!(!world.replace_controllers("other", paced));
}
