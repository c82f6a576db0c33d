//! Endpoints from outside in simulated networks: a clock with its echo, against closed forms, and
//! quinn-proto with its own congestion control, beside cwnd's QUIC, TCP and 999 others.

#[expect(dead_code, reason = "the example's own main is not called")]
#[path = "../../../crates/cc/examples/quinn.rs"]
mod cubic_abe;
pub mod quinn;

use std::sync::Arc;

use cubic_abe::CubicAbe;
use cwnd_apps::Transport;
use cwnd_packet::Ecn;
use cwnd_quantity::{Duration, Time};
use cwnd_sim::{Datagram, Endpoint, EndpointStart, World};
use cwnd_tables::{ColumnData, Records};
use proptest::prelude::*;
use quinn::{Congestion, pair};
use quinn_proto::congestion::{BbrConfig, CubicConfig, NewRenoConfig};

use crate::common::{BOTTLENECK, Kept, at, column, is_long, jain, run, run_audited, scenario};
use crate::random::any_scenario;

/// Sends a datagram of 972 B, 1,000 B on the wire, at regular times, and stops after `left`.
struct Clock {
    next: Time,
    left: u32,
}

/// Sends each datagram back, with its ECN field.
#[derive(Default)]
struct EchoBack(Option<Datagram>);

const GAP: Duration = Duration::from_millis(10);

impl Endpoint for Clock {
    fn poll_transmit(&mut self, now: Time) -> Option<Datagram> {
        if self.left == 0 || now < self.next {
            return None;
        }
        assert_eq!(now, self.next, "a timeout is exact");
        self.next = now + GAP;
        self.left -= 1;
        let mut payload = now.0.to_be_bytes().to_vec();
        payload.resize(972, 0x55);
        Some(Datagram { payload, ecn: Ecn::Ect1 })
    }
    fn on_datagram(&mut self, now: Time, Datagram { payload, ecn }: Datagram) {
        let (sent, rest) = payload.split_at(8);
        let sent = Time(u64::from_be_bytes(sent.try_into().expect("it has 8 B")));
        // 40 ms of propagation, and 1,000 B at 8 Mbit/s each way: 2 ms.
        assert_eq!(now.since(sent), Duration::from_millis(42));
        assert!(rest.len() == 964 && rest.iter().all(|&byte| byte == 0x55));
        assert_eq!(ecn, Ecn::Ect1);
    }
    fn next_timeout(&mut self) -> Option<Time> {
        (self.left > 0).then_some(self.next)
    }
    fn on_timeout(&mut self, _: Time) {}
}

impl Endpoint for EchoBack {
    fn poll_transmit(&mut self, _: Time) -> Option<Datagram> {
        self.0.take()
    }
    fn on_datagram(&mut self, _: Time, datagram: Datagram) {
        self.0 = Some(datagram);
    }
    fn next_timeout(&mut self) -> Option<Time> {
        None
    }
    fn on_timeout(&mut self, _: Time) {}
}

/// Wants a timeout that is always due.
struct Stuck;

impl Endpoint for Stuck {
    fn poll_transmit(&mut self, _: Time) -> Option<Datagram> {
        None
    }
    fn on_datagram(&mut self, _: Time, _: Datagram) {}
    fn next_timeout(&mut self) -> Option<Time> {
        Some(Time::ZERO)
    }
    fn on_timeout(&mut self, _: Time) {}
}

/// Builds a dumbbell of 40 ms and runs endpoints in its group `own`.
fn world(
    (run, rate, more): (&str, &str, &str),
    flows: &str,
    make: impl FnMut(EndpointStart) -> [Box<dyn Endpoint>; 2] + Send + 'static,
) -> World {
    let mut world = World::new(scenario(&format!(
        "[run]\n{run}\nnoise = \"none\"\n[dumbbell]\nrate = \"{rate}\"\n{more}\n\
         [flow.own]\nrtt = \"40 ms\"\n{flows}\n"
    )));
    assert!(world.replace_endpoints("own", make));
    let refused = world.log_senders(&[0], Box::new(|_, _| None)).expect_err("they are not cwnd's");
    assert_eq!(refused.to_string(), "flow group `own` has no senders of cwnd to log");
    world
}

