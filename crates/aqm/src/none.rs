//! A link without a meter, or without a messenger: what a scenario has that names none.

use cwnd_packet::{Contract, Declares};
use cwnd_schema::Schema;

/// Nothing.
#[derive(Clone, Debug, PartialEq, Schema)]
pub struct Params {}

impl Declares for Params {
    fn contract(&self) -> Contract {
        Contract::new()
    }
}
