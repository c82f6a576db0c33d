//! XCP's sender: routers write window changes into its packets, and it applies them.
//!
//! Katabi, Handley, Rohrs, *Congestion control for high bandwidth-delay product networks*, SIGCOMM
//! 2002, § 3.2 and 3.3.

use alloc::boxed::Box;

use cwnd_packet::{Ability, CongestionHeader, Contract, Echo, Guidance, HasContract};
use cwnd_schema::{PresetOf, Presets, RegistryEntry, Schema};

use crate::controller::{
    AckSample, Controller, OutgoingData, Path, Request, Signal, Start, Window, min_ssthresh,
};
use crate::dynamic::{ActionCount, ControllerInfo, DynController, Mechanism};

/// Name and description in scenarios.
pub const ENTRY: RegistryEntry = RegistryEntry::new(
    "xcp",
    "XCP: its window changes by what routers write (Katabi, Handley, Rohrs 2002).",
);

/// XCP's sender (Katabi, Handley, Rohrs 2002).
#[derive(Clone, Debug, PartialEq, Schema)]
#[schema(presets)]
pub struct Params {
    /// Part of the window that stays after a loss.
    #[default(
        0.5,
        "Katabi et al. 2002 § 3.2: losses are answered as in TCP; RFC 5681 eq. 4: half"
    )]
    #[bounds(above 0.0, up_to 1.0; "it is a part of the window")]
    pub loss_beta: f64,
    /// `true` if the header carries the window in whole segments.
    #[default(false, "Katabi et al. 2002 § 3.1 has the window as it is; ns-2.35 whole packets")]
    pub whole_segments: bool,
    /// `true` if the sender applies the feedback of an ACK that acknowledges nothing new.
    #[default(
        true,
        "Katabi et al. 2002 § 3.2: whenever an acknowledgement arrives; off in ns-2.35"
    )]
    pub hears_duplicates: bool,
}

impl Presets for Params {
    const PRESETS: &'static [PresetOf<Self>] =
        &[PresetOf::new("ns2", "ns-2.35 (xcp-end-sys.cc).", || Self {
            whole_segments: true,
            hears_duplicates: false,
            ..Self::default()
        })];
}

const MECHANISM: Mechanism = Mechanism::of_kind(
    "XCP",
    ActionCount::Counters {
        names: &["xcp_grown_bytes", "xcp_shrunk_bytes", "xcp_unused_bytes"],
        if_zero: "no ACK told of a window that is to change",
    },
);

impl ControllerInfo for Params {
    fn build(&self, start: &Start) -> Box<dyn DynController> {
        Box::new(Xcp::new(self, start))
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
        let why = "waits for what routers write";
        Contract::new()
            .provides(Ability::SendsXcp)
            .needs(Ability::WritesXcp, why)
            .needs(Ability::EchoesSum, why)
    }
}

/// XCP's state for one connection.
#[derive(Clone, Debug)]
pub struct Xcp {
    cwnd: u64,
    ssthresh: u64,
    initial_window: u64,
    max_window: u64,
    /// Newest feedback, bytes; `None` before the first.
    feedback: Option<i32>,
    params: Params,
    counters: Counters,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    grown: u64,
    shrunk: u64,
    unused: u64,
}

impl Xcp {
    /// Creates the controller of a new connection.
    #[must_use]
    pub fn new(params: &Params, start: &Start) -> Self {
        let cwnd = start.initial_cwnd();
        Self {
            cwnd,
            ssthresh: start.initial_ssthresh(),
            initial_window: cwnd,
            max_window: start.max_window(),
            feedback: None,
            params: params.clone(),
            counters: Counters::default(),
        }
    }

    /// Applies feedback: cwnd = max(cwnd + H_feedback, s) (§ 3.2).
    fn apply_feedback(&mut self, path: &Path, delta: i32) {
        let bytes = u64::from(delta.unsigned_abs());
        if delta < 0 {
            self.counters.shrunk += bytes;
        } else if path.cwnd_limited {
            self.counters.grown += bytes;
        } else {
            // A window that is not used does not grow (RFC 7661 § 4.3).
            self.counters.unused += bytes;
            return;
        }
        let next = self.cwnd.saturating_add_signed(i64::from(delta));
        self.cwnd = next.max(u64::from(path.mss)).min(self.max_window);
    }

    fn reduced(&self, path: &Path) -> u64 {
        let part = (self.params.loss_beta * self.cwnd as f64) as u64;
        part.max(min_ssthresh(path.mss))
    }
}

impl Controller for Xcp {
    fn on_ack(&mut self, path: &Path, ack: &AckSample) -> Request {
        if let Echo::Delta(delta) = ack.echo
            && (ack.acked_bytes > 0 || self.params.hears_duplicates)
        {
            self.feedback = Some(delta);
            self.apply_feedback(path, delta);
        }
        Request::Nothing
    }

    fn on_signal(&mut self, path: &Path, signal: Signal) {
        match signal {
            Signal::Reduce(_) => {
                self.ssthresh = self.reduced(path);
                self.cwnd = self.cwnd.min(self.ssthresh);
            }
            Signal::Timeout { reduces, .. } => {
                // A segment that was already retransmitted keeps the threshold (RFC 5681 § 3.1).
                if reduces {
                    self.ssthresh = self.reduced(path);
                }
                // From here it grows by feedback alone: there is no slow start.
                self.cwnd = u64::from(path.mss).min(self.max_window);
            }
            Signal::Idle { .. } => self.cwnd = self.cwnd.min(self.initial_window),
            Signal::Resume { .. } => {}
        }
    }

    // § 3.1 and 3.2: the window, the RTT, and the increase that the sender wants, (r·rtt − cwnd) /
    // (packets in cwnd). Here r·rtt is the upper bound of the window.
    fn stamp(&mut self, data: &OutgoingData) -> CongestionHeader {
        let mss = u64::from(data.mss);
        let segments = (self.cwnd / mss).max(1);
        let cwnd = if self.params.whole_segments { segments * mss } else { self.cwnd };
        let wanted = (self.max_window - self.cwnd) / segments;
        let rtt_us =
            data.rtts.srtt().map_or(0, |rtt| u32::try_from(rtt.0 / 1000).unwrap_or(u32::MAX));
        CongestionHeader::Xcp {
            cwnd: u32::try_from(cwnd).unwrap_or(u32::MAX),
            rtt_us,
            delta: i32::try_from(wanted).unwrap_or(i32::MAX),
        }
    }

    fn window(&self) -> Window {
        Window { cwnd: self.cwnd, ssthresh: self.ssthresh }
    }

    fn guidance(&self) -> Option<Guidance> {
        self.feedback.map(Guidance::Window)
    }

    fn count(&self, each: &mut dyn FnMut(&'static str, u64)) {
        each("xcp_grown_bytes", self.counters.grown);
        each("xcp_shrunk_bytes", self.counters.shrunk);
        each("xcp_unused_bytes", self.counters.unused);
    }
}
