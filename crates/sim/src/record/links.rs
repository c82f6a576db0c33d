//! Rows of links, and the counters of the network.

use cwnd_link::{Counters, Line, ReasonTable, Summary};
use cwnd_quantity::Time;
use cwnd_scenario::Scenario;
use cwnd_tables::{Histogram, LinkRow, Links, QueueDelays};

use super::Recorder;
use crate::indices::LinkParts;
use crate::network::Network;

/// The tables of links, with their drops and marks over the whole run.
#[derive(Debug, Default)]
pub(super) struct LinkTables {
    pub(super) rows: Links,
    pub(super) reasons: ReasonTable,
    pub(super) qdelay: QueueDelays,
    pub(super) drops: u64,
    pub(super) marks: u64,
}

impl Recorder {
    /// Starts counting at the end of the warm-up.
    pub fn end_warmup(&mut self, now: Time, network: &mut Network) {
        self.dead_at_warmup_end = network.dead();
        for link in 0..network.links().len() {
            let parts = network.links()[link];
            self.links_at_warmup_end.push(link_counters(parts, now, network));
            if let Some(line) = parts.line {
                network.line_mut(line).begin_counting();
            }
        }
    }

    /// Records all links at the end of the run.
    pub(super) fn links(
        &mut self,
        end: Time,
        scenario: &Scenario,
        network: &mut Network,
    ) -> LinkTables {
        let mut tables = LinkTables::default();
        let no_delays = Histogram::default();
        let dead = network.dead();
        let duplicates = self.duplicates_by_link(scenario);
        let counters = &mut self.totals.named_counters;
        network.count_messengers(&mut |name, count| counters.add(name, count));
        for (i, link) in scenario.links.iter().enumerate() {
            let parts = network.links()[i];
            let total = link_counters(parts, end, network);
            tables.drops += total.drops.total();
            tables.marks += total.marks.total();
            let before = self.links_at_warmup_end.get(i).cloned().unwrap_or_default();
            let quenches = parts.line.map_or(0, |line| network.messages_of(line));
            let line = parts.line.map(|l| &*network.line_mut(l));
            if let Some(line) = line {
                line.count(&mut |name, count| counters.add(name, count));
            }
            let summary = Summary {
                id: i as u32,
                rate: &link.rate,
                from: self.warmup,
                to: end,
                before: &before,
                total: &total,
                qdelay: line.map_or(&no_delays, Line::qdelay),
                queued: line.map_or(0, Line::held),
            };
            let died = dead[i].since(self.dead_at_warmup_end.get(i).copied().unwrap_or_default());
            tables.rows.push(LinkRow {
                dead_pkts: died.packets,
                dead_bytes: died.bytes,
                duplicate_pkts: duplicates[i],
                quenches_total_pkts: quenches,
                ..summary.row()
            });
            counters.add("dead_packets", dead[i].packets);
            tables.reasons.add(&summary);
            summary.qdelay_rows().for_each(|row| tables.qdelay.push(row));
        }
        tables
    }

    /// Adds the counters of middleboxes and of routers' messages to the totals.
    pub(super) fn count_network(&mut self, network: &Network) {
        let counters = &mut self.totals.named_counters;
        let tampered = network.middlebox_counters();
        counters.add("options_removed", tampered.removed);
        counters.add("options_damaged", tampered.damaged);
        let messages = network.messages();
        counters.add("quenches_sent", messages.sent);
        counters.add("quenches_delivered", messages.delivered);
        counters.add("quenches_lost", messages.lost);
        counters.add("quenches_forged", messages.forged);
    }

    /// Duplicates of each link: a duplicate crossed every link of its path.
    fn duplicates_by_link(&self, scenario: &Scenario) -> Vec<u64> {
        let mut links = vec![0; scenario.links.len()];
        for (&(group, path), count) in &self.duplicates {
            let path = &scenario.flows[group as usize].paths[path as usize];
            path.route.iter().for_each(|&link| links[link] += count);
        }
        links
    }
}

/// Counters of a link's queue, line and pipe together.
pub(super) fn link_counters(parts: LinkParts, now: Time, network: &mut Network) -> Counters {
    let pipe = parts.pipe.map(|i| network.pipe(i).counters()).unwrap_or_default();
    let counters = match parts.line {
        Some(line) => network.line_mut(line).counters(now),
        None => Counters {
            arrived: pipe.entered,
            delivered: pipe.entered,
            delivered_data: pipe.entered_data,
            ..Counters::default()
        },
    };
    counters.without(pipe.lost)
}
