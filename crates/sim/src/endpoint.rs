//! Endpoints from outside: whole transport stacks without input and output of their own (sans-IO).
//!
//! [`World::replace_endpoints`](crate::World::replace_endpoints) puts a pair of them in place of
//! each connection of a group. They run in simulated time and exchange UDP datagrams over the
//! flow's path; the simulator carries the payload and the ECN field, and counts.

use core::fmt;

use cwnd_cc::Cause;
use cwnd_packet::Ecn;
use cwnd_quantity::{Duration, Rng, Time};
use cwnd_tcp::{Body, Flags, ReceiverCounters, Segment, SenderCounters};

use crate::connection_ends::{HalfCounters, arm, take};

/// A transport endpoint that does no input or output and reads no clock, such as a connection of
/// quinn-proto with its application.
///
/// After each call of another method, the simulator polls until there is no datagram, and then asks
/// for the timeout. It first polls at the start of the flow.
pub trait Endpoint: Send {
    /// Returns the next datagram to send now; `None` if there is none now.
    fn poll_transmit(&mut self, now: Time) -> Option<Datagram>;

    /// Processes a datagram that arrived.
    fn on_datagram(&mut self, now: Time, datagram: Datagram);

    /// Returns the time of the next timeout; `None` if no timer runs.
    fn next_timeout(&mut self) -> Option<Time>;

    /// Handles the timeouts due now; the next one must then be later.
    fn on_timeout(&mut self, now: Time);

    /// Returns facts that datagrams do not show. Results lack those that are not reported.
    fn report(&self) -> Report {
        Report::default()
    }
}

/// A UDP datagram, and the ECN field of its packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// Payload, at most 65,507 B.
    pub payload: Vec<u8>,
    /// ECN field.
    pub ecn: Ecn,
}

/// Facts about an endpoint, for results. Counts are since the start of the flow and only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Bytes delivered to its application, each once; `None`, from the start on, counts the payload
    /// of all datagrams.
    pub delivered_bytes: Option<u64>,
    /// `true` once its transfer is complete: all data delivered, or acknowledged.
    pub finished: bool,
    /// Estimate of the round-trip time. The flow's RTT samples are its values after each datagram.
    pub rtt: Option<Duration>,
    /// Congestion window, bytes.
    pub cwnd: Option<u64>,
    /// Packets declared lost; retransmissions in results.
    pub lost: u64,
    /// Window reductions after losses.
    pub loss_reductions: u64,
    /// Window reductions after ECN marks.
    pub ecn_reductions: u64,
}

impl Report {
    /// `true` if this report may come after `before`.
    const fn follows(&self, before: &Self) -> bool {
        let delivered = match (before.delivered_bytes, self.delivered_bytes) {
            (Some(before), Some(now)) => before <= now,
            (None, None) => true,
            _ => false,
        };
        delivered
            && before.lost <= self.lost
            && before.loss_reductions <= self.loss_reductions
            && before.ecn_reductions <= self.ecn_reductions
    }
}

/// Facts about a flow from which its endpoints are made.
#[derive(Debug)]
pub struct EndpointStart {
    /// Number of the flow in results.
    pub number: u32,
    /// Bytes to transfer, if the group's workload writes once, at its start; else `None`, as for a
    /// flow without an end.
    pub size: Option<u64>,
    /// Time at which the application must stop; `None` without one.
    pub stop: Option<Time>,
    /// Random stream of the flow, from the scenario's seed.
    pub rng: Rng,
}

/// Creates the endpoints of a flow: at the start of its path, which sends the data that results are
/// about, and at the end of its path.
pub type MakeEndpoints = Box<dyn FnMut(EndpointStart) -> [Box<dyn Endpoint>; 2] + Send>;

/// Bytes of the IPv4 and UDP headers (RFC 791 § 3.1, RFC 768).
const HEADER: u16 = 20 + 8;
/// Largest payload of a UDP datagram over IPv4.
const LARGEST_PAYLOAD: usize = (u16::MAX - HEADER) as usize;

