//! Choice of a path by the flows of a group.

use cwnd_schema::Choice;

/// Choice of its path by each flow of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum Ends {
    /// Each flow draws a path: by the shares of `pairs`, otherwise all equally likely.
    #[name("random")]
    Random,
    /// Flows take the paths in turn, in their order.
    #[name("round-robin")]
    RoundRobin,
}
