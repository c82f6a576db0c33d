use cwnd_packet::{CongestionHeader, Echo};
use cwnd_quantity::Rng;
use cwnd_scenario::Tampering;

/// A middlebox at the far end of a link that does not know the options of explicit feedback.
///
/// It removes options, or flips a bit and corrects the checksum. Bit errors on the line are losses
/// instead, since the checksum reveals them.
#[derive(Debug)]
pub struct Middlebox {
    tampering: Tampering,
    rng: Rng,
    counters: MiddleboxCounters,
}

/// Counters of a middlebox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MiddleboxCounters {
    /// Options removed.
    pub removed: u64,
    /// Options with one bit flipped.
    pub damaged: u64,
}

/// Treatment of an option.
enum Treatment {
    Keep,
    Remove,
    Flip(u32),
}

impl Middlebox {
    /// Creates a middlebox that draws from `rng`.
    #[must_use]
    pub fn new(tampering: Tampering, rng: Rng) -> Self {
        Self { tampering, rng, counters: MiddleboxCounters::default() }
    }

    /// Tampers with the header option of passing data.
    pub fn tamper_with_header(&mut self, header: &mut CongestionHeader) {
        match self.treatment(header.option_bits()) {
            Treatment::Keep => {}
            Treatment::Remove => *header = CongestionHeader::None,
            Treatment::Flip(bit) => *header = header.with_flipped(bit),
        }
    }

    /// Tampers with the echo option of a passing ACK.
    pub fn tamper_with_echo(&mut self, echo: &mut Echo) {
        match self.treatment(echo.option_bits()) {
            Treatment::Keep => {}
            Treatment::Remove => *echo = Echo::None,
            Treatment::Flip(bit) => *echo = echo.with_flipped(bit),
        }
    }

    /// Counters until now.
    #[must_use]
    pub const fn counters(&self) -> MiddleboxCounters {
        self.counters
    }

    fn treatment(&mut self, bits: u32) -> Treatment {
        if bits == 0 {
            return Treatment::Keep;
        }
        // All draws are made in any case, so that added damage does not change the removals.
        let Tampering { option_loss, option_damage } = self.tampering;
        let (removed, damaged) = (self.rng.chance(option_loss), self.rng.chance(option_damage));
        let bit = self.rng.below(u64::from(bits)) as u32;
        if removed {
            self.counters.removed += 1;
            Treatment::Remove
        } else if damaged {
            self.counters.damaged += 1;
            Treatment::Flip(bit)
        } else {
            Treatment::Keep
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn middlebox(option_loss: f64, option_damage: f64) -> Middlebox {
        Middlebox::new(Tampering { option_loss, option_damage }, Rng::named(3, "test"))
    }

    /// Passes a thousand packets with one load level through a middlebox.
    fn levels(mut of: Middlebox) -> (Vec<CongestionHeader>, MiddleboxCounters) {
        let mut passed = vec![CongestionHeader::Level(5); 1000];
        passed.iter_mut().for_each(|header| of.tamper_with_header(header));
        (passed, of.counters())
    }

    #[test]
    fn options_are_removed_and_damaged_as_often_as_was_asked() {
        let (passed, tampered) = levels(middlebox(0.1, 0.3));
        let count =
            |of: fn(&CongestionHeader) -> bool| passed.iter().filter(|h| of(h)).count() as u64;
        let removed = count(|h| *h == CongestionHeader::None);
        let damaged = count(|h| matches!(h, CongestionHeader::Level(level) if *level != 5));
        assert_eq!(tampered, MiddleboxCounters { removed, damaged });
        assert!((70..130).contains(&removed), "{removed}");
        // A removed option cannot be damaged: 0.3 × 0.9.
        assert!((220..320).contains(&damaged), "{damaged}");
        for bit in 0..4 {
            let flipped = CongestionHeader::Level(5 ^ 1 << bit);
            let share = passed.iter().filter(|&&h| h == flipped).count();
            assert!((40..100).contains(&share), "{bit}: {share}");
        }
    }

    #[test]
    fn damage_leaves_alone_what_is_removed() {
        let removed = |damage| {
            let (passed, _) = levels(middlebox(0.2, damage));
            passed.iter().map(|h| *h == CongestionHeader::None).collect::<Vec<_>>()
        };
        assert_eq!(removed(0.0), removed(1.0));
    }

    #[test]
    fn packets_without_options_pass_and_draw_nothing() {
        let mut of = middlebox(1.0, 1.0);
        for header in [CongestionHeader::None, CongestionHeader::Id(9)] {
            let mut passed = header;
            of.tamper_with_header(&mut passed);
            assert_eq!(passed, header);
        }
        let mut echo = Echo::Ce { packets: 9 };
        of.tamper_with_echo(&mut echo);
        assert_eq!((echo, of.counters()), (Echo::Ce { packets: 9 }, MiddleboxCounters::default()));
        echo = Echo::Delta(5);
        of.tamper_with_echo(&mut echo);
        assert_eq!((echo, of.counters().removed), (Echo::None, 1));
    }
}
