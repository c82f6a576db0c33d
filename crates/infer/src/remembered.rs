//! Metrics that Linux keeps of a client from one connection to the next (`tcp_metrics`): its
//! timeout before the first data are acknowledged follows them if it was longer than the handshake
//! took.

use std::collections::BTreeMap;
use std::net::IpAddr;

use cwnd_quantity::{Duration, Time};

use crate::connection::{End, Summary};

/// What is added to a round-trip time at least (`TCP_RTO_MIN`).
const LEAST: Duration = Duration::from_millis(200);

/// Puts into the silences what their server remembered: what the connections of the same two hosts ended with before.
pub fn recall<'a>(summaries: impl Iterator<Item = &'a mut Summary>) {
    let mut all: Vec<&mut Summary> = summaries.collect();
    let mut moments: Vec<(Time, bool, usize)> = Vec::new();
    for (number, summary) in all.iter().enumerate() {
        moments.push((summary.shaken, true, number));
        if summary.end == End::Closed {
            moments.push((summary.last, false, number));
        }
    }
    moments.sort_unstable();
    let mut known: BTreeMap<(IpAddr, IpAddr), Duration> = BTreeMap::new();
    for (_, begins, number) in moments {
        let summary = &mut *all[number];
        let hosts = (summary.server.address(), summary.client.address());
        let server = &mut summary.halves[1];
        if begins {
            let Some(&round) = known.get(&hosts) else { continue };
            for event in server.events.iter_mut().filter(|event| event.linux.first) {
                if round > event.linux.smoothed {
                    event.linux.timeout = round + (round * 2).max(LEAST);
                }
            }
        } else if server.smoothed > Duration::ZERO {
            // It follows what is longer at once, and what is shorter by an eighth (`tcp_update_metrics`).
            let round = known.entry(hosts).or_default();
            *round = if server.smoothed > *round {
                server.smoothed
            } else {
                *round - (*round - server.smoothed) / 8
            };
        }
    }
}
