//! Number of timeouts in each silence, and their backoff.
//!
//! If retransmissions were lost as well, several timeouts appear as one silence. Its length gives
//! their number: it is RTO · (1 + 2 + 4 + …) with backoff and RTO · (1 + 1 + 1 + …) without. The
//! RTO is computed from the round-trip times before it (RFC 6298 § 2), with each lower bound in
//! `RULES`. For each server, the rule that explains its silences best is chosen.

use cwnd_quantity::Duration;

use crate::event::{Event, Evidence, Kind, Probe, SegmentKind, Timer};

/// Rule by which a stack computes its RTO.
#[derive(Clone, Copy, Debug)]
struct Rule {
    /// Lower bound of the RTO or of its variance term.
    lower_bound: LowerBound,
    /// `true` if the sender sends tail loss probes first (RFC 8985 § 7).
    probes: bool,
}

#[derive(Clone, Copy, Debug)]
enum LowerBound {
    /// RTO = max(m, SRTT + 4·RTTVAR) (RFC 6298 § 2.4).
    AtLeast(Duration),
    /// RTO = SRTT + max(m, 4·RTTVAR), as in Linux.
    Plus(Duration),
}

const fn at_least(ms: u64) -> Rule {
    Rule { lower_bound: LowerBound::AtLeast(Duration::from_millis(ms)), probes: false }
}

/// Linux's lower bound.
const LINUX: LowerBound = LowerBound::Plus(Duration::from_millis(200));
/// Candidate rules: RFC 6298's, Linux's without and with tail loss probes, then other lower bounds.
const RULES: [Rule; 9] = [
    at_least(1000),
    Rule { lower_bound: LINUX, probes: false },
    Rule { lower_bound: LINUX, probes: true },
    at_least(200),
    at_least(300),
    at_least(400),
    at_least(500),
    at_least(1500),
    at_least(3000),
];

/// Consecutive timeouts before backoff begins, the n of TCP*(n); the last value stands for ∞.
const PATTERNS: [u32; 5] = [0, 1, 2, 3, u32::MAX];
/// Maximum number of doublings of the RTO in a row of timeouts (TCP*(n), footnote 5).
const MAX_DOUBLINGS: u32 = 6;
/// Maximum number of timeouts considered in one silence.
const MAX_TIMEOUTS: u32 = 10;
/// Standard deviation of the logarithm of a silence's length from its expected value.
const STANDARD_DEVIATION: f64 = 0.12;
/// Cost up to which the deviation of a silence counts in full.
const MAX_FULL_COST: f64 = 12.0;
/// Logarithmic deviation at which that cost is reached, √(2 · 12) deviations, and the cost per
/// further unit.
const FULL_COST_DEVIATION: f64 = 0.588;
const COST_OF_FARTHER: f64 = 1.5;
/// Cost of each further timeout, and of a pattern that no known stack has by default, or of a rule
/// other than Linux's with probes for a server identified as Linux.
const COST_OF_ONE: f64 = 0.8;
const COST_OF_RARE: f64 = 6.0;
/// Cost of a timer that began later than seen here; and with Linux or after a request, where that
/// is common.
const COST_OF_LATER: f64 = 2.0;
const COST_OF_LATER_HERE: f64 = 0.3;
/// Cost of time left for the application or the server, per unit of the logarithm.
const COST_OF_THINKING: f64 = 2.0;
/// Cost of rules without probes for each probe seen, and the number of probes that count at most.
const WORTH_OF_A_PROBE: f64 = 2.0;
const MAX_PROBES: u32 = 20;
/// Cost of Linux's rule without probes, which must have been configured, unless the server is
/// identified as Linux.
const COST_OF_NOT_PROBING: f64 = 0.9;
/// Cost of a timer shorter than Linux's is computed to be.
const COST_OF_SHORTER: f64 = 0.8;
/// Cost of a timeout without a probe before it: if the segment may be the probe, and if it cannot
/// be.
const COST_OF_NO_PROBE: f64 = 8.0;
const COST_OF_NO_PROBE_BEFORE: f64 = 2.0;
/// Cost of each packet beyond those sent.
const COST_OF_A_PACKET: f64 = 20.0;
/// Cost of a probe for each packet missing besides the segment that it repeats, and for data behind
/// it.
const COST_OF_MORE: f64 = 2.0;
const MAX_MISSING: u32 = 4;
/// Cost of a request that was received only when it was repeated.
const COST_OF_REPEATED: f64 = 1.4;
/// Delay of Linux's timers, as a logarithm: the granularity of its timer wheel is up to an eighth.
const TIMER_GRANULARITY: f64 = 0.118;
/// Parts of the probe timeout beyond two round trips (RFC 8985 § 7.2, with Linux's numbers): two
/// clock ticks. A single unacknowledged segment adds the delay of its ACK.
const TWO_TICKS: Duration = Duration::from_millis(10);
const DELAYED_ACK: Duration = Duration::from_millis(200);
/// Part of a round trip (1 / 4) that RACK's reordering window adds to a round trip (RFC 8985 § 6.2,
/// step 4).
const REORDERING_FRACTION: u64 = 4;
/// Cost difference that counts as none.
const COST_EPSILON: f64 = 1e-9;
/// Cost differences that decide for backoff, and for no backoff.
const CLEARLY: f64 = 0.4;
const CLEARLY_CONSTANT: f64 = 2.0;
/// Cost difference from which it is clear that a server sends probes, or sends none.
const CLEARLY_PROBES: f64 = 1.0;
/// Cost above which a silence explained by [`Evidence::Unheard`] was something else.
const UNLIKELY: f64 = 3.0;
/// Logarithmic deviation that suffices for up to `FEW_TIMEOUTS` timeouts.
const MAX_DEVIATION: f64 = 0.12;
const FEW_TIMEOUTS: u32 = 3;
/// Deviation that suffices for more timeouts, up to `MANY_TIMEOUTS`, and for weaker evidence.
const MAX_DEVIATION_WEAK: f64 = 0.04;
const MANY_TIMEOUTS: u32 = 7;
/// RTO before the first round-trip time (RFC 6298 § 2.1).
const INITIAL_RTO: Duration = Duration::from_secs(1);

