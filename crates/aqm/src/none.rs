//! A link without a meter, or without a messenger: what a scenario has that names none.

use cwnd_quantity::{Contract, Declares, params};

params! {
    /// Nothing.
    pub struct Params {}
}

impl Declares for Params {
    fn contract(&self) -> Contract {
        Contract::new()
    }
}
