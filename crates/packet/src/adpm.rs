//! Adaptive deterministic packet marking (Andrew, Hanly, Chan, Cui, IEEE Comm. Letters 10 (11),
//! 2006) as routers, receivers and senders of BMCC share it (Qazi, Andrew, Znati, § II-B).
//!
//! The IP identification of a packet selects one of 2^16 thresholds. Thresholds are sorted; the
//! *place* of a threshold is its index from 0. A router marks whether its load factor is above the
//! packet's threshold. A receiver keeps the place of the last threshold that tightened its
//! estimate, which takes no parameter. A sender converts the place into a load factor.

/// Number of thresholds, and of places.
pub const THRESHOLDS: u32 = 1 << 16;
/// A quarter of the thresholds lies below η, a quarter between η and 1, half above 1 (BMCC § II-B).
const QUARTER: u32 = THRESHOLDS / 4;
const HALF: u32 = THRESHOLDS / 2;
/// Place of a load of u or more, which CE signals.
pub const MAX_PLACE: u16 = u16::MAX;

/// Returns the place of the threshold that an IP identification selects; a bijection.
///
/// The paper leaves the hash open. This one (C. Wellons, hash prospector, public domain) makes
/// consecutive identifications look uniformly random, as eq. 13 of the paper assumes.
#[must_use]
pub const fn hash(id: u16) -> u16 {
    let mut x = id;
    x ^= x >> 8;
    x = x.wrapping_mul(0x88b5);
    x ^= x >> 7;
    x = x.wrapping_mul(0xdb2d);
    x ^ x >> 9
}

/// `true` if a place stands for a load of 1 or more.
#[must_use]
pub const fn is_over(place: u16) -> bool {
    place as u32 >= HALF
}

/// Load factors of the thresholds: a quarter of them in (η₀, η), a quarter in (η, 1), half in (1,
/// u).
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
    /// Returns the load factor at a place; the last place stands for u.
    #[must_use]
    pub fn load(&self, place: u16) -> f64 {
        let at = u32::from(place);
        let within = |from: f64, to: f64, first: u32, of: u32| {
            from + (to - from) * f64::from(at - first) / f64::from(of)
        };
        match at {
            _ if place == MAX_PLACE => self.max,
            ..QUARTER => within(self.min, self.high, 0, QUARTER),
            QUARTER..HALF => within(self.high, 1.0, QUARTER, QUARTER),
            _ => within(1.0, self.max, HALF, HALF),
        }
    }

    /// Returns the number of thresholds below a load; from u on, all of them.
    #[must_use]
    pub fn above(&self, load: f64) -> u32 {
        let within = |from: f64, to: f64, of: u32| {
            libm::ceil((load - from) / (to - from) * f64::from(of)).clamp(0.0, f64::from(of)) as u32
        };
        match load {
            _ if load >= self.max => THRESHOLDS,
            _ if load > 1.0 => HALF + within(1.0, self.max, HALF),
            _ if load > self.high => QUARTER + within(self.high, 1.0, QUARTER),
            _ if load > self.min => within(self.min, self.high, QUARTER),
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BMCC: Scale = Scale { min: 0.15, high: 0.75, max: 1.2 };

    #[test]
    fn each_place_has_one_identification() {
        let mut seen = vec![false; THRESHOLDS as usize];
        for id in 0..=u16::MAX {
            seen[usize::from(hash(id))] = true;
        }
        assert!(seen.iter().all(|&seen| seen));
    }

    #[test]
    fn numbers_in_a_row_look_drawn_by_lot() {
        // Of each 256 consecutive identifications, about a quarter lies in the lowest range and a
        // half in the highest, within five standard deviations of a binomial.
        for first in (0..=u16::MAX).step_by(256) {
            let places: Vec<u16> = (0..256).map(|i| hash(first + i)).collect();
            let low = places.iter().filter(|&&p| u32::from(p) < QUARTER).count() as f64;
            let over = places.iter().filter(|&&p| is_over(p)).count() as f64;
            assert!((low - 64.0).abs() < 5.0 * 48_f64.sqrt(), "{first}: {low}");
            assert!((over - 128.0).abs() < 5.0 * 64_f64.sqrt(), "{first}: {over}");
        }
    }

    #[test]
    fn a_quarter_lies_below_eta_a_quarter_below_one_and_half_above() {
        assert_eq!(BMCC.load(0), 0.15);
        assert_eq!(BMCC.load(1 << 14), 0.75);
        assert_eq!(BMCC.load(1 << 15), 1.0);
        assert_eq!(BMCC.load(MAX_PLACE), 1.2);
        assert!(is_over(1 << 15) && !is_over((1 << 15) - 1));
        for (load, above) in [
            (0.0, 0),
            (0.15, 0),
            (0.75, 1 << 14),
            (1.0, 1 << 15),
            (1.2, THRESHOLDS),
            (f64::INFINITY, THRESHOLDS),
        ] {
            assert_eq!(BMCC.above(load), above, "{load}");
        }
    }

    proptest! {
        /// A load is above the first `above` thresholds, and above no other.
        #[test]
        fn a_load_is_above_the_thresholds_before_its_place(load in 0.0..1.3_f64) {
            let above = BMCC.above(load);
            if above > 0 {
                prop_assert!(BMCC.load((above - 1) as u16) < load + 1e-12);
            }
            if above < THRESHOLDS {
                prop_assert!(BMCC.load(above as u16) >= load - 1e-12);
            }
        }
    }
}