/// Largest number of timeouts of an endpoint at one time. An endpoint with several timers needs a
/// few.
const TIMEOUTS_AT_ONCE: u32 = 1000;

/// End of a flow's path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Start of the path.
    Source,
    /// End of the path.
    Destination,
}

/// Both endpoints of a flow.
#[derive(Debug)]
pub struct Endpoints {
    source: End,
    destination: End,
    /// Counters at the end of the warm-up; zero before it, and if the flow started later.
    pub at_warmup_end: HalfCounters,
}

/// An endpoint, with its timer and its counts.
struct End {
    endpoint: Box<dyn Endpoint>,
    /// Time of its next timeout; `Time::NEVER` without one.
    timeout: Time,
    /// Time of the pending timer event; `Time::NEVER` without one.
    timer: Time,
    /// Time of the last timeout, and number of timeouts at that time.
    timed_out: (Time, u32),
    /// Facts after the last call.
    report: Report,
    sent: Count,
    received: Count,
    ce_received: u64,
    /// Largest payload sent, bytes.
    largest_payload: usize,
}

/// Number of datagrams with their bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    datagrams: u64,
    payload_bytes: u64,
}

impl fmt::Debug for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("End").field("report", &self.report).finish_non_exhaustive()
    }
}

impl Count {
    fn add(&mut self, payload: usize) {
        self.datagrams += 1;
        self.payload_bytes += payload as u64;
    }

    const fn wire_bytes(&self) -> u64 {
        self.payload_bytes + self.datagrams * HEADER as u64
    }
}

impl End {
    fn new(endpoint: Box<dyn Endpoint>) -> Self {
        Self {
            report: endpoint.report(),
            endpoint,
            timeout: Time::NEVER,
            timer: Time::NEVER,
            timed_out: (Time::NEVER, 0),
            sent: Count::default(),
            received: Count::default(),
            ce_received: 0,
            largest_payload: 0,
        }
    }
}

impl Endpoints {
    /// Creates the endpoints of a flow, at the start and the end of its path.
    pub fn new([source, destination]: [Box<dyn Endpoint>; 2]) -> Self {
        Self {
            source: End::new(source),
            destination: End::new(destination),
            at_warmup_end: HalfCounters::default(),
        }
    }

    const fn end(&self, side: Side) -> &End {
        match side {
            Side::Source => &self.source,
            Side::Destination => &self.destination,
        }
    }

    const fn end_mut(&mut self, side: Side) -> &mut End {
        match side {
            Side::Source => &mut self.source,
            Side::Destination => &mut self.destination,
        }
    }

    /// Returns the next datagram of an end as a packet and its payload; `None` if it sends none.
    ///
    /// # Panics
    /// If an endpoint's datagram has more than 65,507 B: no socket would send it.
    pub fn transmit(&mut self, now: Time, side: Side) -> Option<(Segment, Vec<u8>)> {
        let end = self.end_mut(side);
        let Datagram { payload, ecn } = end.endpoint.poll_transmit(now)?;
        let len = payload.len();
        assert!(
            len <= LARGEST_PAYLOAD,
            "a UDP datagram has at most {LARGEST_PAYLOAD} B, not {len}"
        );
        end.sent.add(len);
        end.largest_payload = end.largest_payload.max(len);
        let segment = Segment {
            seq: end.sent.datagrams,
            ts: now,
            len: len as u32,
            wire: len as u16 + HEADER,
            flags: Flags::default(),
            ecn,
            body: Body::Quic { number: end.sent.datagrams, again: false },
        };
        Some((segment, payload))
    }

    /// Delivers a datagram to an end.
    pub fn receive(&mut self, now: Time, side: Side, datagram: Datagram) {
        let end = self.end_mut(side);
        end.received.add(datagram.payload.len());
        end.ce_received += u64::from(datagram.ecn == Ecn::Ce);
        end.endpoint.on_datagram(now, datagram);
    }

