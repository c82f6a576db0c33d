//! Source quenches: the decisions that lead to a message.

use cwnd_aqm::messengers::quench;
use cwnd_aqm::{Backlog, Messenger, MessengerParams, Outcome, Reason, Verdict};
use cwnd_packet::Ecn;
use cwnd_quantity::{Bytes, Duration, Levels, LinkProperties, QueueSize, Rate, Time};
use cwnd_schema::Params as _;

use crate::common::{Log, Pkt, ms};

const LINK: LinkProperties =
    LinkProperties { rate: Rate::from_mbit(8), bdp_rtt: Duration::from_millis(100) };
const EMPTY: Backlog = Backlog { packets: 0, bytes: 0 };

fn messenger(params: quench::Params) -> Box<dyn Messenger<Pkt>> {
    MessengerParams::Quench(params).build(&LINK).unwrap()
}

fn verdict(at: Time, ecn: Ecn, what: Outcome) -> Verdict<Pkt> {
    let packet = Pkt { ecn, ..Pkt::plain(1) };
    Verdict { at, packet, what, reason: Reason::OVERLIMIT }
}

const NEW_MARK: Outcome = Outcome::Marked { already: false };

/// The three cases of BECN § IV-A, and those that it does not cover.
#[test]
fn sources_hear_of_new_marks_and_of_drops_of_capable_packets() {
    let mut becn = messenger(quench::Params::default());
    let mut every = messenger(quench::Params { ect_only: false, ..quench::Params::default() });
    for (ecn, what, reported, all_reported) in [
        (Ecn::Ce, NEW_MARK, true, true),
        (Ecn::Ce, Outcome::Marked { already: true }, false, false),
        (Ecn::Ect0, Outcome::Dropped, true, true),
        (Ecn::Ect1, Outcome::Dropped, true, true),
        (Ecn::Ce, Outcome::Dropped, true, true),
        (Ecn::NotEct, Outcome::Dropped, false, true),
    ] {
        let verdict = verdict(ms(1), ecn, what);
        let [reported, all_reported] =
            [reported, all_reported].map(|reported| reported.then_some(0));
        assert_eq!(becn.on_verdict(&verdict, EMPTY, &Log::default()), reported, "{ecn:?} {what:?}");
        assert_eq!(
            every.on_verdict(&verdict, EMPTY, &Log::default()),
            all_reported,
            "{ecn:?} {what:?}"
        );
    }
}

/// RFC 1812 § 4.3.2.8: "the rate at which it originates ICMP error messages" is bounded.
#[test]
fn no_two_messages_leave_within_the_interval_and_what_is_withheld_is_counted() {
    let interval = Some(Duration::from_millis(10));
    let mut messenger = messenger(quench::Params { interval, ..quench::Params::default() });
    let reported: Vec<u64> = (0..50)
        .filter(|&at| {
            let verdict = verdict(ms(at), Ecn::Ce, NEW_MARK);
            messenger.on_verdict(&verdict, EMPTY, &Log::default()).is_some()
        })
        .collect();
    assert_eq!(reported, [0, 10, 20, 30, 40]);
    let mut counted = Vec::new();
    messenger.count(&mut |name, count| counted.push((name, count)));
    assert_eq!(counted, [("quenches_withheld", 45)]);
}

/// Multi-level BECN: each length that the queue has reached is one level more, in any unit.
#[test]
fn a_message_says_how_many_lengths_the_queue_has_reached() {
    // 8 Mbit/s: 5 ms are 5000 B.
    let sizes = [
        QueueSize::Packets(4),
        QueueSize::Time(Duration::from_millis(5)),
        QueueSize::Bytes(Bytes(20_000)),
    ];
    let levels = Levels::of(&sizes);
    let mut mecn = messenger(quench::Params { levels, ..quench::Params::default() });
    let mut level = |packets, bytes| {
        let queued = Backlog { packets, bytes };
        mecn.on_verdict(&verdict(ms(1), Ecn::Ce, NEW_MARK), queued, &Log::default())
    };
    assert_eq!(level(3, 4999), Some(0));
    assert_eq!(level(4, 4999), Some(1));
    assert_eq!(level(5, 5000), Some(2));
    assert_eq!(level(30, 30_000), Some(3));
    let many = Levels::of(&[QueueSize::Packets(1); 8]);
    let error = quench::Params { levels: many, ..quench::Params::default() }.check().unwrap_err();
    assert_eq!(error.key, "levels");
}
