//! Routers' messages to sources: their path and delay, their loss, and other readers of verdicts.

use std::sync::{Arc, Mutex};

use cwnd_aqm::{Backlog, Context, Messenger, Outcome, Packet, Verdict};
use cwnd_packet::{Ability, Contract, HasContract};
use cwnd_quantity::Time;
use cwnd_sim::{Messages, World};

use crate::common::{activity, at, run, scenario};

/// Verdicts that a messenger reported, with their times.
type ReportLog = Arc<Mutex<Vec<(Time, Outcome)>>>;

/// Messenger that reports every n-th verdict.
#[derive(Debug)]
struct ReportEveryNth {
    every: u64,
    verdicts: u64,
    reports: ReportLog,
}

impl ReportEveryNth {
    fn every(every: u64) -> (Self, ReportLog) {
        let reports = ReportLog::default();
        (Self { every, verdicts: 0, reports: Arc::clone(&reports) }, reports)
    }
}

impl HasContract for ReportEveryNth {
    fn contract(&self) -> Contract {
        Contract::new().provides(Ability::Quenches)
    }
}

impl<P: Packet> Messenger<P> for ReportEveryNth {
    fn on_verdict(&mut self, verdict: &Verdict<P>, _: Backlog, _: &dyn Context<P>) -> Option<u8> {
        self.verdicts += 1;
        let reports = self.verdicts.is_multiple_of(self.every);
        if reports {
            self.reports.lock().expect("nobody panicked with it").push((verdict.at, verdict.what));
        }
        reports.then_some(0)
    }
}

/// Runs a world to its end with audits; returns the times at which messages arrived.
fn arrivals(world: &mut World) -> Vec<Time> {
    let (mut at, mut events) = (Vec::new(), 0_u64);
    while world.step() {
        let delivered = world.messages().delivered as usize;
        at.resize(delivered, world.now());
        events += 1;
        if events < 300 || events.is_multiple_of(13) {
            assert_eq!(world.audit(), Ok(()));
        }
    }
    at
}

fn instants(reports: &ReportLog) -> Vec<Time> {
    reports.lock().expect("nobody panicked with it").iter().map(|&(at, _)| at).collect()
}

/// Datagrams from `a` over `r` and `s` to `c`, more than the last link carries. Only messages
/// travel back.
const CHAIN: &str = r#"
    [run]
    duration = "2 s"
    [link.first]
    from = "a"
    to = "r"
    rate = "50 Mbit/s"
    delay = "3 ms"
    [link.first-back]
    from = "r"
    to = "a"
    rate = "1 Mbit/s"
    delay = "7 ms"
    [link.second]
    from = "r"
    to = "s"
    rate = "40 Mbit/s"
    delay = "4 ms"
    [link.second-back]
    from = "s"
    to = "r"
    rate = "2 Mbit/s"
    delay = "11 ms"
    [link.last]
    from = "s"
    to = "c"
    rate = "4 Mbit/s"
    delay = "1 ms"
    queue = { kind = "fifo", limit = "10 packets" }
    duplex = true
    [flow.main]
    from = "a"
    to = "c"
    workload = { kind = "udp", rate = "8 Mbit/s", size = "1000 B", header = "28 B" }
"#;

#[test]
fn a_message_takes_the_propagation_and_serialisation_of_its_way_back() {
    let mut world = World::new(scenario(CHAIN));
    let (messenger, reports) = ReportEveryNth::every(1);
    assert!(world.add_messenger("last", messenger));
    let at = arrivals(&mut world);
    // 56 B over 2 Mbit/s and over 1 Mbit/s, 11 ms and 7 ms: 224 µs + 448 µs + 18 ms.
    let expected: Vec<Time> = instants(&reports).iter().map(|at| Time(at.0 + 18_672_000)).collect();
    // Nearly half of the 1000 datagrams a second are dropped, once the queue is full.
    assert!(at.len() > 850, "{}", at.len());
    assert_eq!(at, expected[..at.len()]);
    assert!(expected.len() - at.len() <= 10, "the rest is under way");
    assert_eq!(world.messages_to(0), Some(at.len() as u64));
    assert_eq!(world.messages_to(1), None);
    let sent = world.messages().sent;
    assert_eq!((sent, world.messages().lost), (expected.len() as u64, 0));
    let records = world.finish();
    assert_eq!(activity(&records, "quenches_sent"), sent);
    assert_eq!(activity(&records, "quenches_delivered"), at.len() as u64);
    // Messages count as packets of the links that they cross, but not as data.
    let back = |name: &str| at_link(&records, 3, name);
    assert_eq!((back("arrived_total_pkts"), back("delivered_data_pkts")), (sent as f64, 0.0));
    assert_eq!(at_link(&records, 4, "dropped_total_pkts"), sent as f64);
}

