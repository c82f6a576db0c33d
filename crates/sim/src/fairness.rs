//! End of a run at a given fairness among its flows.

use cwnd_quantity::{Duration, Time};
use cwnd_scenario::FlowGroup;

use crate::flow::Flow;

/// Jain's index of the bytes that long-lived flows delivered since the last of them started (ABE §
/// IV-C).
#[derive(Clone, Debug)]
pub struct Fairness {
    threshold: f64,
    /// Bytes that each flow had delivered when counting began; `None` before.
    before: Option<Vec<u64>>,
}

impl Fairness {
    /// Interval between two checks: about a thousandth of the convergence time on most paths. It is
    /// the accuracy of the result.
    pub const INTERVAL: Duration = Duration::from_millis(10);

    /// Creates a check for an index of at least `threshold`.
    pub const fn new(threshold: f64) -> Self {
        Self { threshold, before: None }
    }

    /// Returns `true` once Jain's index of the bytes delivered reaches the threshold. `delivered`
    /// has the bytes of each flow since its start, `None` for a flow that has not started.
    ///
    /// Bytes count from the first call that finds all flows started.
    pub fn reached(&mut self, delivered: impl Iterator<Item = Option<u64>>) -> bool {
        let Some(now) = delivered.collect::<Option<Vec<u64>>>() else { return false };
        let Some(before) = &self.before else {
            self.before = Some(now);
            return false;
        };
        let shares = now.iter().zip(before).map(|(now, before)| (now - before) as f64);
        now.len() > 1 && jain(shares).is_some_and(|index| index >= self.threshold)
    }
}

/// Bytes delivered by each flow that counts for fairness; `None` for a flow that has not started.
pub fn shares_delivered(flows: &[Flow], groups: &[FlowGroup]) -> impl Iterator<Item = Option<u64>> {
    let shares: Vec<bool> = groups.iter().map(|group| group.workload.facts().shares).collect();
    flows
        .iter()
        .filter(move |flow| shares[flow.group as usize])
        .map(|flow| (flow.started != Time::NEVER).then(|| flow.delivered_bytes()))
}

/// Jain's index, (Σx)² / (n Σx²) (Jain, Chiu & Hawe 1984); `None` while all shares are zero.
fn jain(shares: impl Iterator<Item = f64>) -> Option<f64> {
    let (mut n, mut sum, mut squares) = (0.0, 0.0, 0.0);
    for share in shares {
        n += 1.0;
        sum += share;
        squares += share * share;
    }
    (squares > 0.0).then(|| sum * sum / (n * squares))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counting_begins_when_the_last_flow_has_started() {
        let mut fairness = Fairness::new(0.95);
        assert!(!fairness.reached([Some(1000), None].into_iter()));
        assert!(!fairness.reached([Some(5000), Some(0)].into_iter()), "from here on");
        assert!(fairness.reached([Some(5700), Some(500)].into_iter()), "700 and 500");
    }

    #[test]
    fn two_flows_reach_095_when_the_lesser_has_386_thousandths() {
        // (Σx)²/(2 Σx²) = 0.95 for x = (1 − s, s) at s = (1 − √(1/0.95 − 1)) / 2 = 0.3853.
        for (lesser, reached) in [(3852, false), (3854, true)] {
            let mut fairness = Fairness::new(0.95);
            assert!(!fairness.reached([Some(0), Some(0)].into_iter()));
            let shares = [Some(10_000 - lesser), Some(lesser)];
            assert_eq!(fairness.reached(shares.into_iter()), reached, "{lesser}");
        }
    }

    #[test]
    fn a_flow_alone_and_flows_without_a_byte_share_nothing() {
        let mut alone = Fairness::new(0.5);
        assert!(!alone.reached([Some(0)].into_iter()));
        assert!(!alone.reached([Some(1000)].into_iter()));
        let mut idle = Fairness::new(0.5);
        assert!(!idle.reached([Some(0), Some(0)].into_iter()));
        assert!(!idle.reached([Some(0), Some(0)].into_iter()));
    }
}
