//! A connection's two ends and its application.

use std::sync::Arc;

use cwnd_scenario::Workload;
use cwnd_tcp::{Config, Receiver, ReceiverCounters, Sender, SenderCounters};
use cwnd_trace::Histogram;
use cwnd_units::{Duration, Rng, Time};

use crate::event::FlowId;
use crate::network::Route;

/// Who a flow is and which way it goes.
#[derive(Clone, Copy, Debug)]
pub struct Identity {
    /// Its slot and generation.
    pub id: FlowId,
    /// Number in results: in order of creation.
    pub number: u32,
    /// Index of its group.
    pub group: u32,
    /// Where its packets enter the network.
    pub route: Route,
    /// Propagation round-trip time.
    pub base_rtt: Duration,
}

/// A flow: sender, receiver, what the application wants, and what was measured.
#[derive(Debug)]
pub struct Flow {
    /// Its slot and generation.
    pub id: FlowId,
    /// Number in results: in order of creation.
    pub number: u32,
    /// Index of its group.
    pub group: u32,
    /// Where its packets enter the network.
    pub route: Route,
    /// Propagation round-trip time.
    pub base_rtt: Duration,
    /// The sending end.
    pub sender: Sender,
    /// The receiving end.
    pub receiver: Receiver,
    /// When the pending [`SenderTimer`](crate::event::Event::SenderTimer) fires; `Time::NEVER` if none is pending.
    pub sender_timer: Time,
    /// When the pending [`ReceiverTimer`](crate::event::Event::ReceiverTimer) fires.
    pub receiver_timer: Time,
    /// When it opened; `Time::NEVER` before.
    pub started: Time,
    /// Bytes its transfer has; `u64::MAX` when without end.
    pub size: u64,
    /// Whether its application pauses between transfers.
    pub pausing: bool,
    /// When the last byte of the transfer was delivered; `Time::NEVER` before, and without end.
    pub finished: Time,
    /// When all that it had sent was acknowledged, after its application was told to stop; `Time::NEVER` before.
    pub stopped: Time,
    /// Draws of its sizes and pauses.
    pub rng: Rng,
    /// RTTs measured after the warm-up.
    pub rtt: Histogram,
    /// What had been counted when the warm-up ended.
    pub before: Option<Box<(SenderCounters, ReceiverCounters)>>,
}

/// What a bulk sender writes at once: more than a run can carry.
const ENDLESS: u64 = 1 << 62;

impl Flow {
    /// A flow that has not started.
    pub fn new(identity: Identity, config: &Arc<Config>, rng: Rng) -> Self {
        let Identity { id, number, group, route, base_rtt } = identity;
        Self {
            id,
            number,
            group,
            route,
            base_rtt,
            sender: Sender::new(Arc::clone(config)),
            receiver: Receiver::new(Arc::clone(config)),
            sender_timer: Time::NEVER,
            receiver_timer: Time::NEVER,
            started: Time::NEVER,
            size: u64::MAX,
            pausing: false,
            finished: Time::NEVER,
            stopped: Time::NEVER,
            rng,
            rtt: Histogram::default(),
            before: None,
        }
    }

    /// Most of what a packet needs at its host will be read soon.
    #[inline]
    pub fn soon(&self, data: bool) {
        if data {
            cwnd_memory::soon(&self.receiver);
            cwnd_memory::soon(&self.receiver_timer);
            cwnd_memory::soon(&self.size);
            cwnd_memory::soon(&self.id);
        } else {
            cwnd_memory::soon(&self.sender);
        }
    }

    /// The rest of it will be read soon, too.
    #[inline]
    pub fn rest_soon(&self, data: bool) {
        if !data {
            cwnd_memory::soon(&self.rtt);
            cwnd_memory::soon(&self.sender_timer);
            cwnd_memory::soon(&self.id);
        }
    }

    /// What it points to, once it is in the cache itself.
    #[inline]
    pub fn targets_soon(&self, data: bool) {
        if data {
            self.receiver.soon();
        } else {
            self.sender.soon();
            self.rtt.soon();
        }
    }

    /// The application starts the flow, or writes the next transfer on it.
    pub fn wake(&mut self, now: Time, workload: &Workload) {
        self.pausing = false;
        if self.started == Time::NEVER {
            self.started = now;
            self.sender.open();
        }
        match workload {
            Workload::Bulk => self.sender.write(ENDLESS),
            Workload::Bytes { size } | Workload::Poisson { size, .. } => {
                self.size = size.sample(&mut self.rng).0;
                self.sender.write(self.size);
            }
            Workload::OnOff { size, .. } => {
                let bytes = size.sample(&mut self.rng).0;
                self.sender.write(bytes);
            }
            // Datagrams are no flow of this kind: they have a `Stream`.
            Workload::Udp(_) => {}
        }
    }

    /// Notes the delivery of the transfer's last byte.
    #[inline]
    pub fn note_delivery(&mut self, now: Time) {
        if self.receiver.counters().delivered_bytes >= self.size && self.finished == Time::NEVER {
            self.finished = now;
        }
    }

    /// Whether the transfer, if it has an end, is over for both ends, or was given up.
    #[inline]
    pub fn is_over(&self) -> bool {
        (self.size != u64::MAX && self.sender.is_drained() && self.finished != Time::NEVER)
            || self.sender.has_failed()
    }

    /// Counting begins.
    pub fn end_warmup(&mut self) {
        self.before = Some(Box::new((*self.sender.counters(), *self.receiver.counters())));
        self.rtt.clear();
    }
}
