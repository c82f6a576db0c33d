//! Values of a distribution at a normal deviate, for draws that are correlated in time.

use core::f64::consts::SQRT_2;

use super::shape::Shape;

impl Shape {
    /// Returns the value that is exceeded with the probability that a standard normal deviate
    /// exceeds `x`.
    ///
    /// Correlated deviates become correlated values, each of which has this distribution (NORTA:
    /// Cario and Nelson, Modeling and generating random vectors with arbitrary marginal
    /// distributions, 1997). `None` for mixtures, replacements and `min` of these, which have no
    /// inverse in closed form.
    #[must_use]
    pub fn at_deviate(&self, x: f64) -> Option<f64> {
        // Both tails are computed, so that small probabilities keep their digits.
        let [below, above] = [-x, x].map(|x| libm::erfc(x / SQRT_2) / 2.0);
        Some(match self {
            Self::Constant(v) => *v as f64,
            Self::Uniform(low, high) => *low as f64 + (high - low) as f64 * below,
            Self::Exponential(mean) => -(*mean as f64) * libm::log(above),
            Self::Pareto(shape, width) => width.of_pareto(*shape) * libm::pow(above, -1.0 / shape),
            Self::Lomax(shape, width) => {
                width.of_lomax(*shape) * libm::expm1(-libm::log(above) / shape)
            }
            Self::Weibull(shape, width) => {
                width.of_weibull(*shape) * libm::pow(-libm::log(above), 1.0 / shape)
            }
            Self::LogNormal(median, sigma) => *median as f64 * libm::exp(sigma * x),
            Self::Table(table) => table.quantile(below),
            Self::AtMost(shape, most) => shape.at_deviate(x)?.min(*most as f64),
            Self::Mix(_) | Self::Replaced(_) => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::DurationDist;
    use super::*;

    #[test]
    fn a_value_is_exceeded_as_often_as_its_deviate() {
        let shapes = [
            "uniform(0 s, 2 s)",
            "exponential(1 s)",
            "pareto(2.5, 1 s)",
            "lomax(2.5, 1 s)",
            "weibull(0.7, 1 s)",
            "lognormal(1 s, 0.8)",
            "cdf(0 s: 0, 1 s: 0.25, 3 s: 1)",
            "min(lognormal(1 s, 0.8), 100 s)",
        ];
        for text in shapes {
            let DurationDist(shape) = text.parse().unwrap();
            for tenths in -60..=60 {
                let x = f64::from(tenths) / 10.0;
                let exceeded = libm::erfc(x / SQRT_2) / 2.0;
                let ccdf = shape.ccdf(shape.at_deviate(x).unwrap());
                // Values are within 10⁻⁸ plus a millionth of the probability.
                let near = (ccdf - exceeded).abs() < 1e-8 + 1e-6 * exceeded;
                assert!(near, "{text} at {x}: {ccdf} and {exceeded}");
            }
        }
    }

    #[test]
    fn a_choice_between_distributions_has_no_inverse() {
        for text in ["mix(0.5 1 s, 0.5 2 s)", "replace(exponential(1 s) below 1 s, 0.5 2 s)"] {
            let DurationDist(shape) = text.parse().unwrap();
            assert_eq!(shape.at_deviate(0.3), None, "{text}");
        }
    }
}
