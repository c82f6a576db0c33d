//! Tail loss probes beside timeouts, packets that are missing, and requests that nobody heard.

use crate::talk::{MSS, Say, Talk, names, of_connection};

fn is(found: &[(String, String)], expected: &[(&str, &str)]) {
    let found: Vec<(&str, &str)> = found.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
    assert_eq!(found, expected);
}

const PUSH: Say = Say { syn: false, fin: false, psh: true, window: None, dsack: None };

/// What follows four full segments, as long as this.
const SHORT: u32 = 300;

/// The last segment comes again two round trips after it was acknowledged, that often: no timer is that short.
fn probing(times: u32) -> Talk {
    let mut talk = Talk::new(4);
    for i in 0..times {
        let at = 1000.0 * f64::from(i + 1);
        let begins = 4 * MSS + i * SHORT;
        talk.server_says(at, begins, SHORT, PUSH);
        talk.client(at + 0.1, 0, begins + SHORT);
        talk.server_says(at + 160.0, begins, SHORT, PUSH);
        talk.client(at + 160.1, 0, begins + SHORT);
    }
    talk
}

/// The only segment that is not acknowledged comes again after SRTT + 200 ms, and after as long once more.
fn and_lost_acknowledgements(mut talk: Talk, shorts: u32) -> Talk {
    for at in [9000.0, 9260.0, 9520.0] {
        talk.server_says(at, 4 * MSS + shorts * SHORT, SHORT, PUSH);
    }
    talk
}

#[test]
fn the_first_retransmission_of_a_server_that_probes_is_a_probe() {
    let found = and_lost_acknowledgements(probing(3), 3).found();
    let kinds = names(&found.silences, "kind");
    assert_eq!(kinds[kinds.len() - 2..], ["probe", "timeout"]);
    assert_eq!(of_connection(&found, "timeouts"), 1.0);
    assert_eq!(of_connection(&found, "consecutive"), 1.0, "a probe does not double a timer");
}

#[test]
fn of_a_server_of_which_nothing_is_known_it_may_be_either() {
    let found = and_lost_acknowledgements(Talk::new(4), 0).found();
    let kinds = names(&found.silences, "kind");
    assert_eq!(kinds[kinds.len() - 2..], ["ambiguous", "timeout"]);
    assert_eq!(names(&found.connections, "backoff"), ["unclear"]);
}

#[test]
fn what_an_acknowledgement_announced_was_sent_before() {
    let mut talk = Talk::new(4);
    // A segment is lost; what acknowledges a request bears the number behind it.
    talk.server(200.0, 5 * MSS, 0);
    talk.server(900.0, 4 * MSS, MSS);
    talk.client(900.1, 0, 5 * MSS);
    is(&talk.silences(), &[("timeout", "announced")]);
}

#[test]
fn what_was_announced_was_sent_when_the_request_came_first() {
    let mut talk = Talk::empty();
    talk.counts = true;
    talk.open();
    talk.flight(101.0, 0, 4);
    talk.client(160.0, 100, 4 * MSS);
    // The answer is lost, and what acknowledged the request; that comes again, and so does its acknowledgement.
    talk.lose(1);
    talk.client_again(410.0, 100, 4 * MSS);
    talk.server(460.0, 4 * MSS + SHORT, 0);
    // RTO = 50 + 200 ms, then 500 ms; the first retransmission is lost, too.
    talk.lose(1);
    talk.server_says(960.0, 4 * MSS, SHORT, PUSH);
    let found = talk.found();
    is(&crate::talk::silences(&found), &[("timeout", "announced")]);
    assert_eq!(crate::talk::numbers(&found.silences, "offset"), [f64::from(4 * MSS)]);
}

#[test]
fn what_had_arrived_comes_again_although_more_was_written_meanwhile() {
    let mut talk = Talk::new(4);
    talk.server(151.5, 4 * MSS, MSS);
    talk.deaf = 151.5;
    talk.client(151.6, 0, 5 * MSS);
    // The application writes while the timer runs.
    talk.server_says(330.0, 5 * MSS, SHORT, PUSH);
    talk.client(330.1, 0, 5 * MSS + SHORT);
    talk.server(412.0, 4 * MSS, MSS);
    is(&talk.silences(), &[("timeout", "repeated_data")]);
}

#[test]
fn data_behind_a_hole_are_no_timeout() {
    let mut talk = Talk::new(4);
    talk.server(151.0, 5 * MSS, MSS);
    talk.client(151.1, 0, 4 * MSS);
    // A timeout would send what is missing.
    talk.server(600.0, 6 * MSS, MSS);
    talk.client(600.1, 0, 4 * MSS);
    is(&talk.silences(), &[("pause", "beyond_hole")]);
}

#[test]
fn a_fin_that_comes_again_is_no_timeout_of_data() {
    let mut talk = Talk::new(4);
    let fin = Say { fin: true, ..Say::default() };
    talk.server_says(151.0, 4 * MSS, 0, fin);
    talk.server_says(451.0, 4 * MSS, 0, fin);
    let found = talk.found();
    assert_eq!(names(&found.silences, "what"), ["fin"]);
    assert_eq!(of_connection(&found, "timeouts"), 0.0);
}