    /// Handles the timer event of an end; `false` if this event is not the pending one.
    ///
    /// # Panics
    /// If the timeout stays due however often it is handled: time would stand still.
    pub fn on_timer(&mut self, now: Time, side: Side) -> bool {
        let end = self.end_mut(side);
        if !take(&mut end.timer, now) {
            return false;
        }
        if end.timeout <= now {
            let (at, count) = end.timed_out;
            end.timed_out = (now, if at == now { count + 1 } else { 1 });
            let goes_on = end.timed_out.1 <= TIMEOUTS_AT_ONCE;
            assert!(goes_on, "the next timeout of an endpoint must be later than {now}");
            end.endpoint.on_timeout(now);
        }
        true
    }

    /// Reads an end that has nothing more to send: its report, and its timeout. Returns the time at
    /// which to schedule its timer event; `None` if no timer runs or an event is pending in time.
    ///
    /// A timeout in the past becomes `now`.
    ///
    /// # Panics
    /// If a count of the report is below that of an earlier one.
    pub fn settle(&mut self, now: Time, side: Side) -> Option<Time> {
        let end = self.end_mut(side);
        let report = end.endpoint.report();
        let before = core::mem::replace(&mut end.report, report);
        assert!(report.follows(&before), "counts only grow: {before:?}, then {report:?}");
        end.timeout = end.endpoint.next_timeout().map_or(Time::NEVER, |at| at.max(now));
        arm(&mut end.timer, end.timeout)
    }

    /// Time of the next timeout of an end, and of its pending timer event.
    pub const fn timer(&self, side: Side) -> (Time, Time) {
        let end = self.end(side);
        (end.timeout, end.timer)
    }

    /// Report of an end after its last call.
    pub const fn report(&self, side: Side) -> &Report {
        &self.end(side).report
    }

    /// Largest payload of a datagram that an end has sent, bytes.
    pub const fn largest_payload(&self, side: Side) -> usize {
        self.end(side).largest_payload
    }

    /// Bytes delivered at the end of the path.
    pub fn delivered_bytes(&self) -> u64 {
        let End { report, received, .. } = &self.destination;
        report.delivered_bytes.unwrap_or(received.payload_bytes)
    }

    /// `true` once both ends report that their transfers are complete.
    pub const fn are_finished(&self) -> bool {
        self.source.report.finished && self.destination.report.finished
    }

    /// Counters until now: those of the source's sender and of the destination's receiver.
    pub fn counters(&self) -> HalfCounters {
        let (sent, report) = (&self.source.sent, &self.source.report);
        let mut sender = SenderCounters {
            segments_sent: sent.datagrams,
            wire_bytes_sent: sent.wire_bytes(),
            retransmissions: report.lost,
            ..SenderCounters::default()
        };
        sender.reductions[Cause::Loss.index()] = report.loss_reductions;
        sender.reductions[Cause::Ecn.index()] = report.ecn_reductions;
        let received = &self.destination.received;
        let receiver = ReceiverCounters {
            ce_segments: self.destination.ce_received,
            delivered_bytes: self.delivered_bytes(),
            segments: received.datagrams,
            wire_bytes: received.wire_bytes(),
            ..ReceiverCounters::default()
        };
        HalfCounters { sender, receiver }
    }

    /// Checks that no end received more datagrams than the other one sent.
    ///
    /// # Errors
    /// A sentence with the counts.
    pub fn audit(&self) -> Result<(), String> {
        for (from, to) in [(&self.source, &self.destination), (&self.destination, &self.source)] {
            let (sent, received) = (from.sent.datagrams, to.received.datagrams);
            if received > sent {
                return Err(format!("{received} datagrams arrived of {sent} that were sent"));
            }
            if to.timer > to.timeout {
                return Err("a timer is later than its owner wants it".to_owned());
            }
        }
        Ok(())
    }
}
