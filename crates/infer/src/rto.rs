//! Number of timeouts in a silence, and their backoff.
//!
//! Of timeouts whose retransmission was lost, too, the client sees one silence only. Its length tells: it is RTO · (1 + 2 + 4 + …)
//! with backoff, RTO · (1 + 1 + 1 + …) without. The RTO is computed from the round-trip times before it (RFC 6298 § 2) under each
//! of the rules that stacks have for its minimum; of these, the one that explains the silences of a server best is taken.

use cwnd_quantity::Duration;

use crate::event::{Event, Evidence, Kind, Probe, Timer, What};

/// A rule for the timeout.
#[derive(Clone, Copy, Debug)]
struct Rule {
    /// What is added to SRTT, or what all is at least.
    least: Least,
    /// Whether the sender probes before (RFC 8985 § 7).
    probes: bool,
}

#[derive(Clone, Copy, Debug)]
enum Least {
    /// max(m, SRTT + 4·RTTVAR) (RFC 6298 § 2.4).
    AtLeast(Duration),
    /// SRTT + max(m, 4·RTTVAR), as Linux has it.
    Plus(Duration),
}

const fn at_least(ms: u64) -> Rule {
    Rule { least: Least::AtLeast(Duration::from_millis(ms)), probes: false }
}

/// Linux's.
const LINUX: Least = Least::Plus(Duration::from_millis(200));
/// Rules that are tried; the first is the RFC's, then Linux's without tail loss probes and with them.
const RULES: [Rule; 9] = [
    at_least(1000),
    Rule { least: LINUX, probes: false },
    Rule { least: LINUX, probes: true },
    at_least(200),
    at_least(300),
    at_least(400),
    at_least(500),
    at_least(1500),
    at_least(3000),
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
/// … where what is off by as much as this begins, as a logarithm (√(2 · 12) deviations), and what the rest of it costs.
const FAR: f64 = 0.588;
const COST_OF_FARTHER: f64 = 1.5;
/// What a timeout more, or a pattern that nobody has by default, must explain.
const COST_OF_ONE: f64 = 0.8;
const COST_OF_RARE: f64 = 6.0;
/// What a timer that began later than is seen must explain, and where that is usual.
const COST_OF_LATER: f64 = 2.0;
const COST_OF_LATER_HERE: f64 = 0.3;
const COST_OF_THINKING: f64 = 2.0;
/// What speaks for a sender that probes: that it did, once or so many times.
const WORTH_OF_A_PROBE: f64 = 2.0;
const MOST_PROBES: u32 = 20;
/// What Linux must explain if it does not probe, as it was told not to.
const COST_OF_NOT_PROBING: f64 = 0.9;
/// What a timer must explain that is shorter than Linux's is thought to be.
const COST_OF_SHORTER: f64 = 0.8;
/// What a timeout without a probe before it must explain, and a packet more than the sender sent.
const COST_OF_NO_PROBE: f64 = 8.0;
const COST_OF_NO_PROBE_BEFORE: f64 = 2.0;
const COST_OF_A_PACKET: f64 = 20.0;
/// What a probe must explain if more is missing than the segment that it repeats, or more was to be sent.
const COST_OF_MORE: f64 = 2.0;
const MOST_MORE: u32 = 4;
/// What a request must explain that was not heard before it was repeated.
const COST_OF_REPEATED: f64 = 1.4;
/// Linux's timers are late by up to an eighth, as a logarithm: its wheel of timers is that coarse.
const LATE: f64 = 0.118;
/// A tail loss probe goes after two round-trip times and two ticks of a clock; if it is of the only segment that is not
/// acknowledged, it waits for an acknowledgement that was delayed as well (RFC 8985 § 7.2, with Linux's numbers).
const TICKS: Duration = Duration::from_millis(10);
const DELAYED: Duration = Duration::from_millis(200);
/// RACK waits for a round trip and this part of one for segments that another has overtaken (RFC 8985 § 6.2, step 4).
const RACK_WAITS: u64 = 4;
/// A difference of costs that is none, and one that decides.
const EQUAL: f64 = 1e-9;
const CLEARLY: f64 = 0.4;
const CLEARLY_CONSTANT: f64 = 2.0;
const CLEARLY_PROBES: f64 = 1.0;
/// What is worse explained than this, and not needed, was something else.
const UNLIKELY: f64 = 3.0;
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
    tails: u32,
    linux: bool,
}

