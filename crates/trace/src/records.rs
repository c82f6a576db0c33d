use crate::table::{Digest, Table};

/// All that a run gives.
#[derive(Clone, Debug)]
pub struct Records {
    /// A row for each flow.
    pub flows: Table,
    /// A row for each link.
    pub links: Table,
    /// Flows over time.
    pub flow_series: Table,
    /// Links over time.
    pub link_series: Table,
    /// Distribution of the queueing delay of each link.
    pub qdelay: Table,
    /// How often each mechanism acted, over the whole run.
    pub activity: Vec<(&'static str, u64)>,
    /// Events taken.
    pub events: u64,
    /// Data segments that reached their receiver.
    pub delivered_data_packets: u64,
}

impl Records {
    /// A digest of all tables and of the activity: equal for equal runs.
    #[must_use]
    pub fn digest(&self) -> String {
        let mut digest = Digest::default();
        for table in [&self.flows, &self.links, &self.flow_series, &self.link_series, &self.qdelay]
        {
            digest.table(table);
        }
        for (name, count) in &self.activity {
            digest.bytes(name.as_bytes());
            digest.bytes(&count.to_le_bytes());
        }
        digest.hex()
    }
}
