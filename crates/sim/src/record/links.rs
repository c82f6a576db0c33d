//! Rows of links, the counters of the network, and rows of time series: samples of flows and links.

use cwnd_cc::{Controller as _, Phase};
use cwnd_link::{Counters, Line, ReasonTable, Summary};
use cwnd_packet::Guidance;
use cwnd_quantity::Time;
use cwnd_scenario::Scenario;
use cwnd_tables::{FlowSampleRow, Histogram, LinkRow, LinkSampleRow, Links, Name, QueueDelays};
use cwnd_tcp::quic;

use super::{Recorder, micros};
use crate::flow::Flow;
use crate::network::Network;
use crate::pipe::LinkParts;

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
fn link_counters(parts: LinkParts, now: Time, network: &mut Network) -> Counters {
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

impl Recorder {
    /// Records all running flows and all links at one instant.
    pub fn sample(&mut self, now: Time, flows: &[Flow], network: &mut Network) {
        for flow in flows.iter().filter(|f| f.started != Time::NEVER) {
            self.flow_samples.push(flow_sample(now, flow));
        }
        for link in 0..network.links().len() {
            let parts = network.links()[link];
            let counters = link_counters(parts, now, network);
            let quenches = parts.line.map_or(0, |line| network.messages_of(line));
            let line = parts.line.map(|i| &*network.line_mut(i));
            let sample = cwnd_link::sample(link as u32, now, &counters, line);
            self.link_samples.push(LinkSampleRow { quenches, ..sample });
        }
    }
}

fn flow_sample(now: Time, flow: &Flow) -> FlowSampleRow {
    if let Some(quic) = &flow.quic {
        return quic_sample(now, flow, &quic.sender);
    }
    let sender = &flow.data.sender;
    let window = sender.window();
    let estimate = sender.rtt_estimate();
    let mss = sender.mss() as f64;
    let guidance = sender.controller().guidance();
    FlowSampleRow {
        time_s: now.as_secs_f64(),
        flow_id: flow.number,
        group: Name(flow.group),
        snd_cwnd_pkts: window.cwnd as f64 / mss,
        snd_ssthresh_pkts: (window.ssthresh != u64::MAX).then_some(window.ssthresh as f64 / mss),
        bytes_in_flight: sender.in_flight(),
        srtt_us: estimate.map(|(srtt, _)| micros(srtt)),
        rttvar_us: estimate.map(|(_, rttvar)| micros(rttvar)),
        rto_us: micros(sender.current_rto()),
        delivered: flow.data.delivered_bytes(),
        retrans: sender.counters().retransmissions,
        ca_state: Name(match sender.phase() {
            Phase::Open => 0,
            Phase::Cwr => 1,
            Phase::Recovery => 2,
            Phase::Loss => 3,
        }),
        quenches: sender.counters().quenches,
        quenches_refused: sender.counters().quenches_refused,
        rtt_seen_us: sender.delays().and_then(|_| sender.rtt_seen()).map(micros),
        min_rtt_us: sender.controller().min_rtt().map(micros),
        load_factor_seen: match guidance {
            Some(Guidance::Load(factor)) => Some(factor),
            _ => None,
        },
        offered_bit_s: match guidance {
            Some(Guidance::Rate(rate)) => Some(rate.0 as f64),
            _ => None,
        },
        feedback_bytes: match guidance {
            Some(Guidance::Window(bytes)) => Some(f64::from(bytes)),
            _ => None,
        },
    }
}

/// A sample of a sender of QUIC, whose window and packets are counted with their headers.
fn quic_sample(now: Time, flow: &Flow, sender: &quic::Sender) -> FlowSampleRow {
    let (recovery, counters) = (sender.recovery(), sender.counters());
    let (congestion, estimate) = (recovery.congestion(), recovery.rtt_estimate());
    let full = sender.max_datagram_size() as f64;
    let ssthresh = congestion.controller().window().ssthresh;
    FlowSampleRow {
        time_s: now.as_secs_f64(),
        flow_id: flow.number,
        group: Name(flow.group),
        snd_cwnd_pkts: sender.window() as f64 / full,
        snd_ssthresh_pkts: (ssthresh != u64::MAX).then_some(ssthresh as f64 / full),
        bytes_in_flight: recovery.bytes_in_flight(),
        srtt_us: estimate.map(|(srtt, _)| micros(srtt)),
        rttvar_us: estimate.map(|(_, rttvar)| micros(rttvar)),
        rto_us: micros(recovery.probe_timeout()),
        delivered: flow.delivered_bytes(),
        retrans: counters.retransmissions,
        ca_state: Name(if congestion.is_recovering() { 2 } else { 0 }),
        min_rtt_us: congestion.controller().min_rtt().map(micros),
        ..FlowSampleRow::default()
    }
}
