//! quinn with cwnd's CUBIC and ABE (RFC 8511): quinn's trait for congestion control, implemented
//! over [`cwnd_cc::Controller`]. Run with `cargo run -p cwnd-cc --example quinn`.

use std::any::Any;
use std::sync::Arc;
use std::time::Instant;

use cwnd_cc::{
    AckSample, AnyController, Base, Cause, Controller as _, ControllerParams, EcnInSlowStart,
    GrowthPermission, GrowthRules, Path, Request, Rule, Signal, Start, cubic,
};
use cwnd_quantity::{Duration, Time};
use quinn_proto::RttEstimator;
use quinn_proto::congestion::{Controller, ControllerFactory};

/// Factory of CUBIC controllers with ABE, for `TransportConfig::congestion_controller_factory`.
pub(crate) struct CubicAbe;

impl ControllerFactory for CubicAbe {
    fn build(self: Arc<Self>, now: Instant, mtu: u16) -> Box<dyn Controller> {
        // As in other QUIC stacks: factors multiply the window, and each acknowledged byte counts.
        let rule = Rule {
            beta: 0.7,
            beta_ecn: Some(0.85),
            base: Base::Cwnd,
            ecn_in_slow_start: EcnInSlowStart::BetaEcn,
            ..Rule::default()
        };
        let growing = GrowthRules {
            abc_limit: None,
            abc_limit_after_timeout: None,
            ..GrowthRules::default()
        };
        let params = cubic::Params { rule, growing, ..cubic::Params::default() };
        let mss = u32::from(mtu);
        let start = Start {
            mss,
            // RFC 9002 § 7.2.
            initial_window: u64::from(10 * mss).min(u64::from(2 * mss).max(14_720)),
            initial_ssthresh: u64::MAX,
            max_window: u64::MAX,
            delayed_acks: true,
        };
        let controller = ControllerParams::Cubic(params).build(&start);
        let path = Path { mss, ..Path::default() };
        Box::new(Adapter { controller, start, began: now, path, acked: 0, recovery: None })
    }
}

/// A controller of cwnd behind quinn's trait.
#[derive(Clone)]
struct Adapter {
    controller: AnyController,
    start: Start,
    /// Instant of cwnd's time zero.
    began: Instant,
    /// Facts as of the last call; bytes are those of packets.
    path: Path,
    /// Bytes acknowledged in this batch that may grow the window.
    acked: u64,
    /// Start of the newest recovery period (RFC 9002 § 7.3.2).
    recovery: Option<Instant>,
}

impl Adapter {
    fn time(&self, at: Instant) -> Time {
        Time(at.saturating_duration_since(self.began).as_nanos() as u64)
    }

    fn reduce(&mut self, now: Instant, cause: Cause) {
        self.recovery = Some(now);
        self.controller.on_signal(&self.path, Signal::Reduce(cause));
    }
}

impl Controller for Adapter {
    fn on_sent(&mut self, _: Instant, bytes: u64, _: u64) {
        self.path.sent += bytes;
        self.path.flight_size += bytes;
    }

    fn on_ack(&mut self, now: Instant, sent: Instant, bytes: u64, _: bool, rtt: &RttEstimator) {
        self.path.now = self.time(now);
        self.path.delivered += bytes;
        self.path.srtt = Some(Duration(rtt.get().as_nanos() as u64));
        self.path.min_rtt = Some(Duration(rtt.min().as_nanos() as u64));
        self.path.rtt = Some(self.path.now.since(self.time(sent)));
        if self.recovery.is_none_or(|start| sent > start) {
            self.acked += bytes;
        }
    }

    fn on_end_acks(&mut self, now: Instant, in_flight: u64, app_limited: bool, _: Option<u64>) {
        let acked_bytes = core::mem::take(&mut self.acked);
        self.path.cwnd_limited = !app_limited;
        let grows = acked_bytes > 0 && !app_limited;
        let grow = if grows { GrowthPermission::Yes } else { GrowthPermission::No };
        let ack = AckSample { acked_bytes, rtt: self.path.rtt, grow, ..AckSample::default() };
        let request = self.controller.on_ack(&self.path, &ack);
        self.path.flight_size = in_flight;
        if let Request::Reduce(cause) = request {
            self.reduce(now, cause);
        }
    }

    fn on_congestion_event(&mut self, now: Instant, sent: Instant, persistent: bool, lost: u64) {
        self.path.now = self.time(now);
        if self.recovery.is_none_or(|start| sent > start) {
            // quinn reports a mark as a loss of no bytes.
            self.reduce(now, if lost == 0 { Cause::Ecn } else { Cause::Loss });
        }
        self.path.flight_size = self.path.flight_size.saturating_sub(lost);
        if persistent {
            self.controller.on_signal(&self.path, Signal::Timeout { nth: 1, reduces: false });
            // A timeout leaves one packet; kMinimumWindow is two (RFC 9002 § 7.2).
            self.controller.add_in_flight(self.path.mss.into());
            self.recovery = None;
        }
    }

    fn on_mtu_update(&mut self, mtu: u16) {
        self.path.mss = mtu.into();
    }

    fn window(&self) -> u64 {
        self.controller.window().cwnd
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }

    fn initial_window(&self) -> u64 {
        self.start.initial_window
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

#[expect(clippy::disallowed_methods, reason = "quinn has no instant but those after a real one")]
fn main() {
    let mut transport = quinn_proto::TransportConfig::default();
    transport.congestion_controller_factory(Arc::new(CubicAbe));

    let now = Instant::now();
    let mut controller = Arc::new(CubicAbe).build(now, 1200);
    println!("at the start {:5} B", controller.window());
    for (second, name, lost) in [(1, "after a mark", 0), (2, "after a loss", 1200)] {
        let at = now + std::time::Duration::from_secs(second);
        controller.on_congestion_event(at, at, false, lost);
        println!("{name} {:5} B", controller.window());
    }
}
