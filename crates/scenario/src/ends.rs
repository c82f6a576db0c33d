//! Choice of the ends of a flow.

use cwnd_schema::Choice;

/// How the flows of a group come to their ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum Ends {
    /// Each draws one of the ways, all with the same chance.
    #[name("random")]
    Random,
    /// One way after the other, and again from the first.
    #[name("round-robin")]
    RoundRobin,
}
