//! The tables of a run. Column names follow Linux `tcp_info` where it has one, with the unit at the end.

use crate::record::record;
use crate::table::Name;

record! {
    /// A flow at the end of a run. Unless said otherwise a count is taken after the warm-up.
    row FlowRow
    /// All flows.
    table Flows
    {
        /// Number of the flow, in order of creation.
        flow_id: u32,
        /// Group it belongs to.
        group: Name,
        /// Its congestion controller; `none` if it sends datagrams.
        controller: Name,
        /// When it started, s since the start of the run.
        start_s: f64,
        /// How long it was counted, s: from its start or the end of the warm-up, to its end or that of the run.
        duration_s: f64,
        /// Payload handed to the receiving application, bit/s.
        goodput_bit_s: f64,
        /// Arrived at the receiver, headers and duplicates included, bit/s.
        throughput_bit_s: f64,
        /// Payload handed to the receiving application, bytes.
        delivered_bytes: u64,
        /// Payload handed to the receiving application in the whole run, warm-up included, bytes.
        bytes_received: u64,
        /// Propagation round-trip time of its path, µs.
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
        /// Data segments sent, retransmissions included; or datagrams.
        segments_sent: u64,
        /// Data segments sent again.
        retrans: u64,
        /// Share of the data segments sent that had to be sent again.
        loss_ratio: f64,
        /// Share of the data segments received that carried CE.
        ce_ratio: f64,
        /// Data segments received with CE.
        ce_received: u64,
        /// Expiries of the retransmission timer.
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
        /// Window reductions for a timeout.
        cwnd_reductions_rto: u64,
        /// Bytes it was to transfer; null when without end.
        size_bytes: Option<u64>,
        /// From its start to the last byte's delivery, s; null when without end or not finished.
        fct_s: Option<f64>,
    }
    rare
    {
        /// Expiries of the timer of a SYN, at whichever end opens the connection.
        rto_syn: u64,
        /// Expiries of the timer of a request, at a client that opens the connection.
        rto_request: u64,
        /// Expiries, of SYNs and requests too, whose segment was still on its way or in a queue: the timeout was shorter than the round trip.
        rto_under_way: u64,
        /// Expiries whose segment had arrived, and no ACK of it was lost: the timeout was shorter than the round trip.
        rto_ack_late: u64,
        /// Expiries whose segment had arrived, and an ACK of it was lost.
        rto_ack_lost: u64,
        /// Data segments received that brought nothing new.
        duplicates: u64,
        /// Where the connection was given up: at its SYN, at data, or not.
        gave_up: Name,
        /// Source quenches that reached its sender and were believed.
        quenches: u64,
        /// Source quenches that its sender did not believe: what they quote was not outstanding, or too many had been wrong.
        quenches_refused: u64,
        /// Window reductions for a source quench.
        cwnd_reductions_quench: u64,
        /// Mean queueing delay as its sender saw it, µs: its round-trip times less the least of them; null unless that was noted.
        qdelay_seen_us: Option<f64>,
        /// Mean of what its data packets took on their way beyond propagation and transmission, µs; null unless that was noted.
        qdelay_true_us: Option<f64>,
        /// Window reductions because packets waited too long.
        cwnd_reductions_delay: u64,
        /// What its controller took for the round trip without queues at the end, µs; null where it does not act by that.
        min_rtt_us: Option<f64>,
        /// Echoes of timestamps that its sender never sent, whole run.
        forged_echoes: u64,
    }
}

