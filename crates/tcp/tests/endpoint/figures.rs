//! Tahoe, Reno, NewReno and SACK compared in the setup of K. Fall, S. Floyd: Simulation-based
//! comparisons of Tahoe, Reno, and SACK TCP. CCR 26(3), 1996, § 6: one to four losses in a
//! slow-start window of segments 14 to 28.
//!
//! The paper's figures are time-sequence plots; `figures.txt` holds them as tables, one for each
//! number of losses. `UPDATE=1 cargo test -p cwnd-tcp --test suite figures::` rewrites it.

use std::fmt::Write as _;
use std::path::Path;

use cwnd_cc::Cause;
use cwnd_quantity::{Duration, Time};
use cwnd_tcp::{Recovery, Segment};

use super::{World, drops, ms, preset};

/// Result of a transfer of 100 segments with losses.
struct Outcome {
    sent: u64,
    again: u64,
    timeouts: u64,
    reductions: u64,
    finished: Time,
    /// Time and number of each retransmission.
    repaired: Vec<(Time, u64)>,
    /// Time and number of each segment sent, and `true` for a retransmission.
    trace: Vec<(Time, u64, bool)>,
}

/// Fall & Floyd § 6: segments of 1000 B, an ACK each, a link of 0.8 Mbit/s with a delay of 100 ms.
fn fall_and_floyd(recovery: Recovery, lost: &[u64]) -> Outcome {
    // Limited transmit (RFC 3042) was published five years later.
    let params = preset("ns2").with(|p| {
        p.recovery.recovery = recovery;
        p.windows.initial_window = 1;
        p.rto.rto_min = ms(1000);
        p.recovery.limited_transmit = false;
    });
    let mut w = World::segments(params, 100, ms(200));
    w.spacing = ms(10);
    w.data_fate = drops(&lost.iter().map(|&k| (k, 1)).collect::<Vec<_>>());
    w.run();
    assert!(w.sender.is_drained());
    let again = Segment::is_retransmission;
    let c = w.sender.counters();
    Outcome {
        sent: c.segments_sent,
        again: c.retransmissions,
        timeouts: w.timeouts(),
        reductions: c.reductions_for(Cause::Loss),
        finished: w.finished,
        trace: w.sent.iter().map(|s| (s.at, s.k, again(&s.segment))).collect(),
        repaired: w.sent.iter().filter(|s| again(&s.segment)).map(|s| (s.at, s.k)).collect(),
    }
}

/// The four algorithms with one to four losses in one window of 15 segments (§ 6 of the paper):
/// - one: all but Tahoe, which slow starts, recover alike;
/// - two: Reno halves its window twice; NewReno and SACK once;
/// - three and four: Reno waits for its timer, NewReno and SACK do not, and SACK is the quicker;
/// - Tahoe needs no timer, but with three and four losses sends again what has arrived.
#[test]
fn the_kinds_differ_as_fall_and_floyd_found() {
    let mut table = String::from("lost kind sent again timeouts reductions finished\n");
    for (n, lost) in (1..).zip(LOST) {
        for kind in [Recovery::Tahoe, Recovery::Reno, Recovery::NewReno, Recovery::Sack] {
            let o = fall_and_floyd(kind, lost);
            let (sent, again, finished) = (o.sent, o.again, o.finished);
            let (timeouts, reductions) = (o.timeouts, o.reductions);
            let row = format!("{n} {kind:?} {sent} {again} {timeouts} {reductions} {finished}\n");
            table.push_str(&row);
        }
    }
    assert_eq!(table, SIDE_BY_SIDE);
}

/// § 6: NewReno retransmits one hole a round trip, SACK the others as soon as pipe allows.
#[test]
fn newreno_repairs_a_hole_a_round_trip_and_sack_a_window() {
    let repairs = |kind| {
        let o = fall_and_floyd(kind, LOST[3]);
        let when = |k: &u64| o.repaired.iter().find(|(_, again)| again == k).unwrap().0;
        LOST[3].iter().map(when).collect::<Vec<_>>()
    };
    let rtt = ms(210);
    let newreno = repairs(Recovery::NewReno);
    assert!(newreno.windows(2).all(|pair| pair[1].since(pair[0]) >= rtt), "{newreno:?}");
    let sack = repairs(Recovery::Sack);
    assert_eq!(sack[0], newreno[0], "the same three duplicate ACKs");
    assert!(sack[3].since(sack[1]) < rtt, "half a window of silence, then all of them: {sack:?}");
    assert!(sack[3] < newreno[3]);
}

const KINDS: [Recovery; 4] = [Recovery::Tahoe, Recovery::Reno, Recovery::NewReno, Recovery::Sack];

/// Time span of a table row: a round trip of the empty path.
const ROW: Duration = ms(200);

