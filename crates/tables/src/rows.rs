//! Rows of the tables of a run. Column names follow Linux `tcp_info` where it has them, with the
//! unit at the end.

use crate::histogram::Buckets;
use crate::table::Name;
use crate::values::record;

record! {
    /// A flow at the end of a run. Counts exclude the warm-up unless stated otherwise.
    row FlowRow
    /// Rows of all flows.
    table Flows
    {
        /// Number of the flow, in order of creation.
        flow_id: u32,
        /// Group of the flow.
        group: Name,
        /// Congestion controller of the flow; `none` for datagrams.
        controller: Name,
        /// Time at which it started, s since the start of the run.
        start_s: f64,
        /// Time over which it was counted, s: from its start, or the end of the warm-up if that is
        /// later, to its end or that of the run.
        duration_s: f64,
        /// Goodput: payload delivered to the receiving application, bit/s.
        goodput_bit_s: f64,
        /// Throughput: bytes that arrived at the receiver, headers and duplicates included, bit/s.
        throughput_bit_s: f64,
        /// Payload delivered to the receiving application, bytes.
        delivered_bytes: u64,
        /// Payload delivered to the receiving application in the whole run, warm-up included,
        /// bytes.
        bytes_received: u64,
        /// Propagation round-trip time of its path and hosts, µs.
        rtt_base_us: f64,
        /// Smallest measured RTT, µs.
        rtt_min_us: Option<f64>,
        /// Mean measured RTT, µs.
        rtt_mean_us: Option<f64>,
        /// Median measured RTT, µs.
        rtt_p50_us: Option<f64>,
        /// 95th percentile of the measured RTT, µs.
        rtt_p95_us: Option<f64>,
        /// 99th percentile of the measured RTT, µs.
        rtt_p99_us: Option<f64>,
        /// Data segments sent, retransmissions included; for datagrams, datagrams sent.
        segments_sent: u64,
        /// Data segments retransmitted.
        retrans: u64,
        /// Share of retransmissions among the data segments sent.
        loss_ratio: f64,
        /// Share of segments with CE among the data segments received.
        ce_ratio: f64,
        /// Data segments received with CE.
        ce_received: u64,
        /// Expiries of the retransmission timer of data; PTOs of QUIC.
        rto_count: u64,
        /// Expiries that were the first in a row.
        rto_nth_1: u64,
        /// Expiries that were the second in a row.
        rto_nth_2: u64,
        /// Expiries that were the third in a row.
        rto_nth_3: u64,
        /// Expiries that were the fourth in a row.
        rto_nth_4: u64,
        /// Expiries that were the fifth in a row or later.
        rto_nth_5_plus: u64,
        /// Window reductions for a loss.
        cwnd_reductions_loss: u64,
        /// Window reductions for an ECN-echo.
        cwnd_reductions_ecn: u64,
        /// Window reductions for a timeout; for persistent congestion of QUIC.
        cwnd_reductions_rto: u64,
        /// Size of its transfer, bytes; null without end.
        size_bytes: Option<u64>,
        /// Flow completion time: from its start to the delivery of the last byte, s; null if it did
        /// not finish or has no end.
        fct_s: Option<f64>,
    }
    rare
    {
        /// Expiries of the retransmission timer of a SYN, at the end that opens the connection.
        rto_syn: u64,
        /// Expiries of the retransmission timer of a request, at a client that opens the
        /// connection.
        rto_request: u64,
        /// Expiries, of SYNs and requests too, whose segment was still on its way or in a queue:
        /// the timeout was shorter than the round trip.
        rto_under_way: u64,
        /// Expiries whose segment had arrived, and no ACK of it was lost: the timeout was shorter
        /// than the round trip.
        rto_ack_late: u64,
        /// Expiries whose segment had arrived, and an ACK of it was lost.
        rto_ack_lost: u64,
        /// Data segments received without new data.
        duplicates: u64,
        /// Phase in which the connection was given up: `no`, `syn` or `data`.
        gave_up: Name,
        /// Source quenches that its sender accepted.
        quenches: u64,
        /// Source quenches that its sender refused: the quoted data was not outstanding, or too
        /// many had been wrong.
        quenches_refused: u64,
        /// Window reductions for a source quench.
        cwnd_reductions_quench: u64,
        /// Mean queueing delay as its sender measured it, µs: its RTTs less the least of them; null
        /// unless recorded.
        qdelay_seen_us: Option<f64>,
        /// Mean delay of its data packets beyond propagation and transmission, µs; null unless
        /// recorded.
        qdelay_true_us: Option<f64>,
        /// Window reductions for queueing delay.
        cwnd_reductions_delay: u64,
        /// Final estimate of the RTT without queueing in its controller, µs; null for controllers
        /// without one.
        min_rtt_us: Option<f64>,
        /// Echoes of timestamps that its sender never sent, whole run.
        forged_echoes: u64,
        /// Share lost of the datagrams up to the last that arrived; null if that is not known.
        lost_ratio: Option<f64>,
    }
}