fn at_link(records: &cwnd_tables::Records, link: usize, name: &str) -> f64 {
    at(&records.links, link, name)
}

#[test]
fn messages_wait_in_queues() {
    // On so slow a reverse path messages queue behind each other: 56 B take 2.8 ms, and two arrive
    // in 4 ms.
    let slow = CHAIN.replace("rate = \"1 Mbit/s\"", "rate = \"160 kbit/s\"");
    let mut world = World::new(scenario(&slow));
    let (messenger, reports) = ReportEveryNth::every(1);
    assert!(world.add_messenger("last", messenger));
    let at = arrivals(&mut world);
    let mut free = Time::ZERO;
    for (reports, at) in instants(&reports).into_iter().zip(&at) {
        // The second link of the way back sends one message after the other.
        free = free.max(Time(reports.0 + 11_224_000)) + cwnd_quantity::Duration(2_800_000);
        assert_eq!(*at, free + cwnd_quantity::Duration::from_millis(7));
    }
    let records = world.finish();
    assert!(at_link(&records, 1, "qdelay_max_us") > 10_000.0);
}

#[test]
fn messages_are_lost_like_packets_and_counted_apart() {
    for (way_back, share) in [("loss = 0.25", 0.25), ("loss_every = 4", 0.25)] {
        let text = CHAIN.replace("delay = \"11 ms\"", &format!("delay = \"11 ms\"\n{way_back}"));
        let mut world = World::new(scenario(&text.replace("2 s", "20 s")));
        let (messenger, _) = ReportEveryNth::every(1);
        assert!(world.add_messenger("last", messenger));
        arrivals(&mut world);
        let Messages { sent, delivered, lost, .. } = world.messages();
        let under_way = sent - delivered - lost;
        assert!(under_way < 12, "{under_way}");
        let n = sent as f64;
        let deviation = (n * share * (1.0 - share)).sqrt();
        assert!((lost as f64 - n * share).abs() < 4.0 * deviation, "{lost} of {sent}");
        let records = world.finish();
        assert_eq!(activity(&records, "quenches_lost"), lost);
        assert_eq!(records.packets(3, "dropped", "link_loss")[0], lost);
    }
}

#[test]
fn a_message_that_is_dropped_brings_forth_no_other() {
    // The only path back crosses the same link, whose queue is full: all messages are dropped
    // there.
    let ring = r#"
        [run]
        duration = "2 s"
        [link.up]
        from = "a"
        to = "r"
        rate = "50 Mbit/s"
        delay = "1 ms"
        [link.round]
        from = "r"
        to = "c"
        rate = "4 Mbit/s"
        delay = "1 ms"
        queue = { kind = "fifo", limit = "10 packets" }
        [link.home]
        from = "c"
        to = "a"
        rate = "50 Mbit/s"
        delay = "1 ms"
        [flow.main]
        from = "a"
        to = "c"
        workload = { kind = "udp", rate = "8 Mbit/s", size = "1000 B", header = "28 B" }
    "#;
    let mut world = World::new(scenario(ring));
    let (messenger, reports) = ReportEveryNth::every(1);
    assert!(world.add_messenger("round", messenger));
    let mut reader = world.read_verdicts("round").expect("it has a queue");
    assert!(arrivals(&mut world).is_empty());
    let reports = instants(&reports).len() as u64;
    let messages = world.messages();
    assert_eq!((messages.sent, messages.lost), (reports, reports));
    let mut all = 0;
    while world.next_verdict(&mut reader).is_some() {
        all += 1;
    }
    assert_eq!(all, 2 * reports, "the datagrams, and the messages about them");
}