/// Formats the traces as a table: the segments sent in each time span, in order; `*` marks
/// retransmissions.
fn figure(lost: &[u64]) -> String {
    let traces = KINDS.map(|kind| fall_and_floyd(kind, lost).trace);
    let last = traces.iter().flatten().map(|(at, ..)| at.0 / ROW.0).max().unwrap();
    let list: Vec<_> = lost.iter().map(u64::to_string).collect();
    let mut table = format!(
        "What leaves in each 0.2 s when {} of the window 14-28 are lost; * was sent before.\n",
        list.join(", ")
    );
    let row = |table: &mut String, first: &str, cells: [String; 4]| {
        let mut line = format!("{first:<6}");
        for cell in cells {
            let _ = write!(line, " {cell:<22}");
        }
        table.push_str(line.trim_end());
        table.push('\n');
    };
    row(&mut table, "s", KINDS.map(|kind| format!("{kind:?}")));
    for n in 0..=last {
        let cells = traces.each_ref().map(|trace| {
            runs(trace.iter().filter(|(at, ..)| at.0 / ROW.0 == n).map(|&(_, k, again)| (k, again)))
        });
        if cells.iter().any(|cell| !cell.is_empty()) {
            row(&mut table, &format!("{}.{}", n / 5, n % 5 * 2), cells);
        }
    }
    table
}

/// Formats consecutive numbers as spans; `*` marks retransmissions.
fn runs(sent: impl Iterator<Item = (u64, bool)>) -> String {
    let mut spans: Vec<(u64, u64, bool)> = Vec::new();
    for (k, again) in sent {
        match spans.last_mut() {
            Some((_, end, kind)) if *kind == again && k == *end + 1 => *end = k,
            _ => spans.push((k, k, again)),
        }
    }
    let words: Vec<_> = spans
        .iter()
        .map(|&(start, end, again)| {
            let star = if again { "*" } else { "" };
            if start == end { format!("{start}{star}") } else { format!("{start}-{end}{star}") }
        })
        .collect();
    words.join(" ")
}

#[test]
fn the_figures_are_as_before() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/endpoint/figures.txt");
    let tables = LOST.map(figure).join("\n");
    #[expect(clippy::disallowed_methods, reason = "a test is told to write its golden")]
    if std::env::var("UPDATE").is_ok() {
        std::fs::write(&path, &tables).unwrap();
    }
    assert_eq!(tables, std::fs::read_to_string(&path).unwrap_or_default());
}

/// § 6.1: all recover from one loss by fast retransmit; Reno, NewReno and SACK send the same
/// segments.
#[test]
fn one_loss_is_the_same_to_all_but_tahoe() {
    let [tahoe, reno, newreno, sack] = KINDS.map(|kind| fall_and_floyd(kind, LOST[0]));
    assert_eq!(reno.trace, newreno.trace);
    assert_eq!(reno.trace, sack.trace);
    assert_eq!(tahoe.repaired, reno.repaired, "the same fast retransmit");
    assert!(tahoe.finished > reno.finished);
}

/// § 6.3–6.4: only Reno waits for a timeout, and all begin with the same fast retransmit.
#[test]
fn only_reno_waits_for_its_timer_and_from_three_losses_on() {
    for (lost, waits) in LOST.iter().zip([0, 0, 1, 1]) {
        let outcomes = KINDS.map(|kind| fall_and_floyd(kind, lost));
        assert_eq!(outcomes.each_ref().map(|o| o.timeouts), [0, waits, 0, 0]);
        for o in &outcomes {
            assert_eq!(o.repaired[0], outcomes[0].repaired[0]);
        }
    }
}

/// § 4: NewReno retransmits only lost segments, one in each round trip.
#[test]
fn newreno_takes_as_many_round_trips_as_there_are_losses() {
    for lost in LOST {
        let o = fall_and_floyd(Recovery::NewReno, lost);
        assert_eq!(o.repaired.iter().map(|&(_, k)| k).collect::<Vec<_>>(), lost);
        for pair in o.repaired.windows(2) {
            let gap = pair[1].0.since(pair[0].0);
            assert!(gap >= ms(210) && gap < ms(2 * 210), "{gap}");
        }
    }
}

/// § 5: SACK retransmits only lost segments, in order, all within two round trips.
#[test]
fn sack_repairs_all_losses_within_two_round_trips() {
    for lost in LOST {
        let o = fall_and_floyd(Recovery::Sack, lost);
        assert_eq!(o.repaired.iter().map(|&(_, k)| k).collect::<Vec<_>>(), lost);
        let (first, last) = (o.repaired[0].0, o.repaired[lost.len() - 1].0);
        assert!(last.since(first) < ms(2 * 210), "{}", last.since(first));
    }
}

/// Segments lost of a slow-start window of segments 14 to 28.
const LOST: [&[u64]; 4] = [&[14], &[14, 28], &[14, 26, 28], &[14, 24, 26, 28]];

const SIDE_BY_SIDE: &str = "\
lost kind sent again timeouts reductions finished
1 Tahoe 101 1 0 1 3.18 s
1 Reno 101 1 0 1 2.77 s
1 NewReno 101 1 0 1 2.77 s
1 Sack 101 1 0 1 2.77 s
2 Tahoe 102 2 0 1 3.28 s
2 Reno 102 2 0 2 3.6 s
2 NewReno 102 2 0 1 2.88 s
2 Sack 102 2 0 1 2.92 s
3 Tahoe 104 4 0 1 3.33 s
3 Reno 103 3 1 2 5.25 s
3 NewReno 103 3 0 1 2.96 s
3 Sack 103 3 0 1 2.94 s
4 Tahoe 106 6 0 1 3.36 s
4 Reno 105 5 1 2 5.05 s
4 NewReno 104 4 0 1 3.14 s
4 Sack 104 4 0 1 2.97 s
";
