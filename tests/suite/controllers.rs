//! Custom controllers in flows of a scenario's world: reductions on request, pacing, headers and
//! router feedback.

use std::sync::{Arc, Mutex};

use cwnd_aqm::{Backlog, Context, Meter, Packet};
use cwnd_cc::newreno::{self, NewReno};
use cwnd_cc::{
    AckSample, Cause, Controller, DelayDecrease, OutgoingData, Path, Request, Rule, Signal, Start,
    Window,
};
use cwnd_packet::{Ability, CongestionHeader, Contract, Echo, HasContract};
use cwnd_quantity::{Duration, Rate, Time};
use cwnd_sim::World;

use crate::common::{BOTTLENECK, at, scenario};

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

/// With an unlimited window and a pacing rate R below the link's rate C, throughput is R, the link
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
