//! Flows with explicit feedback over a dumbbell with a buffer of one BDP.

use cwnd_tables::Records;

use crate::common::{BOTTLENECK, at, column, jain, run};

/// Meter, controller and endpoint of a scheme, as a scenario names them.
pub struct ExplicitFeedback<'a> {
    pub name: &'static str,
    pub meter: &'a str,
    pub controller: &'static str,
    pub endpoint: &'static str,
}

impl ExplicitFeedback<'_> {
    /// Runs groups of flows over a link of this rate; `rtt_ms` sizes its buffer, and the times are
    /// in s.
    pub fn dumbbell(
        &self,
        mbit: u32,
        rtt_ms: u32,
        [warmup, seconds]: [u32; 2],
        groups: &str,
    ) -> Records {
        run(&format!(
            r#"
            [run]
            duration = "{seconds} s"
            warmup = "{warmup} s"
            sample = "80 ms"
            [dumbbell]
            rate = "{mbit} Mbit/s"
            queue = {{ kind = "fifo", limit = "1 BDP" }}
            bdp_rtt = "{rtt_ms} ms"
            meter = {}
            {groups}
            "#,
            self.meter
        ))
    }

    /// Writes a group of flows.
    pub fn flows(&self, name: &str, count: u32, rtt_ms: u32, more: &str) -> String {
        format!(
            r#"
            [flow.{name}]
            rtt = "{rtt_ms} ms"
            count = {count}
            controller = {}
            endpoint = {}
            {more}
            "#,
            self.controller, self.endpoint
        )
    }

    /// Returns a table over links of several rates, round trips and numbers of flows. `holds`
    /// checks each run: its arguments are a reader of the bottleneck's columns, and Jain's index.
    pub fn links(&self, holds: impl Fn(&dyn Fn(&str) -> f64, f64)) -> String {
        let mut table = format!(
            "# {} after half a minute: a link's use, what waits in packets of 1500 B, losses, \
             Jain's index.\nMbit/s  RTT ms  flows  utilisation  queue  drops  jain\n",
            self.name
        );
        for (mbit, rtt_ms, count) in LINKS {
            let groups = self.flows("main", count, rtt_ms, "start = \"uniform(0 s, 1 s)\"");
            let records = self.dumbbell(mbit, rtt_ms, [30, 60], &groups);
            let link = |name: &str| at(&records.links, BOTTLENECK, name);
            let jain = jain(&column(&records.flows, "goodput_bit_s"));
            let queue = link("qlen_mean_bytes") / 1500.0;
            table += &format!(
                "{mbit:6} {rtt_ms:7} {count:6} {:12.3} {queue:6.1} {:6} {jain:5.3}\n",
                link("utilisation"),
                link("dropped_total_pkts"),
            );
            holds(&link, jain);
        }
        table
    }
}

/// Rate in Mbit/s, round trip in ms, number of flows.
const LINKS: [(u32, u32, u32); 7] = [
    (10, 20, 1),
    (10, 20, 30),
    (10, 80, 5),
    (10, 400, 5),
    (45, 80, 30),
    (155, 20, 5),
    (155, 80, 100),
];