/// Runs connections of quinn over 10 Mbit/s.
fn quinn(run: &str, more: &str, flows: &str, congestion: &Congestion) -> Records {
    let congestion = Arc::clone(congestion);
    let own = move |start| pair(start, &congestion);
    run_audited(world((run, "10 Mbit/s", more), flows, own))
}

fn new_reno() -> Congestion {
    Arc::new(NewRenoConfig::default())
}

fn cubic() -> Congestion {
    Arc::new(CubicConfig::default())
}

fn bbr() -> Congestion {
    Arc::new(BbrConfig::default())
}

fn flow(records: &Records, name: &str) -> f64 {
    at(&records.flows, 0, name)
}

fn link(records: &Records, name: &str) -> f64 {
    at(&records.links, BOTTLENECK, name)
}

#[test]
fn a_clock_and_its_echo_keep_time_to_the_nanosecond() {
    let make = |start: EndpointStart| -> [Box<dyn Endpoint>; 2] {
        assert_eq!((start.number, start.size, start.stop), (0, None, None));
        let clock = Clock { next: Time(Duration::from_millis(500).0), left: 100 };
        [Box::new(clock), Box::<EchoBack>::default()]
    };
    let mut world = world(("duration = \"3 s\"", "8 Mbit/s", ""), "start = \"500 ms\"", make);
    assert!(!world.replace_endpoints("nobody", make));
    let records = run_audited(world);
    assert_eq!(flow(&records, "segments_sent"), 100.0);
    assert_eq!(flow(&records, "bytes_received"), 97_200.0);
    // 97,200 B over 2.5 s.
    assert_eq!(flow(&records, "goodput_bit_s"), 311_040.0);
    assert_eq!(link(&records, "delivered_total_pkts"), 100.0);
    assert_eq!(records.delivered_data_packets, 200);
}

#[test]
fn quinn_fills_a_link_with_cubic_and_bbr_of_its_own() {
    let delays = [new_reno(), cubic(), bbr()].map(|congestion| {
        let records = quinn(
            "duration = \"30 s\"\nwarmup = \"10 s\"",
            "queue = { kind = \"fifo\", limit = \"4 BDP\" }",
            "",
            &congestion,
        );
        assert!(link(&records, "utilisation") > 0.98);
        // MTU discovery ends at 1,452 B; 28 B of UDP and IP, 27 to 31 B of a short header, a tag
        // and the header of a STREAM frame. Packets that are not full are few.
        let share = flow(&records, "goodput_bit_s") / flow(&records, "throughput_bit_s");
        assert!((0.95..1425.0 / 1480.0).contains(&share), "{share}");
        assert_eq!(flow(&records, "retrans"), link(&records, "dropped_pkts"));
        assert!(flow(&records, "cwnd_reductions_ecn") == 0.0);
        assert!(flow(&records, "rtt_min_us") > 41_000.0);
        link(&records, "qdelay_mean_us")
    });
    // NewReno and CUBIC keep a queue of 4 BDP, 160 ms, mostly full; BBR's window is 2 BDP.
    let [reno, cubic, bbr] = delays;
    assert!(reno > 80_000.0 && cubic > 80_000.0, "{reno} {cubic}");
    assert!((20_000.0..60_000.0).contains(&bbr), "{bbr}");
}

#[test]
fn quinn_loses_as_much_goodput_to_random_loss_as_cwnds_quic() {
    for loss in ["0.01", "0.003"] {
        let run_of = "duration = \"300 s\"\nwarmup = \"10 s\"";
        let lossy = format!("loss = {loss}\nqueue = {{ kind = \"fifo\", limit = \"4 BDP\" }}");
        let other = quinn(run_of, &lossy, "", &new_reno());
        let ours = run(&format!(
            "[run]\n{run_of}\nnoise = \"none\"\n[dumbbell]\nrate = \"10 Mbit/s\"\n{lossy}\n\
             [flow.own]\nrtt = \"40 ms\"\nstack = \"quic\"\ncontroller = \"newreno\"\n"
        ));
        assert_eq!(flow(&other, "retrans"), link(&other, "dropped_pkts"));
        let ratio = flow(&other, "goodput_bit_s") / flow(&ours, "goodput_bit_s");
        assert!((0.9..1.15).contains(&ratio), "{loss}: {ratio}");
    }
}

