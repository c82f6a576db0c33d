//! The messenger of source quenches: of which verdicts it tells.

use cwnd_aqm::messengers::quench;
use cwnd_aqm::{Messenger, MessengerParams, Outcome, Reason, Verdict};
use cwnd_units::{Duration, Ecn, Time};

use crate::common::{Log, Pkt, ms};

fn messenger(params: quench::Params) -> Box<dyn Messenger<Pkt>> {
    MessengerParams::Quench(params).build().unwrap()
}

fn verdict(at: Time, ecn: Ecn, what: Outcome) -> Verdict<Pkt> {
    let packet = Pkt { ecn, ..Pkt::plain(1) };
    Verdict { at, packet, what, reason: Reason::OVERLIMIT }
}

const NEW_MARK: Outcome = Outcome::Marked { already: false };

/// The three cases of BECN § IV-A, and those that it leaves out.
#[test]
fn sources_hear_of_new_marks_and_of_drops_of_capable_packets() {
    let mut becn = messenger(quench::Params::default());
    let mut every = messenger(quench::Params { ect_only: false, ..quench::Params::default() });
    for (ecn, what, told, told_of_every) in [
        (Ecn::Ce, NEW_MARK, true, true),
        (Ecn::Ce, Outcome::Marked { already: true }, false, false),
        (Ecn::Ect0, Outcome::Dropped, true, true),
        (Ecn::Ect1, Outcome::Dropped, true, true),
        (Ecn::Ce, Outcome::Dropped, true, true),
        (Ecn::NotEct, Outcome::Dropped, false, true),
    ] {
        let verdict = verdict(ms(1), ecn, what);
        assert_eq!(becn.tells(&verdict, &Log::default()), told, "{ecn:?} {what:?}");
        assert_eq!(every.tells(&verdict, &Log::default()), told_of_every, "{ecn:?} {what:?}");
    }
}

/// RFC 1812 § 4.3.2.8: "the rate at which it originates ICMP error messages" is bounded.
#[test]
fn no_two_messages_leave_within_the_interval_and_what_is_withheld_is_counted() {
    let interval = Some(Duration::from_millis(10));
    let mut messenger = messenger(quench::Params { interval, ..quench::Params::default() });
    let told: Vec<u64> = (0..50)
        .filter(|&at| messenger.tells(&verdict(ms(at), Ecn::Ce, NEW_MARK), &Log::default()))
        .collect();
    assert_eq!(told, [0, 10, 20, 30, 40]);
    let mut counted = Vec::new();
    messenger.count(&mut |name, count| counted.push((name, count)));
    assert_eq!(counted, [("quenches_withheld", 45)]);
}