const SHAPES: [(&str, &str, u64); 4] = [
    // The sender is attached to the router itself, so the message arrives at the same instant.
    ("[dumbbell]\nrate = \"4 Mbit/s\"\n[flow.main]\nrtt = \"40 ms\"\n", "bottleneck", 0),
    (
        "[dumbbell]\nrate = \"4 Mbit/s\"\nedge_rate = \"20 Mbit/s\"\n[flow.main]\n\
         rtt = \"uniform(30 ms, 50 ms)\"\ncount = 3\n",
        "bottleneck",
        0,
    ),
    // Data from right to left: the router of the other link is at the other node.
    (
        "[dumbbell]\nrate = \"4 Mbit/s\"\n[flow.main]\nrtt = \"40 ms\"\ndirection = \"reverse\"\n",
        "reverse",
        0,
    ),
    // From the router ACKs take a detour of 9 ms instead of 2 ms; messages join it there.
    (
        "[link.in]\nfrom = \"a\"\nto = \"r\"\nrate = \"none\"\ndelay = \"2 ms\"\nduplex = true\n\
         [link.out]\nfrom = \"r\"\nto = \"c\"\nrate = \"4 Mbit/s\"\ndelay = \"1 ms\"\n[link.back]\n\
         from = \"c\"\nto = \"r\"\nrate = \"none\"\ndelay = \"1 ms\"\n[link.detour]\nfrom = \"r\"\n\
         to = \"x\"\nrate = \"none\"\ndelay = \"5 ms\"\n[link.detour-home]\nfrom = \"x\"\n\
         to = \"a\"\nrate = \"none\"\ndelay = \"4 ms\"\n[flow.main]\nfrom = \"a\"\nto = \"c\"\n\
         reverse_route = [\"back\", \"detour\", \"detour-home\"]\n",
        "out",
        9_000_000,
    ),
];

#[test]
fn messages_find_every_source_in_every_topology() {
    for (shape, link, takes) in SHAPES {
        let text = format!("[run]\nduration = \"20 s\"\n{shape}");
        let mut world = World::new(scenario(&text));
        let (messenger, reports) = ReportEveryNth::every(1);
        assert!(world.add_messenger(link, messenger), "{text}");
        let at = arrivals(&mut world);
        let expected: Vec<Time> = instants(&reports).iter().map(|at| Time(at.0 + takes)).collect();
        assert!(at.len() > 5, "{text}: {}", at.len());
        assert_eq!(at, expected, "{text}");
        let delivered: u64 = (0..3).filter_map(|flow| world.messages_to(flow)).sum();
        assert_eq!(delivered, at.len() as u64, "{text}");
        // Hosts ignore the messages (RFC 6633), so the results do not change.
        let bytes = |records: &cwnd_tables::Records| at_flow(records, "bytes_received");
        assert_eq!(bytes(&world.finish()), bytes(&run(&text)), "{text}");
    }
}

