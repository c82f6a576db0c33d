//! How many timeouts are in a silence, and whether they doubled.
//!
//! Of timeouts whose retransmission was lost, too, the client sees one silence only. Its length tells: it is RTO · (1 + 2 + 4 + …)
//! with backoff, RTO · (1 + 1 + 1 + …) without. The RTO is computed from the round-trip times before it (RFC 6298 § 2) under each
//! of the rules that stacks have for its minimum; of these, the one that explains the silences of a server best is taken.

use cwnd_units::Duration;

use crate::event::{Event, Evidence, Kind, What};

/// A rule for the timeout.
#[derive(Clone, Copy, Debug)]
enum Rule {
    /// max(m, SRTT + 4·RTTVAR) (RFC 6298 § 2.4).
    AtLeast(Duration),
    /// SRTT + max(m, 4·RTTVAR), as Linux has it.
    Plus(Duration),
}

/// Rules that are tried; the first is the RFC's, the second Linux's.
const RULES: [Rule; 8] = [
    Rule::AtLeast(Duration::from_secs(1)),
    Rule::Plus(Duration::from_millis(200)),
    Rule::AtLeast(Duration::from_millis(200)),
    Rule::AtLeast(Duration::from_millis(300)),
    Rule::AtLeast(Duration::from_millis(400)),
    Rule::AtLeast(Duration::from_millis(500)),
    Rule::AtLeast(Duration::from_millis(1500)),
    Rule::AtLeast(Duration::from_secs(3)),
];

/// Consecutive timeouts that do not double, before they do: the n of TCP*(n); the last stands for ∞.
const PATTERNS: [u32; 5] = [0, 1, 2, 3, u32::MAX];
/// In a row, the timeout grows to 2⁶ times the first at most (TCP*(n), footnote 5).
const MOST_DOUBLINGS: u32 = 6;
/// Timeouts in one silence.
const MOST: u32 = 10;
/// Deviations of logarithms that are as usual as not.
const DEVIATION: f64 = 0.12;
/// What is worse than this is explained by nothing.
const WORST: f64 = 12.0;
/// What a timeout more, or a pattern that nobody has by default, must explain.
const COST_OF_ONE: f64 = 0.8;
const COST_OF_RARE: f64 = 3.0;
/// What a timer that began later than is seen must explain, and where that is usual.
const COST_OF_LATER: f64 = 2.0;
const COST_OF_LATER_HERE: f64 = 0.3;
const COST_OF_THINKING: f64 = 2.0;
/// A difference of costs that is none, and one that decides.
const EQUAL: f64 = 1e-9;
const CLEARLY: f64 = 0.4;
/// What fits that well, with so few timeouts, is one; with more it must fit better.
const WELL: f64 = 0.12;
const FEW: u32 = 3;
const EXACTLY: f64 = 0.04;
const MANY: u32 = 7;
/// The timeout before there is a round-trip time (RFC 6298 § 2.1).
const INITIAL: Duration = Duration::from_secs(1);

/// How the timeouts of a connection grew.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Backoff {
    /// There were none in a row.
    #[default]
    None,
    /// Each was twice as long as the one before.
    Doubled,
    /// The first few were as long as each other, then they doubled.
    Late,
    /// All were as long as each other.
    Constant,
    /// Both would explain what was seen.
    Unclear,
}

impl Backoff {
    /// As in the tables.
    pub const NAMES: [&'static str; 5] = ["none", "doubled", "late", "constant", "unclear"];
}

/// How well each rule and pattern explains the silences of a server.
#[derive(Clone, Debug)]
pub struct Scores {
    costs: [[f64; PATTERNS.len()]; RULES.len()],
    timeouts: usize,
}

impl Default for Scores {
    fn default() -> Self {
        let rare = PATTERNS.map(|pattern| match pattern {
            0 | u32::MAX => 0.0,
            _ => COST_OF_RARE,
        });
        Self { costs: [rare; RULES.len()], timeouts: 0 }
    }
}

impl Scores {
    /// Takes the silences of a connection into account.
    pub fn add(&mut self, events: &[Event]) {
        self.timeouts += events.iter().filter(|event| is_timeout(event)).count();
        for (costs, rule) in self.costs.iter_mut().zip(RULES) {
            for (cost, pattern) in costs.iter_mut().zip(PATTERNS) {
                *cost += explain(events, rule, pattern, |_, _| ());
            }
        }
    }

