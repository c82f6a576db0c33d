//! Parameters of a link without a meter or without a messenger, the default of a scenario.

use cwnd_packet::{Contract, Declares};
use cwnd_schema::Schema;

/// Empty parameters.
#[derive(Clone, Debug, PartialEq, Schema)]
pub struct Params {}

impl Declares for Params {
    fn contract(&self) -> Contract {
        Contract::new()
    }
}