#[test]
fn a_sender_that_obeys_messages_slows_down_for_marks_that_it_hears_of_by_them_alone() {
    // The queue marks all ECT packets that find more than 30 of its 400 packets. A sender that
    // ignores ECE learns of marks from the router or not at all.
    let text = |obeys: bool| {
        format!(
            "[run]\nduration = \"30 s\"\n[dumbbell]\nrate = \"10 Mbit/s\"\n\
             queue = {{ kind = \"red\", forced = \"mark\", w_q = 1.0, limit = \"400 packets\" }}\n\
             [flow.main]\nrtt = \"40 ms\"\n\
             endpoint = {{ ecn = true, obey_ece = false, obey_quench = {obeys} }}\n"
        )
    };
    let run_reported = |text: &str| {
        let mut world = World::new(scenario(text));
        let (messenger, _) = ReportEveryNth::every(1);
        assert!(world.add_messenger("bottleneck", messenger));
        let delivered = arrivals(&mut world).len() as u64;
        assert_eq!(world.messages_to(0), Some(delivered));
        (delivered, world.finish())
    };
    let (_, deaf) = run_reported(&text(false));
    let (delivered, obeys) = run_reported(&text(true));
    assert!(delivered > 20, "{delivered}");
    let drops = |records: &cwnd_tables::Records| records.packets(0, "dropped", "overlimit")[0];
    assert!(drops(&deaf) > 0, "nothing but a full queue stops it");
    assert_eq!(drops(&obeys), 0);
    let delay = |records: &cwnd_tables::Records| at_link(records, 0, "qdelay_p50_us");
    assert!(delay(&obeys) < 0.2 * delay(&deaf), "{} {}", delay(&obeys), delay(&deaf));
}

/// A messenger named by a scenario acts like one added by a test. BECN § IV-A: sources are notified
/// of marks and drops.
#[test]
fn a_messenger_that_a_scenario_names_tells_of_what_its_queue_decides() {
    let text = |messenger: &str| {
        format!(
            "[run]\nduration = \"20 s\"\n[dumbbell]\nrate = \"10 Mbit/s\"\n\
             queue = {{ kind = \"codel\", ecn = true, limit = \"40 packets\" }}\n{messenger}\
             [flow.main]\nrtt = \"40 ms\"\ncount = 3\n\
             endpoint = {{ ecn = true, obey_ece = false, obey_quench = true }}\n"
        )
    };
    let records = run(&text("messenger = \"quench\"\n"));
    let marks = at_link(&records, 0, "marked_total_pkts") as u64;
    let sent = activity(&records, "quenches_sent");
    assert!(sent > 50, "{sent}");
    // SYNs are not ECN-capable; all data is, so its drops are reported, too.
    let drops = at_link(&records, 0, "dropped_total_pkts") as u64;
    assert!((marks..=marks + drops).contains(&sent), "{sent} of {marks} marks and {drops} drops");
    assert!(activity(&records, "quench_reductions_marked") > 20);
    // Nothing else makes these senders slow down for a mark.
    let silent = run(&text(""));
    assert_eq!(silent.activity.get("quenches_sent"), None);
    assert!(at_link(&silent, 0, "dropped_total_pkts") > 10.0 * drops as f64);
    let few = run(&text("messenger = { kind = \"quench\", interval = \"1 s\" }\n"));
    assert!(activity(&few, "quenches_sent") <= 20);
    assert!(activity(&few, "quenches_withheld") > 0);
}

fn at_flow(records: &cwnd_tables::Records, name: &str) -> f64 {
    at(&records.flows, 0, name)
}

#[test]
fn several_links_have_messengers_and_each_speaks_of_its_own_queue() {
    let text = CHAIN.replace("rate = \"40 Mbit/s\"", "rate = \"6 Mbit/s\"");
    let text = text.replace("kind = \"udp\", rate = \"8", "kind = \"udp\", rate = \"12");
    let mut world = World::new(scenario(&text));
    let [(a, of_second), (b, of_last)] = [ReportEveryNth::every(2), ReportEveryNth::every(3)];
    assert!(world.add_messenger("second", a) && world.add_messenger("last", b));
    assert!(!world.add_messenger("nowhere", ReportEveryNth::every(1).0));
    arrivals(&mut world);
    let reports = [&of_second, &of_last].map(|reports| instants(reports).len() as u64);
    assert_eq!(world.messages().sent, reports.iter().sum::<u64>());
    let records = world.finish();
    let drops = |link: usize| records.packets(link, "dropped", "overlimit")[0];
    assert_eq!(reports, [drops(2) / 2, drops(4) / 3]);
    assert!(reports.iter().all(|&n| n > 100), "{reports:?}");
}