#[test]
fn quinn_delivers_each_byte_despite_loss_and_reordering() {
    for congestion in [new_reno(), cubic(), bbr()] {
        let records = quinn(
            "duration = \"30 s\"",
            "loss = 0.02\nreorder = 0.02\nreorder_delay = \"5 ms\"",
            "workload = { kind = \"bytes\", size = \"2 MB\" }",
            &congestion,
        );
        assert_eq!(flow(&records, "size_bytes"), 2e6);
        assert_eq!(flow(&records, "delivered_bytes"), 2e6);
        assert!(flow(&records, "fct_s") > 2e6 * 8.0 / 10e6);
        // Late packets are taken for lost ones.
        assert!(flow(&records, "retrans") > link(&records, "dropped_pkts"));
    }
}

#[test]
fn quinn_reduces_its_window_at_marks_of_codel() {
    let records = quinn(
        "duration = \"30 s\"\nwarmup = \"10 s\"",
        "queue = { kind = \"codel\", ecn = true }",
        "",
        &cubic(),
    );
    assert_eq!(link(&records, "dropped_pkts"), 0.0);
    let marks = link(&records, "marked_pkts");
    assert!(marks > 5.0, "{marks}");
    assert_eq!(flow(&records, "ce_received"), marks);
    assert!((1.0..=marks).contains(&flow(&records, "cwnd_reductions_ecn")));
    assert_eq!(flow(&records, "cwnd_reductions_loss"), 0.0);
    assert!(link(&records, "qdelay_mean_us") < 10_000.0);
}

#[test]
fn quinn_with_cwnds_cubic_and_abe_keeps_more_of_its_window_after_a_mark_than_after_a_loss() {
    let size = 30e6;
    let transfer = format!("workload = {{ kind = \"bytes\", size = \"{size} B\" }}");
    let outcome = |queue: &str, congestion: &Congestion| {
        let queue = format!("queue = {{ kind = {queue} }}");
        let records =
            quinn("duration = \"40 s\"\nsample = \"5 ms\"", &queue, &transfer, congestion);
        assert_eq!(flow(&records, "delivered_bytes"), size);
        let windows = column(&records.flow_series, "snd_cwnd_pkts");
        let parts = windows.windows(2).map(|pair| pair[1] / pair[0]);
        let parts: Vec<f64> = parts.filter(|&part| part < 0.99).collect();
        (parts, size * 8.0 / flow(&records, "fct_s"))
    };
    // The window grows between a reduction and the sample after it.
    let is = |factor: f64, part: f64| (factor - 0.001..factor + 0.025).contains(&part);
    for (queue, factor, gain) in [
        ("\"codel\", ecn = true", 0.85, 1.0..1.1),
        ("\"fifo\", limit = \"1 BDP\"", 0.7, 0.95..1.05),
    ] {
        let (parts, goodput) = outcome(queue, &(Arc::new(CubicAbe) as _));
        assert!(parts.len() > 3, "{parts:?}");
        assert!(parts.iter().all(|&part| is(factor, part)), "{queue}: {parts:?}");
        let (parts, other) = outcome(queue, &cubic());
        assert!(parts.iter().all(|&part| is(0.7, part)), "{queue}: {parts:?}");
        assert!(gain.contains(&(goodput / other)), "{queue}: {goodput} {other}");
    }
}

#[test]
fn quinn_shares_a_link_with_tcp() {
    let beside = "[flow.tcp]\nrtt = \"40 ms\"\ncontroller = \"cubic\"";
    let fifo = "queue = { kind = \"fifo\", limit = \"1 BDP\" }";
    let records = quinn("duration = \"60 s\"\nwarmup = \"20 s\"", fifo, beside, &cubic());
    let goodputs = column(&records.flows, "goodput_bit_s");
    assert!(jain(&goodputs) > 0.97, "{goodputs:?}");
    assert!(goodputs.iter().sum::<f64>() > 9.4e6, "{goodputs:?}");
    let sent = column(&records.flow_series, "delivered");
    assert!(sent.iter().rev().take(2).all(|&bytes| bytes > 10e6), "both have a series");
    let Some(ColumnData::Name { labels, .. }) = records.flows.column("controller") else {
        panic!("controllers are names");
    };
    assert_eq!(**labels, ["own", "cubic"]);
}