impl Default for Scores {
    fn default() -> Self {
        let rare = PATTERNS.map(|pattern| match pattern {
            0 | u32::MAX => 0.0,
            _ => COST_OF_RARE,
        });
        Self { costs: [rare; RULES.len()], timeouts: 0, tails: 0, linux: false }
    }
}

impl Scores {
    /// Takes the silences of a connection into account.
    pub fn add(&mut self, events: &[Event], tails: u32, linux: bool) {
        self.linux |= linux;
        self.tails = self.tails.saturating_add(tails);
        self.timeouts += events.iter().filter(|event| is_timeout(event)).count();
        for (costs, rule) in self.costs.iter_mut().zip(RULES) {
            for (cost, pattern) in costs.iter_mut().zip(PATTERNS) {
                *cost += explain(events, rule, pattern, |_| ());
            }
        }
    }

    /// The rule and the pattern that explain most, the first of those that are as good; of rules that `may` be.
    fn best(&self, may: impl Fn(Rule) -> bool) -> ((Rule, u32), f64) {
        let (mut best, mut least) = ((RULES[0], PATTERNS[0]), f64::INFINITY);
        let seen = WORTH_OF_A_PROBE * f64::from(self.tails.min(MOST_PROBES));
        for (costs, rule) in self.costs.iter().zip(RULES).filter(|(_, rule)| may(*rule)) {
            for (cost, pattern) in costs.iter().zip(PATTERNS) {
                let rare = match rule.least {
                    Least::Plus(_) if rule.probes => 0.0,
                    _ if self.linux => COST_OF_RARE,
                    Least::Plus(_) => COST_OF_NOT_PROBING,
                    Least::AtLeast(_) => 0.0,
                };
                let cost = cost + rare + if rule.probes { 0.0 } else { seen };
                if cost + EQUAL < least {
                    (best, least) = ((rule, pattern), cost);
                }
            }
        }
        (best, least)
    }
}

