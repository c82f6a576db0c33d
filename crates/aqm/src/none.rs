//! Parameters of a link without a meter or without a messenger, the default of a scenario.

use cwnd_packet::{Contract, HasContract};
use cwnd_schema::Schema;

/// Empty parameters.
#[derive(Clone, Debug, PartialEq, Schema)]
pub struct Params {}

impl HasContract for Params {
    fn contract(&self) -> Contract {
        Contract::new()
    }
}
