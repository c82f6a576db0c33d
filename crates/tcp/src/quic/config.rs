//! Parameters and controller that the connections of a group share.

use std::sync::Arc;

use cwnd_cc::{AnyController, Controller as _, ControllerParams, DynController, Start};

use super::Params;

/// Parameters of a group's connections, and the controller that each begins with.
#[derive(Clone, Debug)]
pub struct Config {
    pub(super) params: Arc<Params>,
    controller: AnyController,
}

impl Config {
    /// Creates the configuration with a controller of a registered kind.
    #[must_use]
    pub fn new(params: Params, controller: &ControllerParams) -> Self {
        let controller = controller.build(&start(&params));
        Self { params: Arc::new(params), controller }
    }

    /// Returns the configuration with a user-defined controller, which `make` creates.
    #[must_use]
    pub fn with_controller(self, make: impl Fn(&Start) -> Box<dyn DynController>) -> Self {
        Self { controller: AnyController::Boxed(make(&self.start())), ..self }
    }

    /// Returns the controller's requirement that no QUIC sender meets, as the predicate of a
    /// sentence; `None` without.
    #[must_use]
    pub fn lacks(&self) -> Option<&'static str> {
        if self.controller.is_rate_based() {
            Some("steers by delivery rates, of which a QUIC sender takes no samples")
        } else if self.controller.spacing().is_some() {
            Some("has windows below one packet, and RFC 9002 § 7.2 has two at the least")
        } else {
            None
        }
    }

    /// Returns the parameters that both ends share.
    #[must_use]
    pub const fn params(&self) -> &Arc<Params> {
        &self.params
    }

    /// Returns the sizes and windows that a controller begins with.
    #[must_use]
    pub fn start(&self) -> Start {
        start(&self.params)
    }

    /// Returns the controller of a new connection.
    pub(super) fn new_controller(&self) -> AnyController {
        self.controller.clone()
    }
}

/// Start of a controller (RFC 9002 § 7.2).
fn start(params: &Params) -> Start {
    let mds = params.max_datagram_size.0;
    Start {
        mss: mds as u32,
        initial_window: u64::from(params.initial_window) * mds,
        initial_ssthresh: params.initial_ssthresh.map_or(u64::MAX, |bytes| bytes.0),
        max_window: params.max_window.map_or(u64::MAX, |bytes| bytes.0),
        delayed_acks: params.ack_eliciting_threshold > 0,
    }
}
