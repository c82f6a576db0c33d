//! Flows that start one after the other: the last one's estimate of the path's RTT, and its goodput
//! (claim D16 of McCullagh 2008).

use cwnd_tables::Records;

use crate::common::{BOTTLENECK, at, column, jain, run};

/// First lines of a table of [`latecomer_result`].
pub const HEAD: &str = "# Flows one after the other, 10 s apart, 10 Mbit/s, 50 ms; \
                        two minutes after all came. Mean queue in packets, goodput\n\
                        # of the last in shares of the first's, \
                        and by how much the last one's minRTT is wrong, in ms.\n\
                        controller          flows  queue utilisation drops jain last/first  \
                        error\n";

/// Results of flows that start one after the other.
pub struct LatecomerResult {
    /// Row of the table.
    pub row: String,
    /// Goodput of the last flow relative to the first.
    pub ratio: f64,
    /// Error of each flow's minRTT, ms.
    pub errors: Vec<f64>,
}

/// Runs flows over 10 Mbit/s that start ten seconds apart. Results count for two minutes, from 70 s
/// after the last start on.
pub fn staggered_starts(flows: u32, controller: &str) -> Records {
    run(&format!(
        r#"
        [run]
        duration = "{} s"
        warmup = "{} s"
        sample = "10 s"
        [dumbbell]
        rate = "10 Mbit/s"
        queue = {{ kind = "fifo", limit = "2000 packets" }}
        [flow.main]
        rtt = "50 ms"
        count = {flows}
        spacing = "10 s"
        controller = {controller}
        endpoint = {{ ack_every = 1, clock = "1 us" }}
        "#,
        10 * flows + 180,
        10 * flows + 60,
    ))
}

/// Returns the mean queueing delay in packets of 1500 B at 10 Mbit/s.
pub fn queued(records: &Records) -> f64 {
    at(&records.links, BOTTLENECK, "qdelay_mean_us") / 1.2e3
}

/// Returns the results of flows that ran [`staggered_starts`].
pub fn latecomer_result(name: &str, flows: u32, records: &Records) -> LatecomerResult {
    let goodputs = column(&records.flows, "goodput_bit_s");
    let ratio = goodputs[goodputs.len() - 1] / goodputs[0];
    let found = column(&records.flows, "min_rtt_us");
    let base = column(&records.flows, "rtt_base_us");
    let errors: Vec<f64> = found.iter().zip(&base).map(|(f, b)| (f - b) / 1e3).collect();
    let row = format!(
        "{name:19} {flows:5} {:6.1} {:11.3} {:5} {:.2} {ratio:10.2} {:6.1}\n",
        queued(records),
        at(&records.links, BOTTLENECK, "utilisation"),
        at(&records.links, BOTTLENECK, "dropped_total_pkts"),
        jain(&goodputs),
        errors[errors.len() - 1],
    );
    LatecomerResult { row, ratio, errors }
}
