//! Code of MLCP that routers and senders share: sixteen levels of a load factor, in four header
//! bits.
//!
//! Qazi, Znati, *On the design of load factor based congestion control protocols for next-generation networks*, INFOCOM 2008, has four
//! bits. Which loads the levels are is ours, from what two texts say: three bits are enough for multiplicative increase (its
//! abstract), additive increase does not hang on the load, and decreases have several levels (its abstract); the ends of the ranges are
//! BMCC's (Qazi, Andrew, Znati 2009, § II).

/// The level of high load: below it the load is low, above it there is overload.
pub const HIGH: u8 = 8;
/// The highest level.
pub const MOST: u8 = 15;

/// Low levels that η₀ to η is divided into, evenly; the lowest level is all that is below η₀.
const LOW: u8 = HIGH - 1;
/// Levels of overload that 1 to u is divided into, evenly; the highest level is u and more.
const OVER: u8 = MOST - HIGH - 1;

/// Which load factors the levels are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    /// η₀: smaller loads are not told apart.
    pub least: f64,
    /// η: between low and high load.
    pub high: f64,
    /// u: larger loads are not told apart.
    pub most: f64,
}

impl Scale {
    /// The level of a load factor.
    #[must_use]
    pub fn level(&self, load: f64) -> u8 {
        // A load at an end belongs to the level above it.
        let within = |from: f64, to: f64, levels: u8| {
            let at = (load - from) / (to - from) * f64::from(levels);
            (at as u8).min(levels - 1)
        };
        match load {
            _ if load >= self.most => MOST,
            _ if load >= 1.0 => HIGH + 1 + within(1.0, self.most, OVER),
            _ if load >= self.high => HIGH,
            _ if load >= self.least => 1 + within(self.least, self.high, LOW),
            _ => 0,
        }
    }

    /// The load factor that a sender takes a level for: of low load the upper end, as VCP does (0.8, Xia et al. 2005 § 3.3), so that no
    /// window grows faster than what is left; of overload the lower end, so that the window's parts that stay go from one end
    /// of their range to the other. Nothing is computed from that of high load, which is its middle.
    #[must_use]
    pub fn load(&self, level: u8) -> f64 {
        let within =
            |from: f64, to: f64, at: u8, of: u8| from + (to - from) * f64::from(at) / f64::from(of);
        match level {
            ..HIGH => within(self.least, self.high, level, LOW),
            HIGH => within(self.high, 1.0, 1, 2),
            _ => within(1.0, self.most, level.min(MOST) - HIGH - 1, OVER),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BMCC: Scale = Scale { least: 0.15, high: 0.75, most: 1.2 };

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
        /// A low load is never taken for a lower one, an overload never for a higher one, and neither is far off.
        #[test]
        fn a_level_stands_for_loads_near_it(load in 0.0..1.3_f64) {
            let taken = BMCC.load(BMCC.level(load));
            if load < BMCC.high {
                let step = (BMCC.high - BMCC.least) / f64::from(LOW);
                prop_assert!(taken >= load - 1e-12 && taken <= load.max(BMCC.least) + step + 1e-12);
            } else if load >= 1.0 {
                let step = (BMCC.most - 1.0) / f64::from(OVER);
                prop_assert!(taken <= load + 1e-12 && taken >= load.min(BMCC.most) - step - 1e-12);
            }
        }
    }
}