/// Growth of consecutive timeouts of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Backoff {
    /// There were no consecutive timeouts.
    #[default]
    None,
    /// Each timeout was twice as long as the one before.
    Doubled,
    /// The first few were equally long, the later ones doubled.
    Late,
    /// All were equally long.
    Constant,
    /// Several patterns explain the silences.
    Unclear,
}

impl Backoff {
    /// Names in the column `backoff`, in the order of the variants.
    pub const NAMES: [&'static str; 5] = ["none", "doubled", "late", "constant", "unclear"];
}

/// Cost of each rule and pattern over the silences of a server.
#[derive(Clone, Debug)]
pub struct Scores {
    costs: [[f64; PATTERNS.len()]; RULES.len()],
    timeouts: usize,
    tail_probes: u32,
    linux: bool,
}

impl Default for Scores {
    fn default() -> Self {
        let rare = PATTERNS.map(|pattern| match pattern {
            0 | u32::MAX => 0.0,
            _ => COST_OF_RARE,
        });
        Self { costs: [rare; RULES.len()], timeouts: 0, tail_probes: 0, linux: false }
    }
}

impl Scores {
    /// Adds the silences of a connection.
    pub fn add(&mut self, events: &[Event], tails: u32, linux: bool) {
        self.linux |= linux;
        self.tail_probes = self.tail_probes.saturating_add(tails);
        self.timeouts += events.iter().filter(|event| is_timeout(event)).count();
        for (costs, rule) in self.costs.iter_mut().zip(RULES) {
            for (cost, pattern) in costs.iter_mut().zip(PATTERNS) {
                *cost += total_cost(events, rule, pattern, |_| ());
            }
        }
    }

