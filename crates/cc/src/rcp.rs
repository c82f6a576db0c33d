//! RCP's sender: data is paced at the least rate that a router on its path offers.
//!
//! Dukkipati, Kobayashi, Zhang-Shen, McKeown, *Processor sharing flows in the Internet*, IWQoS
//! 2005, § 3.

use alloc::boxed::Box;

use cwnd_packet::{Ability, CongestionHeader, Contract, Echo, Guidance, HasContract};
use cwnd_quantity::Rate;
use cwnd_schema::{PresetOf, Presets, RegistryEntry, Schema};

use crate::controller::{
    AckSample, Controller, OutgoingData, Path, Request, Signal, Start, Window, min_ssthresh,
};
use crate::dynamic::{ActionCount, ControllerInfo, DynController, Mechanism};

/// Name and description in scenarios.
pub const ENTRY: RegistryEntry =
    RegistryEntry::new("rcp", "RCP: sends at the rate of routers (Dukkipati et al. 2005).");

/// RCP's sender (Dukkipati et al. 2005).
#[derive(Clone, Debug, PartialEq, Schema)]
#[schema(presets)]
pub struct Params {
    /// Round trips of data at the current rate that may be outstanding; none is no bound, as in the
    /// paper.
    #[default(
        Some(4.0),
        "not in Dukkipati et al. 2005: so that a path that falls silent is not filled for ever"
    )]
    #[bounds(from 2.0; "a change of the rate is heard of after a round trip: write 2 or more")]
    pub window_rtts: Option<f64>,
}

impl Presets for Params {
    const PRESETS: &'static [PresetOf<Self>] =
        &[PresetOf::new("ns2", "The authors' ns-2 code (rcp-host.cc): no bound.", || Self {
            window_rtts: None,
        })];
}

const MECHANISM: Mechanism = Mechanism::of_kind(
    "RCP",
    ActionCount::Counters { names: &["rcp_rates"], if_zero: "no ACK told of a rate" },
);

impl ControllerInfo for Params {
    fn build(&self, start: &Start) -> Box<dyn DynController> {
        Box::new(Rcp::new(self, start))
    }

    fn lowers_on_acks(&self) -> bool {
        true
    }

    fn mechanisms(&self) -> &'static [Mechanism] {
        &[MECHANISM]
    }
}

impl HasContract for Params {
    fn contract(&self) -> Contract {
        let why = "waits for the rate of routers";
        Contract::new()
            .provides(Ability::SendsRcp)
            .needs(Ability::WritesRcp, why)
            .needs(Ability::EchoesLast, why)
            .needs(Ability::Pacing, why)
    }
}

/// RCP's state for one connection.
#[derive(Clone, Debug)]
pub struct Rcp {
    /// Rate that routers offer; `None`, and no pacing, before the first and after an idle time.
    rate: Option<Rate>,
    cwnd: u64,
    initial_window: u64,
    max_window: u64,
    window_rtts: Option<f64>,
    /// Number of changes of the rate.
    rates: u64,
}

impl Rcp {
    /// Creates the controller of a new connection.
    #[must_use]
    pub fn new(params: &Params, start: &Start) -> Self {
        Self {
            rate: None,
            cwnd: start.initial_cwnd(),
            initial_window: start.initial_cwnd(),
            max_window: start.max_window(),
            window_rtts: params.window_rtts,
            rates: 0,
        }
    }

    /// Sets the window that bounds the data outstanding.
    fn update_window(&mut self, path: &Path) {
        let Some(rate) = self.rate else { return };
        let window = match (self.window_rtts, path.srtt) {
            (Some(rtts), Some(srtt)) => (rate.bytes_in(srtt).0 as f64 * rtts) as u64,
            (Some(_), None) => return,
            (None, _) => MAX_WINDOW,
        };
        // At a rate below a packet per round trip, two segments may still be outstanding.
        self.cwnd = window.max(min_ssthresh(path.mss)).min(self.max_window);
    }
}

impl Controller for Rcp {
    // § 3: the receiver copies the rate into its ACKs, and the sender sends at it from then on.
    fn on_ack(&mut self, path: &Path, ack: &AckSample) -> Request {
        if let Echo::Rate(offered) = ack.echo {
            let offered = Some(offered.into());
            self.rates += u64::from(self.rate != offered);
            self.rate = offered;
            self.update_window(path);
        }
        Request::Nothing
    }

    fn on_signal(&mut self, _: &Path, signal: Signal) {
        match signal {
            // A loss is repaired at the same rate: the routers' rate already reflects the queue
            // that caused it.
            Signal::Reduce(_) | Signal::Timeout { .. } => {}
            Signal::Resume { .. } => {}
            // The rate offered before an idle time is outdated.
            Signal::Idle { .. } => {
                self.rate = None;
                self.cwnd = self.cwnd.min(self.initial_window);
            }
        }
    }

    // § 3: the desired rate, here unbounded, and the newest RTT.
    fn stamp(&mut self, data: &OutgoingData) -> CongestionHeader {
        let rtt_us =
            data.rtts.rtt().map_or(0, |rtt| u32::try_from(rtt.0 / 1000).unwrap_or(u32::MAX));
        CongestionHeader::Rcp { rate: Rate(u64::MAX), rtt_us }
    }

    fn window(&self) -> Window {
        Window { cwnd: self.cwnd, ssthresh: u64::MAX }
    }

    fn pacing(&self) -> Option<Rate> {
        self.rate
    }

    // Sources send at the newest rate from when they receive it (Dukkipati et al. 2005 § 3).
    fn rate_applies_at_once(&self) -> bool {
        true
    }

    fn guidance(&self) -> Option<Guidance> {
        self.rate.map(Guidance::Rate)
    }

    fn count(&self, each: &mut dyn FnMut(&'static str, u64)) {
        each("rcp_rates", self.rates);
    }
}

/// Window without a bound on round trips, bytes: ten seconds at 880 Gbit/s.
const MAX_WINDOW: u64 = 1 << 40;
