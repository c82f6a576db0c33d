//! QUIC recovery (RFC 9002): scripts, vectors, and a comparison with quinn-proto, an independent
//! QUIC stack. This module has the controller under test behind quinn's interface: it sees the
//! events that quinn reports.

mod lockstep;
mod path;
mod plain;
mod quinn;
mod scripts;

use std::any::Any;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

use cwnd_cc::newreno::Params;
use cwnd_cc::{Base, GrowthRules, Rule, Start};
use cwnd_quantity::Time;
use cwnd_tcp::quic::{Congestion, Moment, SentPacket};
use quinn_proto::RttEstimator;
use quinn_proto::congestion::{Controller, ControllerFactory};

/// max_datagram_size, bytes.
pub const MDS: u32 = 1200;

/// Creates RFC 9002's NewReno for datagrams of `mds` bytes: no limit of growth per ACK (§ 7.3.1),
/// and a reduction to half the window (§ 7.3.2).
pub fn new_reno(mds: u32) -> cwnd_cc::AnyController {
    let growing =
        GrowthRules { abc_limit: None, abc_limit_after_timeout: None, ..GrowthRules::default() };
    let rule = Rule { base: Base::Cwnd, ..Rule::default() };
    let params = Params { growing, rule, ..Params::default() };
    cwnd_cc::ControllerParams::NewReno(params).build(&Start {
        mss: mds,
        // § 7.2: kInitialWindow.
        initial_window: 10 * u64::from(mds),
        initial_ssthresh: u64::MAX,
        max_window: u64::MAX,
        delayed_acks: true,
    })
}

/// State that the test and quinn's path share.
#[derive(Debug)]
pub struct Shared {
    base: Instant,
    pub congestion: Congestion,
    /// Packets acknowledged by the frame that is processed.
    ///
    /// quinn reports them before the losses of the same frame. Here they follow those, as in
    /// RFC 9002 § A.7: OnPacketsLost, then OnPacketsAcked.
    acked: Vec<SentPacket>,
    now: Time,
    /// `true` if the application limited transmission (§ 7.8).
    pub limited: bool,
    /// Send time of the last packet lost.
    pub lost_last: Time,
    /// Number of times that quinn established persistent congestion, and that it saw marks.
    pub persistent: u64,
    pub marks: u64,
}

impl Shared {
    /// Passes the packets acknowledged by a frame to the controller, after its losses.
    pub fn end_of_frame(&mut self) {
        let at = Moment { now: self.now, ..Moment::default() };
        self.congestion.on_acked(&at, &self.acked, self.limited);
        self.acked.clear();
    }

    /// Replaces the controller's state at the start of the comparison.
    pub fn reset(&mut self, congestion: Congestion) {
        self.congestion = congestion;
        self.lost_last = Time::ZERO;
    }
}

/// Handle of the shared state, which quinn uses as its controller.
#[derive(Clone, Debug)]
pub struct Adapter(Arc<Mutex<Shared>>);

impl Adapter {
    pub fn new(base: Instant) -> Self {
        Self(Arc::new(Mutex::new(Shared {
            base,
            congestion: Congestion::new(new_reno(MDS), MDS),
            acked: Vec::new(),
            now: Time::ZERO,
            limited: false,
            lost_last: Time::ZERO,
            persistent: 0,
            marks: 0,
        })))
    }

    pub fn shared(&self) -> MutexGuard<'_, Shared> {
        self.0.lock().expect("nobody panicked")
    }
}

fn time(base: Instant, at: Instant) -> Time {
    Time(at.duration_since(base).as_nanos() as u64)
}

impl Controller for Adapter {
    fn on_ack(&mut self, now: Instant, sent: Instant, bytes: u64, limited: bool, _: &RttEstimator) {
        let mut shared = self.shared();
        let at = time(shared.base, sent);
        (shared.now, shared.limited) = (time(shared.base, now), limited);
        let (number, bytes) = (0, bytes as u32);
        shared.acked.push(SentPacket { number, at, bytes, ack_eliciting: true, start: 0, len: 0 });
    }

    fn on_congestion_event(&mut self, now: Instant, sent: Instant, persistent: bool, lost: u64) {
        let mut shared = self.shared();
        let (now, sent) = (time(shared.base, now), time(shared.base, sent));
        let at = Moment { now, ..Moment::default() };
        shared.persistent += u64::from(persistent);
        if lost > 0 {
            shared.lost_last = sent;
            shared.congestion.on_lost(&at, sent, persistent);
        } else {
            shared.marks += 1;
            // quinn has compared the counts already.
            let ce = shared.congestion.ce() + 1;
            shared.congestion.on_ecn(&at, ce, sent);
        }
    }

    fn on_mtu_update(&mut self, _: u16) {}

    fn window(&self) -> u64 {
        self.shared().congestion.window()
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }

    fn initial_window(&self) -> u64 {
        10 * u64::from(MDS)
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

impl ControllerFactory for Adapter {
    fn build(self: Arc<Self>, _: Instant, _: u16) -> Box<dyn Controller> {
        Box::new((*self).clone())
    }
}