record! {
    /// A link at the end of a run. Counts exclude the warm-up, except those that end in
    /// `_total_pkts`.
    row LinkRow
    /// Rows of all links.
    table Links
    {
        /// Number of the link, in the order of the scenario.
        link_id: u32,
        /// Name of the link.
        link: Name,
        /// Mean rate of the link, bit/s; null if unlimited.
        rate_bit_s: Option<f64>,
        /// Share of the rate that was used; null if unlimited.
        utilisation: Option<f64>,
        /// Mean queueing delay of the packets sent: from arrival to the start of transmission, or
        /// to the device below the queue, µs.
        qdelay_mean_us: Option<f64>,
        /// Median queueing delay, µs.
        qdelay_p50_us: Option<f64>,
        /// 90th percentile of the queueing delay, µs.
        qdelay_p90_us: Option<f64>,
        /// 95th percentile of the queueing delay, µs.
        qdelay_p95_us: Option<f64>,
        /// 99th percentile of the queueing delay, µs.
        qdelay_p99_us: Option<f64>,
        /// Largest queueing delay, µs.
        qdelay_max_us: Option<f64>,
        /// Mean number of packets waiting.
        qlen_mean_pkts: f64,
        /// Mean bytes waiting.
        qlen_mean_bytes: f64,
        /// Packets that arrived at the link.
        arrived_pkts: u64,
        /// Packets that left the link.
        delivered_pkts: u64,
        /// Data packets (with payload) that left the link.
        delivered_data_pkts: u64,
        /// Packets that the queue dropped or the link lost.
        dropped_pkts: u64,
        /// Packets marked CE.
        marked_pkts: u64,
        /// Packets waiting, in the device below the queue or in transmission at the end.
        queued_pkts: u64,
        /// Share of the arrived packets that were dropped.
        drop_ratio: f64,
        /// Share of the arrived packets that were marked.
        mark_ratio: f64,
        /// Packets that arrived at the link, whole run.
        arrived_total_pkts: u64,
        /// Packets that left the link, whole run.
        delivered_total_pkts: u64,
        /// Packets dropped, whole run.
        dropped_total_pkts: u64,
        /// Packets marked, whole run.
        marked_total_pkts: u64,
    }
    rare
    {
        /// Dead packets: they left the link, and were dropped or lost later on their path.
        dead_pkts: u64,
        /// Bytes of the dead packets.
        dead_bytes: u64,
        /// Data packets that left the link and brought their receiver no new data.
        duplicate_pkts: u64,
        /// Source quenches that its router sent about packets of its queue, whole run.
        quenches_total_pkts: u64,
    }
}