/// Runs connections of 50 kB that start within two seconds, all on one link.
fn many(count: u32, seed: u64, congestion: &Congestion) -> (Records, Vec<u8>) {
    let congestion = Arc::clone(congestion);
    let own = move |start| pair(start, &congestion);
    let flows = format!(
        "count = {count}\nstart = \"uniform(0 s, 2 s)\"\n\
         workload = {{ kind = \"bytes\", size = \"50 kB\" }}"
    );
    let run_of = format!("duration = \"20 s\"\nsample = \"none\"\nseed = {seed}");
    let rate = format!("{} kbit/s", 200 * count);
    let mut world = world((&run_of, &rate, "queue = \"codel\""), &flows, own);
    let kept = Kept::default();
    if count < 100 {
        world.capture(&[BOTTLENECK], Box::new(kept.clone())).expect("memory takes it");
    }
    (run_audited(world), kept.bytes())
}

#[test]
fn a_thousand_connections_of_quinn_share_a_bottleneck() {
    let (records, _) = many(1000, 1, &cubic());
    assert_eq!(column(&records.flows, "delivered_bytes"), [50_000.0; 1000]);
    assert!(column(&records.flows, "fct_s").iter().all(|&seconds| seconds > 0.08));
    let sent: f64 = column(&records.flows, "segments_sent").iter().sum();
    assert_eq!(link(&records, "arrived_total_pkts"), sent);
    assert!(link(&records, "dropped_pkts") > 100.0);
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let (first, again, other) = (many(8, 1, &bbr()), many(8, 1, &bbr()), many(8, 2, &bbr()));
    assert!(first.1.len() > 8 * 50_000, "payloads are captured");
    assert!(first.1 == again.1, "the captured packets differ");
    assert_eq!(first.0.digest(), again.0.digest());
    assert_ne!(first.0.digest(), other.0.digest());
}

#[test]
fn connections_of_quinn_arrive_and_leave() {
    let records = quinn(
        "duration = \"20 s\"",
        "",
        "workload = { kind = \"poisson\", size = \"20 kB\", interval = \"100 ms\" }",
        &cubic(),
    );
    let (sizes, times) =
        (column(&records.flows, "delivered_bytes"), column(&records.flows, "fct_s"));
    assert!(sizes.len() > 150, "{}", sizes.len());
    let complete = times.iter().filter(|seconds| seconds.is_finite()).count();
    assert!(complete + 5 > times.len(), "{complete} of {}", times.len());
    let whole = sizes.iter().filter(|&&bytes| bytes == 20_000.0).count();
    assert_eq!(whole, complete);
    // A handshake, and a window of 10 packets that doubles once: 3 round trips of 40 ms.
    let least = times.iter().copied().fold(f64::INFINITY, f64::min);
    assert!((0.08..0.16).contains(&least), "{least}");
}

#[test]
fn quinn_stops_when_its_group_does() {
    let records = quinn("duration = \"20 s\"", "", "stop = \"5 s\"", &cubic());
    let seconds = flow(&records, "duration_s");
    assert!((5.0..6.0).contains(&seconds), "{seconds}");
    assert!(flow(&records, "goodput_bit_s") > 8e6);
}

#[test]
#[should_panic(expected = "the next timeout of an endpoint must be later than 0")]
fn an_endpoint_whose_timeout_stays_due_is_reported() {
    let stuck = |_| -> [Box<dyn Endpoint>; 2] { [Box::new(Stuck), Box::<EchoBack>::default()] };
    run_audited(world(("duration = \"1 s\"", "8 Mbit/s", ""), "", stuck));
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if is_long() { 3000 } else { 60 },
        ..ProptestConfig::default()
    })]
    #[test]
    fn every_datagram_is_somewhere_once_in_any_network(
        text in any_scenario(),
        bbr_is_used in any::<bool>(),
    ) {
        let mut world = World::new(scenario(&text));
        let congestion = if bbr_is_used { bbr() } else { cubic() };
        let replaced = world.replace_endpoints("g0", move |start| pair(start, &congestion));
        let facts = world.scenario().flows[0].workload.facts();
        prop_assert_eq!(replaced, facts.transport == Transport::Connection);
        run_audited(world);
    }
}