    /// The rule and the pattern that explain most; the first of those that are as good.
    fn best(&self) -> (Rule, u32) {
        let (mut best, mut least) = ((RULES[0], PATTERNS[0]), f64::INFINITY);
        for (costs, rule) in self.costs.iter().zip(RULES) {
            for (cost, pattern) in costs.iter().zip(PATTERNS) {
                if *cost + EQUAL < least {
                    (best, least) = ((rule, pattern), *cost);
                }
            }
        }
        best
    }
}

/// Decides by the rule of their server what could not be decided before, and writes into the events how many timeouts are in
/// each.
pub fn fit(events: &mut [Event], scores: &Scores) -> Backoff {
    let (rule, pattern) = scores.best();
    for event in events.iter_mut() {
        decide(event, rule, pattern, scores.timeouts);
    }
    let mut counts = Vec::new();
    explain(events, rule, pattern, |before, count| counts.push((before, count)));
    let mut timeouts = events.iter_mut().filter(|event| is_timeout(event));
    for (before, count) in counts {
        let Some(event) = timeouts.next() else { break };
        (event.before, event.timeouts, event.rto) = (before, count, rto(event, rule));
    }
    let longest = events.iter().filter(|e| is_timeout(e)).map(|e| e.before + e.timeouts).max();
    if longest.unwrap_or(0) < 2 {
        return Backoff::None;
    }
    // Doubled or not is what is asked.
    let cost = |pattern| explain(events, rule, pattern, |_, _| ());
    let (doubled, constant) = (cost(0), cost(u32::MAX));
    match pattern {
        0 if constant > doubled + CLEARLY => Backoff::Doubled,
        u32::MAX if doubled > constant + CLEARLY => Backoff::Constant,
        0 | u32::MAX => Backoff::Unclear,
        _ => Backoff::Late,
    }
}

fn decide(event: &mut Event, rule: Rule, pattern: u32, known: usize) {
    if event.what != What::Data || event.again {
        return;
    }
    let least = rto(event, rule);
    // What was not looked at further must fit better, and so must many timeouts.
    let well = if event.evidence == Evidence::Clocked { EXACTLY } else { WELL };
    let mut length = 0.0;
    let fits = known > 0
        && (1..=MANY).any(|n| {
            length += factor(n - 1, pattern);
            off(event.waited, least, length).abs() < if n <= FEW { well } else { EXACTLY }
        });
    let short = event.waited * 5 < least * 3;
    match (event.kind, event.evidence) {
        // A timer that began later than is seen here took less than `waited`, never more.
        (Kind::Timeout, _) if short => {
            (event.kind, event.evidence) = (Kind::Recovery, Evidence::TooShort);
        }
        (Kind::Ambiguous, Evidence::Stalled | Evidence::Clocked) if fits => {
            event.evidence = Evidence::Stalled;
            // Linux finds lost retransmissions without its timer (RFC 8985), some as late as a timeout.
            if !matches!(rule, Rule::Plus(_)) {
                event.kind = Kind::Timeout;
            }
        }
        (Kind::Ambiguous, Evidence::Stalled | Evidence::Clocked) => {
            (event.kind, event.evidence) = (Kind::Recovery, Evidence::Clocked);
        }
        (Kind::Ambiguous, _) if short && known > 0 => {
            (event.kind, event.evidence) = (Kind::Pause, Evidence::TooShort);
        }
        (Kind::Ambiguous, Evidence::Single) if fits => event.kind = Kind::Timeout,
        _ => {}
    }
}

fn is_timeout(event: &Event) -> bool {
    event.kind == Kind::Timeout && event.what == What::Data
}

fn rto(event: &Event, rule: Rule) -> Duration {
    let (rtt, varying) = (event.rtt + event.delay, event.variation * 4);
    if event.rtt == Duration::ZERO {
        return INITIAL;
    }
    match rule {
        Rule::AtLeast(least) => (rtt + varying).max(least),
        Rule::Plus(least) => rtt + varying.max(least),
    }
}

/// How far a span is from so many timeouts, as a logarithm.
fn off(span: Duration, rto: Duration, times: f64) -> f64 {
    (span.0 as f64 / (times * rto.0 as f64).max(1.0)).max(1e-9).ln()
}

/// How badly a rule and a pattern explain silences; tells for each timeout how many came before, and how many are in it.
fn explain(events: &[Event], rule: Rule, pattern: u32, mut each: impl FnMut(u32, u32)) -> f64 {
    // Linux's timer begins anew with a retransmission, too: it began at some time between what is seen and the last
    // acknowledgement that the sender heard.
    let usual = matches!(rule, Rule::Plus(_));
    let mut total = 0.0;
    let mut row: Option<(u32, Duration)> = None;
    for event in events.iter().filter(|event| is_timeout(event)) {
        let own = (0, rto(event, rule));
        let later = if usual || event.asked { COST_OF_LATER_HERE } else { COST_OF_LATER };
        let least = if event.asked { Duration::ZERO } else { event.idle };
        // How many came before, and how long the first was.
        let mut begins = [Some(own), None];
        match row {
            Some(row) if event.again => begins = [Some(row), None],
            Some((before, _)) if event.held => begins[1] = Some((before, own.1)),
            _ => {}
        }
        let mut best = (f64::INFINITY, own, 1);
        for begin in begins.into_iter().flatten() {
            let (before, first) = begin;
            let mut length = 0.0;
            for n in 1..=MOST {
                length += factor(before + n - 1, pattern);
                let square = |off: f64| (off / DEVIATION).powi(2) / 2.0;
                let exact = square(off(event.waited, first, length));
                let above = off(event.waited, first, length).min(0.0);
                let below = off(least, first, length).max(0.0);
                // Nor is it known how long a server thinks: the less is left for that, the better.
                let rest =
                    if event.asked { off(event.waited, first, length).max(0.0) } else { 0.0 };
                let between = later + square(above) + square(below) + COST_OF_THINKING * rest;
                let found = exact.min(between).min(WORST) + COST_OF_ONE * f64::from(n - 1);
                if found + EQUAL < best.0 {
                    best = (found, begin, n);
                }
            }
        }
        let (cost, (before, first), count) = best;
        total += cost;
        each(if event.again { before } else { 0 }, count);
        row = Some((before + count, first));
    }
    total
}

/// The `nth` timeout in a row, counted from zero, as a multiple of the first (TCP*(n), Fig. 1).
fn factor(nth: u32, pattern: u32) -> f64 {
    f64::from(1 << nth.saturating_sub(pattern).min(MOST_DOUBLINGS))
}
