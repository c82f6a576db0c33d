//! Code of MLCP that routers and senders share: sixteen levels of a load factor, in four header
//! bits.
//!
//! Qazi, Znati, *On the design of load factor based congestion control protocols for
//! next-generation networks*, INFOCOM 2008, uses four bits. It does not say which loads the levels
//! stand for, so the mapping is our choice. Its abstract says that three bits are enough for
//! multiplicative increase, that additive increase does not depend on the load, and that decreases
//! have several levels. The ends of the ranges are BMCC's (Qazi, Andrew, Znati 2009, § II).

/// Level of high load: lower levels are low load, higher ones overload.
pub const HIGH: u8 = 8;
/// Highest level: a load of u or more.
pub const MAX_LEVEL: u8 = 15;

/// Number of levels that divide η₀ to η evenly; level 0 is all load below η₀.
const LOW: u8 = HIGH - 1;
/// Number of levels that divide 1 to u evenly; the highest level is u and more.
const OVER: u8 = MAX_LEVEL - HIGH - 1;

/// Load factors at the boundaries between ranges of levels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    /// η₀: smaller loads are not distinguished.
    pub min: f64,
    /// η: the boundary between low and high load.
    pub high: f64,
    /// u: larger loads are not distinguished.
    pub max: f64,
}

impl Scale {
    /// Returns the level of a load factor.
    #[must_use]
    pub fn level(&self, load: f64) -> u8 {
        // A load at a boundary belongs to the level above it.
        let within = |from: f64, to: f64, levels: u8| {
            let at = (load - from) / (to - from) * f64::from(levels);
            (at as u8).min(levels - 1)
        };
        match load {
            _ if load >= self.max => MAX_LEVEL,
            _ if load >= 1.0 => HIGH + 1 + within(1.0, self.max, OVER),
            _ if load >= self.high => HIGH,
            _ if load >= self.min => 1 + within(self.min, self.high, LOW),
            _ => 0,
        }
    }

    /// Returns the load factor that a sender computes with for a level.
    ///
    /// For low load it is the upper end of the level, as in VCP (0.8, Xia et al. 2005 § 3.3): no
    /// window then grows faster than the spare capacity allows. For overload it is the lower end:
    /// the factors by which windows shrink then span their whole range. For high load it is the
    /// middle, which only results show: additive increase does not depend on the load.
    #[must_use]
    pub fn load(&self, level: u8) -> f64 {
        let within =
            |from: f64, to: f64, at: u8, of: u8| from + (to - from) * f64::from(at) / f64::from(of);
        match level {
            ..HIGH => within(self.min, self.high, level, LOW),
            HIGH => within(self.high, 1.0, 1, 2),
            _ => within(1.0, self.max, level.min(MAX_LEVEL) - HIGH - 1, OVER),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BMCC: Scale = Scale { min: 0.15, high: 0.75, max: 1.2 };

    #[test]
    fn eight_levels_are_low_one_is_high_and_seven_are_over() {
        let levels = [
            (0.0, 0),
            (0.149, 0),
            (0.15, 1),
            (0.749, 7),
            (0.75, 8),
            (0.999, 8),
            (1.0, 9),
            (1.199, 14),
            (1.2, 15),
            (f64::INFINITY, 15),
        ];
        for (load, level) in levels {
            assert_eq!(BMCC.level(load), level, "{load}");
        }
        assert_eq!([0, 7, 9, 15].map(|level| BMCC.load(level)), [0.15, 0.75, 1.0, 1.2]);
        assert_eq!(BMCC.load(200), 1.2, "no level is above the highest");
    }

    proptest! {
        /// A low load is never taken for a lower one, an overload never for a higher one, and both
        /// are at most one level off.
        #[test]
        fn a_level_stands_for_loads_near_it(load in 0.0..1.3_f64) {
            let taken = BMCC.load(BMCC.level(load));
            if load < BMCC.high {
                let step = (BMCC.high - BMCC.min) / f64::from(LOW);
                prop_assert!(taken >= load - 1e-12 && taken <= load.max(BMCC.min) + step + 1e-12);
            } else if load >= 1.0 {
                let step = (BMCC.max - 1.0) / f64::from(OVER);
                prop_assert!(taken <= load + 1e-12 && taken >= load.min(BMCC.max) - step - 1e-12);
            }
        }
    }
}