record! {
    /// A link at the end of a run. A count is taken after the warm-up, one that ends in `_total_pkts` over the whole run.
    row LinkRow
    /// All links.
    table Links
    {
        /// Number of the link, in the order of the scenario.
        link_id: u32,
        /// Its name.
        link: Name,
        /// Its mean rate, bit/s; null when unlimited.
        rate_bit_s: Option<f64>,
        /// Share of the rate that was used.
        utilisation: Option<f64>,
        /// Mean queueing delay of the packets sent: from arrival to the start of transmission, µs.
        qdelay_mean_us: Option<f64>,
        /// Median queueing delay, µs.
        qdelay_p50_us: Option<f64>,
        /// 90th percentile of the queueing delay, µs.
        qdelay_p90_us: Option<f64>,
        /// 99th percentile of the queueing delay, µs.
        qdelay_p99_us: Option<f64>,
        /// Largest queueing delay, µs.
        qdelay_max_us: Option<f64>,
        /// Mean number of packets waiting.
        qlen_mean_pkts: f64,
        /// Mean bytes waiting.
        qlen_mean_bytes: f64,
        /// Packets that came to the link.
        arrived_pkts: u64,
        /// Packets that left it.
        delivered_pkts: u64,
        /// Data packets (with payload) that left it.
        delivered_data_pkts: u64,
        /// Packets dropped.
        dropped_pkts: u64,
        /// Packets marked CE.
        marked_pkts: u64,
        /// Packets waiting or being sent at the end.
        queued_pkts: u64,
        /// Share of the packets that came and were dropped.
        drop_ratio: f64,
        /// Share of the packets that came and were marked.
        mark_ratio: f64,
        /// Packets that came to the link, whole run.
        arrived_total_pkts: u64,
        /// Packets that left it, whole run.
        delivered_total_pkts: u64,
        /// Packets dropped, whole run.
        dropped_total_pkts: u64,
        /// Packets marked, whole run.
        marked_total_pkts: u64,
    }
    rare
    {
        /// Dead packets: they left it, and were dropped or lost later on their way.
        dead_pkts: u64,
        /// Their bytes.
        dead_bytes: u64,
        /// Data packets that left it and brought their receiver nothing new.
        duplicate_pkts: u64,
        /// Source quenches that its router sent about packets of its queue, whole run.
        quenches_total_pkts: u64,
    }
}

