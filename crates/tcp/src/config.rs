use core::fmt;
use std::sync::Arc;

use cwnd_cc::{AnyController, ControllerParams, DynController, RtoPolicy, Start};
use cwnd_quantity::{Divisor, Duration};

use crate::echo::DynEcho;
use crate::params::Params;
use crate::plan::{Plan, Steering};
use crate::signed_timestamps::Signer;

/// Configuration of a group of connections: parameters, first controller, and values derived from
/// them once.
#[derive(Clone, Debug)]
pub struct Config {
    /// The parameters as given.
    pub params: Params,
    /// Parameters of each connection's congestion controller, unless the user defines one.
    pub controller: ControllerParams,
    /// The controller in its initial state; each connection gets a clone, which shares immutable
    /// data with the others.
    first_controller: AnyController,
    /// Factory of user-defined controllers, in place of `controller`; `None` without.
    custom_controller: Option<ControllerFactory>,
    /// A user-defined echo policy, in place of the parameters'.
    custom_echo: Option<Box<dyn DynEcho>>,
    /// Payload of a full segment, bytes.
    pub(crate) mss: u64,
    /// Divisor by `mss`.
    pub(crate) segments: Divisor,
    /// Header bytes of a data segment on the wire.
    pub(crate) header: u16,
    /// Wire size of a SYN, or of an ACK without the option of an echo, bytes.
    pub(crate) ack_wire: u16,
    pub(crate) receive_window: u32,
    /// Resolution of the timestamp clock, at least one nanosecond.
    clock: Divisor,
    /// `true` if retransmissions are ECN-capable: by parameter, or as the controller reads the ECN
    /// field of all data. Only with `ecn`.
    pub(crate) ecn_retransmissions: bool,
    pub(crate) steering: Steering,
    pub(crate) plan: Plan,
    pub(crate) rto: RtoPolicy,
    pub(crate) syn_rto: RtoPolicy,
}

/// Factory of controllers, shared by clones of the configuration.
#[derive(Clone)]
struct ControllerFactory(Arc<Make>);
type Make = dyn Fn(&Start) -> Box<dyn DynController> + Send + Sync;

impl fmt::Debug for ControllerFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ControllerFactory")
    }
}

impl Config {
    /// Derives the values that endpoints need; `params` must have passed their check.
    #[must_use]
    pub fn new(params: Params, controller: ControllerParams) -> Self {
        let small = |bytes: u64| u16::try_from(bytes).unwrap_or(u16::MAX);
        let start = start(&params, params.windows.initial_window);
        let first_controller = controller.build(&start);
        let steering = Steering::of(&first_controller);
        Self {
            mss: params.packets.mss.0,
            segments: Divisor::new(params.packets.mss.0),
            header: small(params.packets.header.0),
            ack_wire: small(params.packets.ack_size.0),
            receive_window: u32::try_from(params.windows.receive_window.0).unwrap_or(u32::MAX),
            rto: params.rto_policy(),
            syn_rto: params.syn_rto_policy(),
            clock: Divisor::new(params.rtt.clock.0),
            ecn_retransmissions: params.ecn.ecn_retransmissions || steering.reads_ecn_field,
            steering,
            plan: Plan::of(&params, &steering),
            first_controller,
            custom_controller: None,
            custom_echo: None,
            params,
            controller,
        }
    }

    /// Returns the configuration with user-defined controllers, which `make` creates.
    #[must_use]
    pub fn with_controller(
        self,
        make: impl Fn(&Start) -> Box<dyn DynController> + Send + Sync + 'static,
    ) -> Self {
        let first_controller = AnyController::Boxed(make(&self.start()));
        let steering = Steering::of(&first_controller);
        let ecn_retransmissions = self.params.ecn.ecn_retransmissions || steering.reads_ecn_field;
        let custom_controller = Some(ControllerFactory(Arc::new(make)));
        let plan = Plan::of(&self.params, &steering);
        Self { first_controller, steering, plan, custom_controller, ecn_retransmissions, ..self }
    }

    /// Returns the configuration with a user-defined echo policy; each receiver begins with a
    /// clone.
    #[must_use]
    pub fn with_echo(self, policy: Box<dyn DynEcho>) -> Self {
        Self { custom_echo: Some(policy), ..self }
    }

    /// Returns the echo policy of a new receiver; `None` for classic ECE.
    pub(crate) fn new_echo(&self) -> Option<Box<dyn DynEcho>> {
        let custom = self.custom_echo.as_ref().map(|policy| policy.boxed_clone());
        custom.or_else(|| self.params.acks.echo.policy())
    }

    /// Returns the sizes and windows that a controller begins with.
    #[must_use]
    pub fn start(&self) -> Start {
        start(&self.params, self.params.windows.initial_window)
    }

    /// Returns the controller of a new connection.
    pub(crate) fn new_controller(&self) -> AnyController {
        self.first_controller.clone()
    }

    /// `true` if the controller steers by delivery rates.
    pub(crate) fn by_rate(&self) -> bool {
        self.steering.by_rate
    }

    /// Returns the controller of a connection whose SYN or SYN-ACK was lost: its initial window is
    /// one segment (RFC 5681 § 3.1), its threshold `ssthresh_after_syn_loss` if that is set.
    pub(crate) fn controller_after_syn_loss(&self) -> AnyController {
        let mut start = start(&self.params, 1);
        if let Some(ssthresh) = self.params.windows.ssthresh_after_syn_loss {
            start.initial_ssthresh = ssthresh.0;
        }
        match &self.custom_controller {
            Some(ControllerFactory(make)) => AnyController::Boxed(make(&start)),
            None => self.controller.build(&start),
        }
    }

    /// Returns the signer of timestamps.
    pub(crate) const fn signer(&self) -> Signer {
        Signer::new(&self.params.signature, self.clock)
    }

    /// Rounds a time in nanoseconds down to a tick of the timestamp clock.
    #[inline]
    pub(crate) const fn tick(&self, ns: u64) -> u64 {
        ns - self.clock.divide(ns).1
    }

    /// Returns an RTT as the timestamp clock measures it, at least one tick: both ends are rounded
    /// down.
    #[inline]
    pub(crate) fn measured(&self, from: u64, to: u64) -> Duration {
        Duration((self.tick(to) - self.tick(from)).max(self.clock.get()))
    }
}

/// Start of a controller with an initial window of this many segments.
fn start(params: &Params, initial_segments: u32) -> Start {
    Start {
        mss: params.packets.mss.0 as u32,
        initial_window: u64::from(initial_segments) * params.packets.mss.0,
        initial_ssthresh: params.windows.initial_ssthresh.map_or(u64::MAX, |s| s.0),
        max_window: params.windows.max_window.map_or(u64::MAX, |w| w.0),
        delayed_acks: params.acks.ack_every > 1,
    }
}