record! {
    /// Packets that a link dropped, lost or marked CE, for one reason.
    row ReasonRow
    /// Drops and marks of all links by reason; reasons that never occurred have no row.
    table Reasons
    {
        /// Number of the link.
        link_id: u32,
        /// Name of the link.
        link: Name,
        /// `dropped` or `marked`.
        verdict: Name,
        /// Name of the reason in the mechanism: `overlimit`, `codel`, `red_early`.
        reason: Name,
        /// Packets after the warm-up.
        packets: u64,
        /// Packets in the whole run.
        total_packets: u64,
    }
}

record! {
    /// A flow at one instant.
    row FlowSampleRow
    /// Time series of flows. Datagrams have no window and no rows.
    table FlowSamples
    {
        /// Time since the start of the run, s.
        time_s: f64,
        /// Number of the flow.
        flow_id: u32,
        /// Group of the flow.
        group: Name,
        /// Congestion window, segments.
        snd_cwnd_pkts: f64,
        /// Slow-start threshold, segments; null when infinite.
        snd_ssthresh_pkts: Option<f64>,
        /// Outstanding payload that is presumed in the network, bytes; of QUIC with headers.
        bytes_in_flight: u64,
        /// Smoothed RTT, µs.
        srtt_us: Option<f64>,
        /// RTT variation, µs.
        rttvar_us: Option<f64>,
        /// Retransmission timeout with its backoff, µs; of QUIC the PTO without backoff.
        rto_us: f64,
        /// Payload delivered to the receiving application so far, bytes.
        delivered: u64,
        /// Segments retransmitted so far.
        retrans: u64,
        /// State of the sender: Open, Cwr, Recovery or Loss.
        ca_state: Name,
    }
    rare
    {
        /// Source quenches that its sender accepted, so far.
        quenches: u64,
        /// Source quenches that its sender refused, so far.
        quenches_refused: u64,
        /// Newest RTT sample of its controller, µs; null unless recorded.
        rtt_seen_us: Option<f64>,
        /// Estimate of the RTT without queueing in its controller, µs; null for controllers without
        /// one.
        min_rtt_us: Option<f64>,
        /// f̂: load factor of the most loaded link as its controller knows it; null without
        /// feedback of load factors.
        load_factor_seen: Option<f64>,
        /// Last rate that routers offered it, bit/s; null if they offer none.
        offered_bit_s: Option<f64>,
        /// H_feedback: change of its window by the newest ACK's feedback, bytes; null without such
        /// feedback.
        feedback_bytes: Option<f64>,
    }
}

record! {
    /// A link at one instant.
    row LinkSampleRow
    /// Time series of links.
    table LinkSamples
    {
        /// Time since the start of the run, s.
        time_s: f64,
        /// Number of the link.
        link_id: u32,
        /// Name of the link.
        link: Name,
        /// Packets waiting.
        qlen_pkts: u64,
        /// Bytes waiting.
        qlen_bytes: u64,
        /// Queueing delay of the last packet sent, µs; null before the first.
        sojourn_us: Option<f64>,
        /// Packets that arrived, so far.
        enq: u64,
        /// Packets that left, so far.
        deq: u64,
        /// Packets dropped, so far.
        drop: u64,
        /// Packets marked, so far.
        mark: u64,
        /// Drop or mark probability; null where the discipline has none.
        aqm_prob: Option<f64>,
    }
    rare
    {
        /// Source quenches that its router sent about packets of its queue, so far.
        quenches: u64,
        /// Bytes that left, so far; only routers of real packets record them.
        sent_bytes: Option<u64>,
        /// Bytes that could have left at its rate, so far; only routers of real packets record
        /// them, where the line has a rate.
        capacity_bytes: Option<u64>,
        /// f: load factor in its router's last measuring interval; null if its router measures
        /// none.
        load_factor: Option<f64>,
        /// R: rate that its router offers each flow, bit/s; null if it offers none.
        offered_bit_s: Option<f64>,
        /// φ / d: aggregate change of the flows' rates in a control interval of its router, bit/s;
        /// null without such control.
        feedback_bit_s: Option<f64>,
    }
}

