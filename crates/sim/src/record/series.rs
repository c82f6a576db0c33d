//! Rows of time series: samples of flows and links.

use cwnd_cc::{Controller as _, Phase};
use cwnd_packet::Guidance;
use cwnd_quantity::Time;
use cwnd_tables::{FlowSampleRow, LinkSampleRow, Name};
use cwnd_tcp::quic;

use super::links::link_counters;
use super::{Recorder, micros};
use crate::flow::Flow;
use crate::network::Network;

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
