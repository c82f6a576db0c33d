//! Names for where things are.

/// Names a place among the segments that are under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place(u32);

impl Place {
    /// The place with this number.
    #[inline]
    pub const fn numbered(number: u32) -> Self {
        Self(number)
    }

    /// Its number.
    #[inline]
    pub const fn number(self) -> u32 {
        self.0
    }
}

/// A link of the scenario, as the parts that make it.
#[derive(Clone, Copy, Debug)]
pub struct LinkParts {
    /// Queue and transmitter; none when the rate is unlimited.
    pub line: Option<u32>,
    /// Propagation; none when a line has no delay behind it.
    pub pipe: Option<u32>,
    /// What tampers with options behind them.
    pub middlebox: Option<u32>,
}