record! {
    /// A bucket of a link's queueing delay.
    row QueueDelayRow
    /// Distribution of the queueing delay after the warm-up.
    table QueueDelays
    {
        /// Number of the link.
        link_id: u32,
        /// Name of the link.
        link: Name,
        /// Lower edge of the bucket, µs.
        qdelay_us: f64,
        /// Packets in the bucket.
        packets: u64,
    }
}

record! {
    /// A packet on its way. Times are those of the run, ns; null if it has not come to that.
    row PacketRow
    /// Packets of a run, with their passage through one link.
    table Packets
    {
        /// Number of its flow.
        flow_id: u32,
        /// Kind of packet: `data`, `ack` or `quench`.
        kind: Name,
        /// Bytes on the wire, headers included.
        wire_bytes: u32,
        /// 1 if its data was sent before.
        again: u32,
        /// 1 if it echoes CE: by ECN-echo, by the newest code point, or by a larger count of CE.
        echo: u32,
        /// Time at which its host, or the router, sent it.
        sent_ns: u64,
        /// Arrival at the link's queue; of a quench, its sending by the router of that queue.
        arrived_ns: Option<u64>,
        /// End of its transmission by the link.
        left_ns: Option<u64>,
        /// Arrival at its host, or loss.
        ended_ns: Option<u64>,
        /// Time since which it is known to have CE: its mark by the link, or the arrival there or
        /// at its host after a mark elsewhere.
        ce_ns: Option<u64>,
        /// Reason for which the link marked it; empty if it did not.
        marked: Name,
        /// Reason for which a queue or link lost it; empty if none did.
        lost: Name,
    }
}

record! {
    /// A bucket of a delay of a group's data packets.
    row DelayRow
    /// Distributions of delays by group after the warm-up. The middle of a bucket is within 0.4 %
    /// of its delays.
    table Delays
    {
        /// Group of the flows.
        group: Name,
        /// Kind of delay. `queueing`: sum of the sojourn times of a data packet in all queues on
        /// its path. `jitter`: absolute difference in transit time to the data packet of its flow
        /// that arrived before it (RFC 3550 § 6.4.1). `round_trip`: an RTT less that of
        /// propagation.
        what: Name,
        /// Middle of the bucket, µs.
        delay_us: f64,
        /// Packets in the bucket; of `round_trip`, RTTs.
        packets: u64,
    }
}

record! {
    /// A request on a connection that its client opened, and its response; only requests sent after
    /// the warm-up.
    row RequestRow
    /// Rows of requests.
    table Requests
    {
        /// Number of its flow.
        flow_id: u32,
        /// Group of the flow.
        group: Name,
        /// Number of the request on its connection; the first is 1.
        request: u32,
        /// Time at which it was written, s since the start of the run; for the first one, when the
        /// SYN was sent.
        start_s: f64,
        /// Size of the request, bytes.
        request_bytes: u64,
        /// Bytes of the response that arrived at the client.
        response_bytes: u64,
        /// Time from its start to the last byte of the response at the client, s; null if that
        /// never arrived.
        response_s: Option<f64>,
        /// Time from its start to the last acknowledgement of the response at the server, s, as
        /// servers see it; null if that never arrived.
        acked_s: Option<f64>,
        /// SYN timeouts of its connection; only for the first request.
        syn_timeouts: u64,
        /// Expiries of the client's retransmission timer on its connection so far, except for SYNs.
        request_timeouts: u64,
        /// Outcome: `answered`; `open` at the end of the run; `rejected` if all SYNs failed;
        /// `given-up` later.
        outcome: Name,
    }
}

