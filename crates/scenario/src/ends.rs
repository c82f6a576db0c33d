//! Choice of a path by the flows of a group.

use cwnd_schema::Choice;

/// Choice of its path by each flow of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum Ends {
    /// Each draws one of the ways, all with the same chance.
    #[name("random")]
    Random,
    /// One way after the other, and again from the first.
    #[name("round-robin")]
    RoundRobin,
}
