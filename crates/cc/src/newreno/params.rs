//! Parameters of NewReno.

use std::sync::Arc;

use cwnd_packet::{Contract, HasContract};
use cwnd_schema::{RegistryEntry, Schema};

use super::NewReno;
use crate::controller::{Cause, Start};
use crate::counting::{Counting, Increase};
use crate::decrease::{ABE, ADAPTIVE, BECN, Decrease, Factors, Rule};
use crate::dynamic::DynController;
use crate::info::{ControllerInfo, Mechanism};
use crate::min_rtt::with_min_rtt_estimate;
use crate::slow_start::GrowthRules;

/// Name and description in scenarios.
pub const ENTRY: RegistryEntry = RegistryEntry::new(
    "newreno",
    "NewReno: additive increase, multiplicative decrease (RFC 5681).",
);

/// NewReno.
#[derive(Clone, Debug, PartialEq, Schema)]
#[schema(presets)]
pub struct Params {
    /// Rule of decrease: the window that a reduction leaves.
    #[flatten(Rule::default())]
    pub rule: Rule,
    /// Least window that a reduction leaves, in segments, but for an ECN-echo; the threshold is
    /// never below two (RFC 5681 eq. 4).
    #[default(2, "RFC 5681 § 3.1 eq. 4: 2; ns-2 has 1 (tcp.cc, slowdown)")]
    #[bounds(from 1; "a window of no segment never sends again")]
    pub least_window: u32,
    /// Least window that an ECN-echo leaves, in segments.
    #[default(
        1,
        "RFC 3168 § 6.1.2: 1, and the next echo waits for the timer (`ecn_at_one`); Linux, FreeBSD \
        and ns-3 have 2"
    )]
    #[bounds(from 1; "a window of no segment never sends again")]
    pub least_window_ecn: u32,
    /// Quantity that growth counts: bytes or ACKs.
    #[default(Increase::Abc, "RFC 5681 § 3.1 recommends RFC 3465")]
    pub increase: Increase,
    /// `true` if the count towards the next segment of growth is kept across a slow start in
    /// between, as after a pause; a reduction clears it. It has no effect where ACKs are counted.
    #[default(false, "RFC 3465 § 2.1 leaves it open; Linux: yes (snd_cwnd_cnt)")]
    #[idle(self.increase != Increase::Abc, "without `increase = \"abc\"`")]
    pub keep_count: bool,
    /// Growth in slow start and after an ECN-echo.
    #[flatten(GrowthRules::default())]
    pub growing: GrowthRules,
}

impl ControllerInfo for Params {
    fn build(&self, start: &Start) -> Box<dyn DynController> {
        with_min_rtt_estimate(&self.rule, NewReno::new(self, start))
    }

    fn lowers_on_acks(&self) -> bool {
        false
    }

    fn mechanisms(&self) -> &'static [Mechanism] {
        &[ABE, ADAPTIVE, BECN]
    }

    fn linux_name(&self) -> Option<&'static str> {
        Some("reno")
    }
}

impl HasContract for Params {
    fn contract(&self) -> Contract {
        self.rule.contract()
    }
}

/// Constants of a controller, shared by the connections of a group.
#[derive(Clone, Debug)]
pub(super) struct Constants {
    pub(super) counting: Counting,
    pub(super) decrease: Arc<dyn Decrease>,
    pub(super) grow_in_cwr: bool,
    /// Window after a pause, bytes (RFC 5681's IW).
    pub(super) initial_window: u64,
    least_window: u64,
    least_window_ecn: u64,
}

impl Constants {
    pub(super) fn new(params: &Params, start: &Start) -> Self {
        let segments = |n: u32| u64::from(n) * u64::from(start.mss);
        Self {
            counting: Counting::new(params.increase, params.keep_count, &params.growing, start),
            decrease: Arc::new(Factors::new(&params.rule)),
            grow_in_cwr: params.growing.grow_in_cwr,
            initial_window: start.initial_cwnd(),
            least_window: segments(params.least_window),
            least_window_ecn: segments(params.least_window_ecn),
        }
    }

    /// Least window that a reduction for this cause leaves, bytes.
    pub(super) const fn min_window(&self, cause: Cause) -> u64 {
        match cause {
            Cause::Ecn => self.least_window_ecn,
            _ => self.least_window,
        }
    }
}

impl NewReno {
    /// Returns the controller with another rule of decrease, before its connection begins.
    #[must_use]
    pub fn with_decrease(self, rule: impl Decrease + 'static) -> Self {
        let decrease = Arc::new(rule);
        Self { constants: Arc::new(Constants { decrease, ..(*self.constants).clone() }), ..self }
    }
}