/// A client that opens a connection and sends a request has its data acknowledged on the path of
/// the responses, by a host that then has nothing to slow down.
#[test]
fn no_messenger_is_asked_about_acknowledgements_of_requests() {
    let text = r#"
        [run]
        duration = "20 s"
        [dumbbell]
        rate = "2 Mbit/s"
        queue = { kind = "fifo", limit = "10 packets" }
        [flow.web]
        rtt = "40 ms"
        workload = { kind = "web", interval = "30 ms", size = "7 kB" }
    "#;
    let mut world = World::new(scenario(text));
    let (messenger, reports) = ReportEveryNth::every(1);
    assert!(world.add_messenger("bottleneck", messenger));
    arrivals(&mut world);
    let (sent, reports) = (world.messages().sent, instants(&reports).len() as u64);
    let dropped = at_link(&world.finish(), 0, "dropped_total_pkts") as u64;
    assert_eq!(sent, reports);
    assert!(sent > 50 && dropped > sent + 50, "{sent} of {dropped}");
}

#[test]
fn marks_are_told_with_whether_the_packet_was_marked_before() {
    let link = |name: &str, from: &str, to: &str, rate: u32| {
        format!(
            "[link.{name}]\nfrom = \"{from}\"\nto = \"{to}\"\nrate = \"{rate} Mbit/s\"\n\
             delay = \"5 ms\"\nduplex = true\n\
             queue = {{ kind = \"red\", w_q = 1.0, forced = \"mark\", min_th = \"2 packets\", \
             max_th = \"4 packets\" }}\n"
        )
    };
    let text = format!(
        "[run]\nduration = \"20 s\"\n{}{}[flow.main]\nfrom = \"a\"\nto = \"c\"\ncount = 4\n\
         endpoint = {{ ecn = true }}\n",
        link("one", "a", "b", 8),
        link("two", "b", "c", 7)
    );
    let mut world = World::new(scenario(&text));
    let [(a, of_one), (b, of_two)] = [ReportEveryNth::every(1), ReportEveryNth::every(1)];
    assert!(world.add_messenger("one", a) && world.add_messenger("two", b));
    arrivals(&mut world);
    let count = |reports: &ReportLog, already: bool| {
        let reports = reports.lock().expect("nobody panicked with it");
        reports.iter().filter(|(_, what)| *what == Outcome::Marked { already }).count()
    };
    assert!(count(&of_one, false) > 50);
    assert_eq!(count(&of_one, true), 0, "senders send no CE");
    assert!(count(&of_two, false) > 50 && count(&of_two, true) > 5);
    let records = world.finish();
    let marks = |row: usize| at_link(&records, row, "marked_total_pkts") as usize;
    assert_eq!(marks(0), count(&of_one, false));
    assert_eq!(marks(2), count(&of_two, false) + count(&of_two, true));
}

#[test]
fn who_tells_nothing_changes_nothing_and_all_readers_see_the_same() {
    let text = "[run]\nduration = \"20 s\"\n[dumbbell]\nrate = \"4 Mbit/s\"\n\
                queue = { kind = \"fifo\", limit = \"20 packets\" }\n[flow.main]\nrtt = \"40 ms\"\n\
                count = 4\n";
    let expected = run(text);
    let mut world = World::new(scenario(text));
    let (silent, _) = ReportEveryNth::every(u64::MAX);
    assert!(world.add_messenger("bottleneck", silent));
    assert!(world.read_verdicts("elsewhere").is_none());
    let [mut slow, mut quick] =
        [(); 2].map(|()| world.read_verdicts("bottleneck").expect("it has a queue"));
    let mut drops = 0;
    while world.step() {
        while let Some(verdict) = world.next_verdict(&mut quick) {
            assert_eq!((verdict.at, verdict.what), (world.now(), Outcome::Dropped));
            drops += 1;
        }
    }
    let mut late = 0;
    while world.next_verdict(&mut slow).is_some() {
        late += 1;
    }
    let records = world.finish();
    assert_eq!(records.digest(), expected.digest());
    assert!(drops > 10);
    assert_eq!((drops, late), (records.packets(0, "dropped", "overlimit")[0], drops));
}