record! {
    /// A bucket of durations of requests or flows, in scenarios in which not each request, or not
    /// each arriving flow, has a row. All of them are counted here, also those with a row.
    row SketchRow
    /// Distributions of durations of requests and flows. The middle of a bucket is within 0.4 % of
    /// its durations.
    table Sketches
    {
        /// Group of the flows.
        group: Name,
        /// Kind of duration: `answered`, response times of requests; `open`, `rejected` and
        /// `given-up`, waiting times of others; `completed`, completion times of flows.
        what: Name,
        /// Start of the bucket, s.
        from_s: f64,
        /// Start of the next bucket, s.
        to_s: f64,
        /// Number of durations in the bucket.
        count: u64,
        /// Sum of the durations, s.
        sum_s: f64,
        /// Longest duration, s.
        longest_s: f64,
    }
}

record! {
    /// Sums over the flows of a group that arrived and have no row. Unless stated otherwise, a
    /// column is the sum of the same column of flows.
    row UnrecordedRow
    /// Sums over flows without a row.
    table Unrecorded
    {
        /// Group of the flows.
        group: Name,
        /// Number of the flows.
        flows: u64,
        /// Number of the flows that started at the end of the warm-up or later.
        began: u64,
        /// Sum of goodputs, each over its flow's time, bit/s.
        goodput_bit_s: f64,
        /// Sum of throughputs, each over its flow's time, bit/s.
        throughput_bit_s: f64,
        /// Payload delivered to the receiving applications, bytes.
        delivered_bytes: u64,
        /// Payload delivered to the receiving applications in the whole run, warm-up included,
        /// bytes.
        bytes_received: u64,
        /// Bits that arrived at the receivers, headers and duplicates included.
        wire_bits: f64,
        /// Number of flows with an RTT.
        flows_with_rtt: u64,
        /// Sum of their median RTTs, µs.
        rtt_p50_us: f64,
        /// Sum of their 95th percentiles of the RTT, µs.
        rtt_p95_us: f64,
        /// Data segments sent, retransmissions included.
        segments_sent: u64,
        /// Data segments retransmitted.
        retrans: u64,
        /// Data segments received with CE.
        ce_received: u64,
        /// Expiries of the retransmission timer.
        rto_count: u64,
        /// Window reductions for a loss.
        cwnd_reductions_loss: u64,
        /// Window reductions for an ECN-echo.
        cwnd_reductions_ecn: u64,
        /// Window reductions for a timeout.
        cwnd_reductions_rto: u64,
        /// Window reductions for a source quench.
        cwnd_reductions_quench: u64,
        /// Window reductions for queueing delay.
        cwnd_reductions_delay: u64,
        /// Expiries whose segment was still on its way or in a queue.
        rto_under_way: u64,
        /// Data segments received without new data.
        duplicates: u64,
        /// Number of connections given up at their SYN.
        gave_up_at_syn: u64,
        /// Number of connections given up at data.
        gave_up_at_data: u64,
        /// Number of flows with a size.
        sized: u64,
        /// Sum of the sizes of flows that started at the end of the warm-up or later, bytes.
        offered_bytes: u64,
        /// Full segments that these sizes need.
        offered_segments: u64,
        /// Number of flows that finished.
        completed: u64,
        /// Sum of their completion times, s.
        fct_s: f64,
    }
}

impl Delays {
    /// Labels of [`DelayRow::what`], by value.
    pub const KINDS: [&'static str; 3] = ["queueing", "jitter", "round_trip"];

    /// Adds the rows of a distribution, of a group and a kind by their numbers.
    pub fn add(&mut self, group: u32, what: u32, delays: &Buckets) {
        for (middle, packets) in delays.middles() {
            let delay_us = middle.0 as f64 / 1000.0;
            self.push(DelayRow { group: Name(group), what: Name(what), delay_us, packets });
        }
    }
}

impl Requests {
    /// Number of rows.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.acked_s.len()
    }

    /// `true` if there are no rows.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Sets the time from this row's start to the acknowledgement of its whole response, s.
    pub fn acknowledged(&mut self, row: usize, after_s: f64) {
        self.acked_s.fill_in(row, after_s);
    }
}