record! {
    /// Packets of a link that were dropped, or marked CE, for one reason.
    row ReasonRow
    /// Drops and marks of all links by reason; reasons that never occurred have no row.
    table Reasons
    {
        /// Number of the link.
        link_id: u32,
        /// Its name.
        link: Name,
        /// `dropped` or `marked`.
        verdict: Name,
        /// Name that the mechanism has for it: `overlimit`, `codel`, `red_early`.
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
    /// Flows over time. Datagrams have no window and are not among them.
    table FlowSamples
    {
        /// Time since the start of the run, s.
        time_s: f64,
        /// Number of the flow.
        flow_id: u32,
        /// Its group.
        group: Name,
        /// Congestion window, segments.
        snd_cwnd_pkts: f64,
        /// Slow-start threshold, segments; null when infinite.
        snd_ssthresh_pkts: Option<f64>,
        /// Payload presumed in the network, bytes.
        bytes_in_flight: u64,
        /// Smoothed RTT, µs.
        srtt_us: Option<f64>,
        /// RTT variation, µs.
        rttvar_us: Option<f64>,
        /// Retransmission timeout with its backoff, µs.
        rto_us: f64,
        /// Payload handed to the receiving application so far, bytes.
        delivered: u64,
        /// Segments sent again so far.
        retrans: u64,
        /// Open, Cwr, Recovery or Loss.
        ca_state: Name,
    }
    rare
    {
        /// Source quenches that its sender believed, so far.
        quenches: u64,
        /// Source quenches that its sender did not believe, so far.
        quenches_refused: u64,
        /// Newest RTT that its controller saw, µs; null unless that is noted.
        rtt_seen_us: Option<f64>,
        /// What its controller takes for the round trip without queues, µs; null where it does not act by that.
        min_rtt_us: Option<f64>,
        /// f̂, the load factor that its controller knows of: of the most loaded link; null where routers tell none.
        load_factor_seen: Option<f64>,
        /// Rate that routers offered it last, bit/s; null where they offer none.
        offered_bit_s: Option<f64>,
        /// H_feedback: by how much the newest ACK's feedback changed its window, bytes; null where there is none.
        feedback_bytes: Option<f64>,
    }
}

record! {
    /// A link at one instant.
    row LinkSampleRow
    /// Links over time.
    table LinkSamples
    {
        /// Time since the start of the run, s.
        time_s: f64,
        /// Number of the link.
        link_id: u32,
        /// Its name.
        link: Name,
        /// Packets waiting.
        qlen_pkts: u64,
        /// Bytes waiting.
        qlen_bytes: u64,
        /// Queueing delay of the last packet sent, µs; null before the first.
        sojourn_us: Option<f64>,
        /// Packets that came, so far.
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
        /// f: its load factor in the last interval in which its router measured; null where none does.
        load_factor: Option<f64>,
        /// R: the rate that its router offers each flow, bit/s; null where it offers none.
        offered_bit_s: Option<f64>,
        /// φ / d: by how much the rates of all flows together shall change in an interval of its router's control, bit/s; null where it has none.
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
        /// Its name.
        link: Name,
        /// Lower edge of the bucket, µs.
        qdelay_us: f64,
        /// Packets in it.
        packets: u64,
    }
}

record! {
    /// A request on a connection that its client opened, and its response. Those that were sent before the end of the warm-up
    /// are not here.
    row RequestRow
    /// Requests.
    table Requests
    {
        /// Number of its flow.
        flow_id: u32,
        /// Group of the flow.
        group: Name,
        /// Number of the request on its connection; the first is 1.
        request: u32,
        /// When it was sent, s since the start of the run; for the first one, when the SYN was.
        start_s: f64,
        /// Its size, bytes.
        request_bytes: u64,
        /// Bytes of the response that the client has.
        response_bytes: u64,
        /// From then to the last byte of the response at the client, s; null if that never came.
        response_s: Option<f64>,
        /// From then to the last acknowledgement of the response at the server, s: the time of an object as servers see it; null if that never
        /// came.
        acked_s: Option<f64>,
        /// SYNs of its connection that timed out; of the first request only.
        syn_timeouts: u64,
        /// Expiries of the client's retransmission timer on its connection so far, SYNs apart.
        request_timeouts: u64,
        /// What became of it: `answered`; `open` when the run ended; `rejected` after SYN after SYN was lost; `given-up` later.
        outcome: Name,
    }
}

record! {
    /// A bucket of durations: of a scenario that asks not to have a row for each request, or for each flow that arrives, all of them
    /// are counted here, those with a row, too.
    row SketchRow
    /// Distributions of what need not have a row. The middle of a bucket is at most 0.4 % from what is in it.
    table Sketches
    {
        /// Group of the flows.
        group: Name,
        /// What lasted so long: `answered`, response times of requests; `open`, `rejected` and `given-up`, how long others were waited for;
        /// `completed`, completion times of flows.
        what: Name,
        /// Where the bucket begins, s.
        from_s: f64,
        /// Where the next begins, s.
        to_s: f64,
        /// How many are in it.
        count: u64,
        /// All of them together, s.
        sum_s: f64,
        /// The longest, s.
        longest_s: f64,
    }
}

record! {
    /// Flows of a group that arrived and have no row, all together. Unless said otherwise sums of the columns of flows.
    row UnrecordedRow
    /// What flows without a row came to.
    table Unrecorded
    {
        /// Group they belong to.
        group: Name,
        /// How many there are.
        flows: u64,
        /// How many began after the warm-up.
        began: u64,
        /// Goodputs, each over the time of its flow, bit/s.
        goodput_bit_s: f64,
        /// Throughputs, each over the time of its flow, bit/s.
        throughput_bit_s: f64,
        /// Payload handed to the receiving applications, bytes.
        delivered_bytes: u64,
        /// Payload handed to the receiving applications in the whole run, warm-up included, bytes.
        bytes_received: u64,
        /// Arrived at the receivers, headers and duplicates included, bits.
        wire_bits: f64,
        /// Flows with a round-trip time.
        flows_with_rtt: u64,
        /// Their medians, µs.
        rtt_p50_us: f64,
        /// Their 95th percentiles, µs.
        rtt_p95_us: f64,
        /// Data segments sent, retransmissions included.
        segments_sent: u64,
        /// Data segments sent again.
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
        /// Window reductions because packets waited too long.
        cwnd_reductions_delay: u64,
        /// Expiries whose segment was still on its way or in a queue.
        rto_under_way: u64,
        /// Data segments received that brought nothing new.
        duplicates: u64,
        /// Connections that were given up at their SYN.
        gave_up_at_syn: u64,
        /// Connections that were given up at data.
        gave_up_at_data: u64,
        /// Flows that were to transfer a number of bytes.
        sized: u64,
        /// Bytes that those were to transfer that began after the warm-up.
        offered_bytes: u64,
        /// Segments of these.
        offered_segments: u64,
        /// Flows that finished.
        completed: u64,
        /// Their completion times, s.
        fct_s: f64,
    }
}

impl Requests {
    /// How many there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.acked_s.len()
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All of the response of this request was acknowledged so long after it was sent.
    pub fn acknowledged(&mut self, row: usize, after_s: f64) {
        self.acked_s.fill_in(row, after_s);
    }
}