    /// Returns the rule and pattern of least cost, the first of equals, among rules for which `may`
    /// is `true`; and that cost.
    fn best(&self, may: impl Fn(Rule) -> bool) -> ((Rule, u32), f64) {
        let (mut best, mut least) = ((RULES[0], PATTERNS[0]), f64::INFINITY);
        let seen = WORTH_OF_A_PROBE * f64::from(self.tail_probes.min(MAX_PROBES));
        for (costs, rule) in self.costs.iter().zip(RULES).filter(|(_, rule)| may(*rule)) {
            for (cost, pattern) in costs.iter().zip(PATTERNS) {
                let rare = match rule.lower_bound {
                    LowerBound::Plus(_) if rule.probes => 0.0,
                    _ if self.linux => COST_OF_RARE,
                    LowerBound::Plus(_) => COST_OF_NOT_PROBING,
                    LowerBound::AtLeast(_) => 0.0,
                };
                let cost = cost + rare + if rule.probes { 0.0 } else { seen };
                if cost + COST_EPSILON < least {
                    (best, least) = ((rule, pattern), cost);
                }
            }
        }
        (best, least)
    }
}

/// Reclassifies silences of a connection by the rule of their server, and sets the number of
/// timeouts in each timeout. Returns how its consecutive timeouts grew.
pub fn fit(events: &mut [Event], scores: &Scores) -> Backoff {
    let ((rule, pattern), cost) = scores.best(|_| true);
    for event in events.iter_mut() {
        decide(event, rule, pattern, scores.timeouts);
    }
    let found = best_compositions(events, rule, pattern);
    // If it is not clear that the server sends probes, a probe may also be a timeout.
    let (other, other_cost) = scores.best(|each| each.probes != rule.probes);
    let unclear = other_cost < cost + CLEARLY_PROBES;
    let others = if unclear { best_compositions(events, other.0, other.1) } else { found.clone() };
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
    // The costs of both extremes decide between doubled and constant.
    let cost = |pattern| total_cost(events, rule, pattern, |_| ());
    let (doubled, constant) = (cost(0), cost(u32::MAX));
    match pattern {
        _ if either => Backoff::Unclear,
        0 if constant > doubled + CLEARLY => Backoff::Doubled,
        u32::MAX if doubled > constant + CLEARLY_CONSTANT => Backoff::Constant,
        0 | u32::MAX => Backoff::Unclear,
        _ => Backoff::Late,
    }
}

/// Decides one silence by the rule of its server; `known` is the number of the server's silences
/// that are classified as timeouts.
fn decide(event: &mut Event, rule: Rule, pattern: u32, known: usize) {
    if event.what != SegmentKind::Data || event.again {
        return;
    }
    let least = rto(event, rule);
    // Silences by weaker evidence must fit better, and so must many timeouts.
    let well = if event.evidence == Evidence::Clocked { MAX_DEVIATION_WEAK } else { MAX_DEVIATION };
    let fits = known > 0
        && compositions(event, rule, false)
            .take_while(|composition| composition.count <= MANY_TIMEOUTS)
            .any(|composition| {
                let timeouts: f64 = (0..composition.count).map(|nth| factor(nth, pattern)).sum();
                let expected = composition.probe + timeouts * least.0 as f64;
                let near =
                    if composition.count <= FEW_TIMEOUTS { well } else { MAX_DEVIATION_WEAK };
                composition.count > 0 && log_deviation(event.waited, expected, rule).abs() < near
            });
    let short = match rule.lower_bound {
        // A long RTT sample may have been rejected.
        LowerBound::Plus(_) => {
            (event.waited + event.queueing_delay) * 4 < least.min(rto_from_samples(event, rule)) * 3
        }
        LowerBound::AtLeast(_) => event.waited * 5 < least * 3,
    };
    let usual = matches!(rule.lower_bound, LowerBound::Plus(_));
    match (event.kind, event.evidence) {
        // A timer that began later than seen here took less than `waited`, never more.
        (Kind::Timeout, _) if short && !(rule.probes && event.probe == Probe::Last) => {
            (event.kind, event.evidence) = (Kind::Recovery, Evidence::TooShort);
        }
        (Kind::Timeout, Evidence::Filled) if usual && may_be_rack(event) => {
            (event.kind, event.evidence) = (Kind::Ambiguous, Evidence::Stalled);
        }
        (Kind::Ambiguous, Evidence::Stalled | Evidence::Clocked) if fits => {
            event.evidence = Evidence::Stalled;
            // Linux finds lost retransmissions without its timer (RFC 8985), some as late as a
            // timeout.
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

/// `true` if the sender had received duplicate ACKs since its timer began, and so knew of a hole.
fn had_duplicate_acks(event: &Event) -> bool {
    event.waited > event.idle + event.rtt / REORDERING_FRACTION && !event.after_request
}

/// `true` if RACK's timer may have sent the segment: it came within one and a half round trips
/// after the last duplicate ACK. That timer expires one and a quarter round trips after the lost
/// segment was sent; ACKs may have waited in a queue.
fn may_be_rack(event: &Event) -> bool {
    had_duplicate_acks(event) && event.idle < event.rtt * 3 / 2
}

/// `true` for silences of data that are classified as timeouts.
fn is_timeout(event: &Event) -> bool {
    event.kind == Kind::Timeout && event.what == SegmentKind::Data
}

/// Returns the RTO by the RTTs seen here, without the replayed timer of Linux.
fn rto_from_samples(event: &Event, rule: Rule) -> Duration {
    rto(&Event { linux: Timer::default(), ..*event }, rule)
}

/// Returns the RTO at the start of a silence under a rule; the initial one if no RTT is known.
fn rto(event: &Event, rule: Rule) -> Duration {
    let (rtt, varying) = (event.rtt + event.delay, event.variation * 4);
    let rttvar_linux = event.rttvar_linux * 4;
    if event.rtt == Duration::ZERO {
        return INITIAL_RTO;
    }
    match rule.lower_bound {
        LowerBound::AtLeast(least) => (rtt + varying).max(least),
        LowerBound::Plus(_) if event.linux.timeout > Duration::ZERO => event.linux.timeout,
        LowerBound::Plus(least) => rtt + rttvar_linux.max(least),
    }
}

/// Returns the logarithm of a span divided by its expected value, corrected for Linux's late
/// timers.
fn log_deviation(span: Duration, expected: f64, rule: Rule) -> f64 {
    let log_deviation = (span.0 as f64 / expected.max(1.0)).max(1e-9).ln();
    match rule.lower_bound {
        LowerBound::Plus(_) if log_deviation > 0.0 => (log_deviation - TIMER_GRANULARITY).max(0.0),
        _ => log_deviation,
    }
}

/// Possible composition of a silence.
#[derive(Clone, Copy, Debug)]
struct Composition {
    /// Number of timeouts.
    count: u32,
    /// Time of a probe or of RACK's timer before them, ns; zero if there was none.
    probe: f64,
    /// Cost of this composition.
    cost: f64,
}

/// Returns the possible compositions of a silence, fewest timeouts first. `row` is `true` if a
/// timeout came just before: no probe is sent then.
fn compositions(event: &Event, rule: Rule, row: bool) -> impl Iterator<Item = Composition> {
    let probing = rule.probes && !row;
    let seen = event.rtt + event.delay;
    let linux =
        matches!(rule.lower_bound, LowerBound::Plus(_)) && event.linux.smoothed > Duration::ZERO;
    let srtt = if linux { event.linux.smoothed } else { seen };
    let last = (srtt * 2 + TWO_TICKS).min(rto(event, rule)).0 as f64;
    let only = (srtt * 2 + DELAYED_ACK).min(rto(event, rule)).0 as f64;
    let at_once = match event.probe {
        Probe::Only => Some(only),
        Probe::Last => Some(last),
        Probe::No | Probe::Before => None,
    };
    // RACK's timer expired after the last duplicate ACK (RFC 8985 § 6.2, step 5), and its
    // retransmission restarted the RTO timer.
    let rack =
        (matches!(rule.lower_bound, LowerBound::Plus(_)) && !row && had_duplicate_acks(event))
            .then(|| {
                let until = event.waited.saturating_sub(event.idle);
                (until + seen + seen / REORDERING_FRACTION).0 as f64
            });
    let free = event.probe == Probe::No || !probing;
    // A single segment is lost only once before its probe, and a sender with more data omits PSH.
    let more = event.missing.map_or(0, |missing| missing.saturating_sub(u32::from(event.new)));
    let cost = COST_OF_MORE * f64::from(more.min(MAX_MISSING) + u32::from(!event.pushed));
    let none = at_once.filter(|_| probing).map(|probe| Composition { count: 0, probe, cost });
    let some = (1..=MAX_TIMEOUTS).flat_map(move |count| {
        let cost = COST_OF_ONE * f64::from(count - 1);
        let without = match event.probe {
            Probe::Before => COST_OF_NO_PROBE_BEFORE,
            _ => COST_OF_NO_PROBE,
        };
        let alone = cost + if free { 0.0 } else { without };
        let after =
            |probe| (!free).then_some(Composition { count, probe, cost: cost + COST_OF_ONE });
        let later = rack.map(|probe| Composition { count, probe, cost: cost + COST_OF_ONE });
        [Some(Composition { count, probe: 0.0, cost: alone }), after(last), after(only), later]
    });
    none.into_iter().chain(some.flatten())
}

/// Best composition of a silence.
#[derive(Clone, Copy, Debug)]
struct BestComposition {
    /// Consecutive timeouts before it.
    before: u32,
    /// Number of timeouts in it; zero if it was a probe.
    count: u32,
    /// Cost of the composition.
    cost: f64,
}

/// Returns the best composition of each timeout under a rule and pattern.
fn best_compositions(events: &[Event], rule: Rule, pattern: u32) -> Vec<BestComposition> {
    let mut all = Vec::new();
    total_cost(events, rule, pattern, |each| all.push(each));
    all
}

/// Returns a silence with Linux's replayed timer, and also without if that is clearly shorter.
fn readings(event: &Event, rule: Rule) -> impl Iterator<Item = (Event, f64)> {
    let other = Event { linux: Timer::default(), ..*event };
    let longer = rto(event, rule) > rto(&other, rule) * 11 / 10;
    [(*event, 0.0)].into_iter().chain(longer.then_some((other, COST_OF_SHORTER)))
}

/// Returns the cost of a rule and pattern over silences; passes the composition of each to `each`.
fn total_cost(
    events: &[Event],
    rule: Rule,
    pattern: u32,
    mut each: impl FnMut(BestComposition),
) -> f64 {
    let mut total = 0.0;
    let mut row: Option<(u32, Duration)> = None;
    for event in events.iter().filter(|event| is_timeout(event)) {
        let mut best = (f64::INFINITY, (0, rto(event, rule)), 1);
        for (event, cost) in readings(event, rule) {
            let own = (0, rto(&event, rule));
            // Timeouts before this one in its row, and the first RTO of the row.
            let mut begins = [Some(own), None];
            match row {
                Some(row) if event.again => begins = [Some(row), None],
                Some((before, _)) if event.backed_off => begins[1] = Some((before, own.1)),
                _ => {}
            }
            for begin in begins.into_iter().flatten() {
                for composition in compositions(&event, rule, event.again) {
                    let found = cost + cost_of(&event, rule, pattern, begin, composition);
                    if found + COST_EPSILON < best.0 {
                        best = (found, begin, composition.count);
                    }
                }
            }
        }
        let (cost, (before, first), count) = best;
        total += cost;
        each(BestComposition { before: if event.again { before } else { 0 }, count, cost });
        row = Some((before + count, first));
    }
    total
}

/// Returns the cost of a composition, given the number of timeouts before it in a row and their
/// first RTO.
fn cost_of(
    event: &Event,
    rule: Rule,
    pattern: u32,
    (before, first): (u32, Duration),
    composition: Composition,
) -> f64 {
    // Linux's timer also restarts at a retransmission: it began between the start seen here and the
    // last ACK that the sender received.
    let usual = matches!(rule.lower_bound, LowerBound::Plus(_));
    // The times of application writes and of a server's processing are not known: the less is left
    // for them, the better.
    let open = event.after_request || event.all_acked || event.new;
    let later = if usual || event.after_request { COST_OF_LATER_HERE } else { COST_OF_LATER };
    let least = if open { Duration::ZERO } else { event.idle };
    let timeouts: f64 = (before..before + composition.count).map(|nth| factor(nth, pattern)).sum();
    let length = composition.probe + timeouts * first.0 as f64;
    let square = |log_deviation: f64| (log_deviation / STANDARD_DEVIATION).powi(2) / 2.0;
    let mut exact = square(log_deviation(event.waited, length, rule));
    if event.evidence == Evidence::Unheard {
        // The next timer had not expired when the server received the repeated request.
        let next = length + factor(before + composition.count, pattern) * first.0 as f64;
        exact = square(log_deviation(event.waited, length, rule).min(0.0))
            + square(log_deviation(event.waited, next, rule).max(0.0));
    }
    if event.request_repeated {
        let again = square(log_deviation(event.idle, length, rule)) + COST_OF_REPEATED;
        exact = exact.min(again);
    }
    let above = log_deviation(event.waited, length, rule).min(0.0);
    let below = log_deviation(least, length, rule).max(0.0);
    let rest = if open { log_deviation(event.waited, length, rule).max(0.0) } else { 0.0 };
    let between = later + square(above) + square(below) + COST_OF_THINKING * rest;
    let sent = composition.count + u32::from(composition.probe > 0.0);
    let between = if event.evidence == Evidence::Unheard { MAX_FULL_COST } else { between };
    // A timer that was longer than known explains it as well: the smaller the deviation, the
    // likelier.
    let beyond = (log_deviation(event.waited, length, rule).abs() - FULL_COST_DEVIATION).max(0.0);
    let worst = MAX_FULL_COST + COST_OF_FARTHER * beyond;
    exact.min(between).min(worst) + composition.cost + COST_OF_A_PACKET * excess(event, sent)
}

/// Returns the number of packets that a composition assumes beyond those sent. Sent were the last
/// arrival, the lost ones before it, and the first transmission if it was lost in the same silence.
fn excess(event: &Event, sent: u32) -> f64 {
    let first = u32::from((event.new && !event.again) || event.repair_lost);
    event.missing.map_or(0.0, |missing| f64::from((sent + first).saturating_sub(missing + 1)))
}

/// Returns the length of the `nth` consecutive timeout, from zero, as a multiple of the first
/// (TCP*(n), Fig. 1).
fn factor(nth: u32, pattern: u32) -> f64 {
    f64::from(1 << nth.saturating_sub(pattern).min(MAX_DOUBLINGS))
}
