//! A cumulative distribution as points, with straight lines between them.

/// A measured cumulative distribution: points of a value and the probability of no more than it.
///
/// Values and probabilities never fall; the last probability is 1. Values between two points are
/// equally likely. The first point's probability is that of its value itself. Two points of one
/// value are a step.
#[derive(Clone, Debug, PartialEq)]
pub struct Table(Vec<(u64, f64)>);

impl Table {
    /// Creates a table from points in order.
    ///
    /// # Errors
    /// Fails if they are no cumulative distribution: with the index of the first point that can't
    /// follow the one before it, and the reason. The reason quotes no number, as the points may be
    /// confidential.
    pub fn new(points: Vec<(u64, f64)>) -> Result<Self, (usize, String)> {
        let mut before = (0, 0.0);
        for (i, &(value, p)) in points.iter().enumerate() {
            if !(0.0..=1.0).contains(&p) {
                return Err((i, "a probability lies between 0 and 1".to_owned()));
            }
            if i > 0 && value < before.0 {
                return Err((i, "the values must not fall from one point to the next".to_owned()));
            }
            if p < before.1 {
                let why = "a cumulative probability must not fall from one point to the next";
                return Err((i, why.to_owned()));
            }
            before = (value, p);
        }
        match points.last() {
            Some(&(_, 1.0)) => Ok(Self(points)),
            Some(_) => Err((points.len() - 1, "the last probability must be 1".to_owned())),
            None => Err((0, "there is no point".to_owned())),
        }
    }

    /// Returns the points in order.
    #[must_use]
    pub fn points(&self) -> &[(u64, f64)] {
        &self.0
    }

    /// Returns the value that a fraction `u` of the draws does not exceed.
    #[must_use]
    pub fn quantile(&self, u: f64) -> f64 {
        let points = &self.0;
        let i = points.partition_point(|&(_, p)| p <= u).min(points.len() - 1);
        let (high, above) = (points[i].0 as f64, points[i].1);
        let Some(&(low, below)) = i.checked_sub(1).and_then(|before| points.get(before)) else {
            return high;
        };
        if above <= below {
            return high;
        }
        let low = low as f64;
        low + (high - low) * ((u - below) / (above - below))
    }

    /// Returns the probability that a draw exceeds `x`.
    #[must_use]
    pub(super) fn ccdf(&self, x: f64) -> f64 {
        let points = &self.0;
        let i = points.partition_point(|&(value, _)| value as f64 <= x);
        let Some(&(low, below)) = i.checked_sub(1).and_then(|before| points.get(before)) else {
            return 1.0;
        };
        let Some(&(high, above)) = points.get(i) else { return 0.0 };
        let (low, high) = (low as f64, high as f64);
        1.0 - (below + (above - below) * ((x - low) / (high - low)))
    }

    /// Returns the mean of min(X, most).
    #[must_use]
    pub(super) fn limited_mean(&self, most: f64) -> f64 {
        let points = &self.0;
        // The integral of P(X > x): 1 up to the first point, then a trapezium between each two.
        let mut sum = (points[0].0 as f64).min(most);
        for pair in points.windows(2) {
            let (low, high) = (pair[0].0 as f64, (pair[1].0 as f64).min(most));
            if high > low {
                // Value just below the upper end: a step there is not part of the line that leads
                // to it.
                let end = if pair[1].0 as f64 > most { self.ccdf(high) } else { 1.0 - pair[1].1 };
                sum += (high - low) * ((1.0 - pair[0].1) + end) / 2.0;
            }
        }
        sum
    }
}
