//! Metrics that Linux keeps of a client across connections (`tcp_metrics`). The timeout before the
//! first data are acknowledged follows the kept round-trip time if that is longer than the
//! handshake took.

use std::collections::BTreeMap;
use std::net::IpAddr;

use cwnd_quantity::{Duration, Time};

use crate::connection::{End, Summary};

/// Least amount added to a kept round-trip time (`TCP_RTO_MIN`).
const MIN_RTTVAR: Duration = Duration::from_millis(200);

/// Sets the RTO of first silences by the SRTT that their server kept of closed connections with the
/// same client, if that is longer than their own.
pub fn apply_tcp_metrics<'a>(summaries: impl Iterator<Item = &'a mut Summary>) {
    let mut all: Vec<&mut Summary> = summaries.collect();
    let mut moments: Vec<(Time, bool, usize)> = Vec::new();
    for (number, summary) in all.iter().enumerate() {
        moments.push((summary.handshake_end, true, number));
        if summary.end == End::Closed {
            moments.push((summary.last, false, number));
        }
    }
    moments.sort_unstable();
    let mut known: BTreeMap<(IpAddr, IpAddr), Duration> = BTreeMap::new();
    for (_, begins, number) in moments {
        let summary = &mut *all[number];
        let hosts = (summary.server.address(), summary.client.address());
        let server = &mut summary.directions[1];
        if begins {
            let Some(&round) = known.get(&hosts) else { continue };
            for event in server.events.iter_mut().filter(|event| event.linux.first) {
                if round > event.linux.smoothed {
                    event.linux.timeout = round + (round * 2).max(MIN_RTTVAR);
                }
            }
        } else if server.smoothed > Duration::ZERO {
            // A longer SRTT replaces it at once, a shorter one counts an eighth
            // (`tcp_update_metrics`).
            let round = known.entry(hosts).or_default();
            *round = if server.smoothed > *round {
                server.smoothed
            } else {
                *round - (*round - server.smoothed) / 8
            };
        }
    }
}