/// Decides by the rule of their server what could not be decided before, and writes into the events how many timeouts are in
/// each.
pub fn fit(events: &mut [Event], scores: &Scores) -> Backoff {
    let ((rule, pattern), cost) = scores.best(|_| true);
    for event in events.iter_mut() {
        decide(event, rule, pattern, scores.timeouts);
    }
    let found = explained(events, rule, pattern);
    // Where it is not clear whether the server probes, a probe may as well be a timeout.
    let (other, other_cost) = scores.best(|each| each.probes != rule.probes);
    let unclear = other_cost < cost + CLEARLY_PROBES;
    let others = if unclear { explained(events, other.0, other.1) } else { found.clone() };
    let mut either = false;
    let may_be_longest = others.iter().map(|other| other.before + other.count).max();
    let timeouts = events.iter_mut().filter(|event| is_timeout(event));
    for ((event, found), other) in timeouts.zip(found).zip(others) {
        (event.before, event.timeouts, event.rto) = (found.before, found.count, rto(event, rule));
        if event.evidence == Evidence::Unheard && (found.count == 0 || found.cost > UNLIKELY) {
            (event.kind, event.evidence) = (Kind::Client, Evidence::Clocked);
        } else if (found.count == 0) != (other.count == 0) {
            (event.kind, event.evidence) = (Kind::Ambiguous, Evidence::Probed);
            either = true;
        } else if found.count == 0 {
            (event.kind, event.evidence) = (Kind::Probe, Evidence::Probed);
        }
    }
    let longest = events.iter().filter(|e| is_timeout(e)).map(|e| e.before + e.timeouts).max();
    if longest.unwrap_or(0) < 2 {
        let may_be = either && may_be_longest.unwrap_or(0) > 1;
        return if may_be { Backoff::Unclear } else { Backoff::None };
    }
    // Doubled or not is what is asked.
    let cost = |pattern| explain(events, rule, pattern, |_| ());
    let (doubled, constant) = (cost(0), cost(u32::MAX));
    match pattern {
        _ if either => Backoff::Unclear,
        0 if constant > doubled + CLEARLY => Backoff::Doubled,
        u32::MAX if doubled > constant + CLEARLY_CONSTANT => Backoff::Constant,
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
    let fits = known > 0
        && guesses(event, rule, false).take_while(|guess| guess.count <= MANY).any(|guess| {
            let timeouts: f64 = (0..guess.count).map(|nth| factor(nth, pattern)).sum();
            let expected = guess.probe + timeouts * least.0 as f64;
            let near = if guess.count <= FEW { well } else { EXACTLY };
            guess.count > 0 && off(event.waited, expected, rule).abs() < near
        });
    let short = match rule.least {
        // A sample that was long may not have been taken.
        Least::Plus(_) => (event.waited + event.queued) * 4 < least.min(seen(event, rule)) * 3,
        Least::AtLeast(_) => event.waited * 5 < least * 3,
    };
    let usual = matches!(rule.least, Least::Plus(_));
    match (event.kind, event.evidence) {
        // A timer that began later than is seen here took less than `waited`, never more.
        (Kind::Timeout, _) if short && !(rule.probes && event.probe == Probe::Last) => {
            (event.kind, event.evidence) = (Kind::Recovery, Evidence::TooShort);
        }
        (Kind::Timeout, Evidence::Filled) if usual && may_be_rack(event) => {
            (event.kind, event.evidence) = (Kind::Ambiguous, Evidence::Stalled);
        }
        (Kind::Ambiguous, Evidence::Stalled | Evidence::Clocked) if fits => {
            event.evidence = Evidence::Stalled;
            // Linux finds lost retransmissions without its timer (RFC 8985), some as late as a timeout.
            if !usual {
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

/// The sender had heard of a hole since its timer began: what it heard last acknowledged nothing new.
fn heard_duplicates(event: &Event) -> bool {
    event.waited > event.idle + event.rtt / RACK_WAITS && !event.asked
}

/// What comes no later after the last duplicate may as well have been sent by RACK's timer, which expires a round trip and a quarter after
/// what it takes for lost was sent, as have acknowledgements that a queue held.
fn may_be_rack(event: &Event) -> bool {
    heard_duplicates(event) && event.idle < event.rtt * 3 / 2
}

fn is_timeout(event: &Event) -> bool {
    event.kind == Kind::Timeout && event.what == What::Data
}

/// The timeout by the round-trip times that are seen here, and nothing that was lost.
fn seen(event: &Event, rule: Rule) -> Duration {
    rto(&Event { linux: Timer::default(), ..*event }, rule)
}

fn rto(event: &Event, rule: Rule) -> Duration {
    let (rtt, varying) = (event.rtt + event.delay, event.variation * 4);
    let lasting = event.lasting * 4;
    if event.rtt == Duration::ZERO {
        return INITIAL;
    }
    match rule.least {
        Least::AtLeast(least) => (rtt + varying).max(least),
        Least::Plus(_) if event.linux.timeout > Duration::ZERO => event.linux.timeout,
        Least::Plus(least) => rtt + lasting.max(least),
    }
}

/// How far a span is from what it should be, as a logarithm.
fn off(span: Duration, expected: f64, rule: Rule) -> f64 {
    let off = (span.0 as f64 / expected.max(1.0)).max(1e-9).ln();
    match rule.least {
        Least::Plus(_) if off > 0.0 => (off - LATE).max(0.0),
        _ => off,
    }
}

/// What may have been in a silence.
#[derive(Clone, Copy, Debug)]
struct Guess {
    /// Timeouts.
    count: u32,
    /// How long a probe before them took, or what RACK's timer sent again, ns; zero if there was none.
    probe: f64,
    /// What must be explained besides.
    cost: f64,
}

/// What may have been in a silence, fewest timeouts first.
fn guesses(event: &Event, rule: Rule, row: bool) -> impl Iterator<Item = Guess> {
    let probing = rule.probes && !row;
    let seen = event.rtt + event.delay;
    let linux = matches!(rule.least, Least::Plus(_)) && event.linux.smoothed > Duration::ZERO;
    let srtt = if linux { event.linux.smoothed } else { seen };
    let last = (srtt * 2 + TICKS).min(rto(event, rule)).0 as f64;
    let only = (srtt * 2 + DELAYED).min(rto(event, rule)).0 as f64;
    let at_once = match event.probe {
        Probe::Only => Some(only),
        Probe::Last => Some(last),
        Probe::No | Probe::Before => None,
    };
    // RACK's timer expired after the last duplicate (RFC 8985 § 6.3), and the other began anew with what went again.
    let rack =
        (matches!(rule.least, Least::Plus(_)) && !row && heard_duplicates(event)).then(|| {
            let until = event.waited.saturating_sub(event.idle);
            (until + seen + seen / RACK_WAITS).0 as f64
        });
    let free = event.probe == Probe::No || !probing;
    // Of the only segment no more was lost than once, and who has more to send says so.
    let more = event.missing.map_or(0, |missing| missing.saturating_sub(u32::from(event.new)));
    let cost = COST_OF_MORE * f64::from(more.min(MOST_MORE) + u32::from(!event.pushed));
    let none = at_once.filter(|_| probing).map(|probe| Guess { count: 0, probe, cost });
    let some = (1..=MOST).flat_map(move |count| {
        let cost = COST_OF_ONE * f64::from(count - 1);
        let without = match event.probe {
            Probe::Before => COST_OF_NO_PROBE_BEFORE,
            _ => COST_OF_NO_PROBE,
        };
        let alone = cost + if free { 0.0 } else { without };
        let after = |probe| (!free).then_some(Guess { count, probe, cost: cost + COST_OF_ONE });
        let later = rack.map(|probe| Guess { count, probe, cost: cost + COST_OF_ONE });
        [Some(Guess { count, probe: 0.0, cost: alone }), after(last), after(only), later]
    });
    none.into_iter().chain(some.flatten())
}

/// What a silence was found to be.
#[derive(Clone, Copy, Debug)]
struct Explained {
    /// Timeouts in a row before it.
    before: u32,
    /// Timeouts in it; none if it was a probe.
    count: u32,
    /// How badly that explains it.
    cost: f64,
}

fn explained(events: &[Event], rule: Rule, pattern: u32) -> Vec<Explained> {
    let mut all = Vec::new();
    explain(events, rule, pattern, |each| all.push(each));
    all
}

/// A silence with the timer that Linux is thought to have had; and if that is longer than what is seen here asks for, with this.
fn readings(event: &Event, rule: Rule) -> impl Iterator<Item = (Event, f64)> {
    let other = Event { linux: Timer::default(), ..*event };
    let longer = rto(event, rule) > rto(&other, rule) * 11 / 10;
    [(*event, 0.0)].into_iter().chain(longer.then_some((other, COST_OF_SHORTER)))
}

/// How badly a rule and a pattern explain silences; tells for each that ends with a retransmission what it was.
fn explain(events: &[Event], rule: Rule, pattern: u32, mut each: impl FnMut(Explained)) -> f64 {
    let mut total = 0.0;
    let mut row: Option<(u32, Duration)> = None;
    for event in events.iter().filter(|event| is_timeout(event)) {
        let mut best = (f64::INFINITY, (0, rto(event, rule)), 1);
        for (event, cost) in readings(event, rule) {
            let own = (0, rto(&event, rule));
            // How many came before, and how long the first was.
            let mut begins = [Some(own), None];
            match row {
                Some(row) if event.again => begins = [Some(row), None],
                Some((before, _)) if event.held => begins[1] = Some((before, own.1)),
                _ => {}
            }
            for begin in begins.into_iter().flatten() {
                for guess in guesses(&event, rule, event.again) {
                    let found = cost + explain_one(&event, rule, pattern, begin, guess);
                    if found + EQUAL < best.0 {
                        best = (found, begin, guess.count);
                    }
                }
            }
        }
        let (cost, (before, first), count) = best;
        total += cost;
        each(Explained { before: if event.again { before } else { 0 }, count, cost });
        row = Some((before + count, first));
    }
    total
}

/// How badly a guess explains a silence, after so many timeouts in a row the first of which was so long.
fn explain_one(
    event: &Event,
    rule: Rule,
    pattern: u32,
    (before, first): (u32, Duration),
    guess: Guess,
) -> f64 {
    // Linux's timer begins anew with a retransmission, too: it began at some time between what is seen and the last
    // acknowledgement that the sender heard.
    let usual = matches!(rule.least, Least::Plus(_));
    // When the application wrote is not known, nor how long a server thinks: the less is left for that, the better.
    let open = event.asked || event.written || event.new;
    let later = if usual || event.asked { COST_OF_LATER_HERE } else { COST_OF_LATER };
    let least = if open { Duration::ZERO } else { event.idle };
    let timeouts: f64 = (before..before + guess.count).map(|nth| factor(nth, pattern)).sum();
    let length = guess.probe + timeouts * first.0 as f64;
    let square = |off: f64| (off / DEVIATION).powi(2) / 2.0;
    let mut exact = square(off(event.waited, length, rule));
    if event.evidence == Evidence::Unheard {
        // The next timer had not expired when the server heard of it.
        let next = length + factor(before + guess.count, pattern) * first.0 as f64;
        exact = square(off(event.waited, length, rule).min(0.0))
            + square(off(event.waited, next, rule).max(0.0));
    }
    if event.repeated {
        let again = square(off(event.idle, length, rule)) + COST_OF_REPEATED;
        exact = exact.min(again);
    }
    let above = off(event.waited, length, rule).min(0.0);
    let below = off(least, length, rule).max(0.0);
    let rest = if open { off(event.waited, length, rule).max(0.0) } else { 0.0 };
    let between = later + square(above) + square(below) + COST_OF_THINKING * rest;
    let sent = guess.count + u32::from(guess.probe > 0.0);
    let between = if event.evidence == Evidence::Unheard { WORST } else { between };
    // A timer that was longer than is known explains it, too: the less, the likelier.
    let beyond = (off(event.waited, length, rule).abs() - FAR).max(0.0);
    let worst = WORST + COST_OF_FARTHER * beyond;
    exact.min(between).min(worst) + guess.cost + COST_OF_A_PACKET * excess(event, sent)
}

/// How many packets more than were sent there would have been: what arrived last, those before it that were lost, and the
/// first of them, if that was lost in the same silence.
fn excess(event: &Event, sent: u32) -> f64 {
    let first = u32::from((event.new && !event.again) || event.twice);
    event.missing.map_or(0.0, |missing| f64::from((sent + first).saturating_sub(missing + 1)))
}

/// The `nth` timeout in a row, counted from zero, as a multiple of the first (TCP*(n), Fig. 1).
fn factor(nth: u32, pattern: u32) -> f64 {
    f64::from(1 << nth.saturating_sub(pattern).min(MOST_DOUBLINGS))
}
