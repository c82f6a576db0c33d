//! DCTCP: NewReno, but marks reduce the window by half of the fraction of data marked recently.
//!
//! RFC 8257; Alizadeh, Greenberg, Maltz, Padhye, Patel, Prabhakar, Sengupta, Sridharan, *Data
//! center TCP (DCTCP)*, SIGCOMM 2010. The receiver's part (RFC 8257 § 3.2) is the echo `changes`,
//! the switch's (§ 3.1) the meter `step`.

use alloc::boxed::Box;

use cwnd_packet::{Ability, Contract, Echo, Ecn, HasContract};
use cwnd_quantity::Time;
use cwnd_schema::{PresetOf, Presets, RegistryEntry, Schema};

use crate::controller::{
    AckSample, Cause, Controller, GrowthPermission, Path, Request, Signal, Start, Window,
};
use crate::decrease::Rule;
use crate::dynamic::{ControllerInfo, DynController};
use crate::newreno::{self, NewReno};
use crate::slow_start::GrowthRules;

/// Name and description in scenarios.
pub const ENTRY: RegistryEntry =
    RegistryEntry::new("dctcp", "DCTCP: backs off by how much of its data was marked (RFC 8257).");

/// DCTCP.
#[derive(Clone, Debug, PartialEq, Schema)]
#[schema(presets)]
pub struct Params {
    /// g: weight of the newest window of data in the estimate α.
    #[default(0.0625, "RFC 8257 § 4.2; Alizadeh et al. 2010 § 3.4: 1/16")]
    #[bounds(above 0.0, up_to 1.0; "it is a part")]
    pub gain: f64,
    /// Initial α: with 1 a mark on the first data takes about half of the window; each window
    /// without a mark lowers α.
    #[default(1.0, "RFC 8257 § 4.2: 1; Linux dctcp_alpha_on_init: 1")]
    #[bounds(from 0.0, up_to 1.0; "it is a part")]
    pub initial_alpha: f64,
    /// Part of the data in flight that stays after a loss.
    #[default(0.5, "RFC 8257 § 3.5: as RFC 5681 § 3.1 eq. 4")]
    #[bounds(above 0.0, below 1.0; "it is the part of the window that stays")]
    pub loss_beta: f64,
    /// Growth in slow start and after marks.
    #[flatten(GrowthRules::default())]
    pub growing: GrowthRules,
}

impl Presets for Params {
    const PRESETS: &'static [PresetOf<Self>] =
        &[PresetOf::new("rfc", "RFC 8257; the default.", Self::default)];
}

// Linux has DCTCP (tcp_dctcp.c). Its receiver echoes as DCTCP only if it uses the controller, too,
// but the testbed sets only that of senders.
impl ControllerInfo for Params {
    fn build(&self, start: &Start) -> Box<dyn DynController> {
        Box::new(Dctcp::new(self, start))
    }

    fn lowers_on_acks(&self) -> bool {
        true
    }
}

impl HasContract for Params {
    fn contract(&self) -> Contract {
        // § 3.2: ECE that lasts until CWR (RFC 3168) would count a whole window of data as marked
        // for one mark in it.
        Contract::new()
            .needs(Ability::Ect, "never hears of a mark and fills each queue until it drops")
            .needs(Ability::EchoesChanges, "cannot tell which data was marked")
            .wants(Ability::Marks, "DCTCP does what NewReno does")
    }
}

/// DCTCP's state for one connection; growth and the response to losses are NewReno's (RFC 8257
/// § 3.4, 3.5).
#[derive(Clone, Debug)]
pub struct Dctcp {
    reno: NewReno,
    estimate: Estimate,
    counters: Counters,
}

/// State of RFC 8257 § 3.3: the estimate of the marked fraction.
#[derive(Clone, Copy, Debug)]
struct Estimate {
    gain: f64,
    /// DCTCP.Alpha.
    alpha: f64,
    /// DCTCP.WindowEnd.
    window_end: u64,
    /// DCTCP.BytesAcked.
    acked: u64,
    /// DCTCP.BytesMarked.
    marked: u64,
}

/// Number of observation windows.
#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    /// All of them.
    windows: u64,
    /// Those with a mark.
    marked_windows: u64,
}

impl Estimate {
    /// Takes an ACK. Returns `None` while the observation window lasts; at its end, `true` if it
    /// had a mark.
    fn on_ack(&mut self, path: &Path, acked: u64, marked: bool) -> Option<bool> {
        // Steps 1 to 3. SACKed bytes count only with the endpoint's `grow_by`.
        self.acked += acked;
        if marked {
            self.marked += acked;
        }
        // Step 4.
        if acked == 0 || path.delivered <= self.window_end {
            return None;
        }
        // Steps 5 and 6.
        let level = self.marked as f64 / self.acked as f64;
        self.alpha = self.alpha * (1.0 - self.gain) + self.gain * level;
        let had_mark = self.marked > 0;
        // Steps 7 and 8.
        self.window_end = path.sent;
        (self.acked, self.marked) = (0, 0);
        Some(had_mark)
    }
}

impl Dctcp {
    /// Creates the controller of a new connection.
    #[must_use]
    pub fn new(params: &Params, start: &Start) -> Self {
        let rule = Rule { beta: params.loss_beta, ..Rule::default() };
        let reno =
            newreno::Params { rule, growing: params.growing.clone(), ..newreno::Params::default() };
        Self {
            reno: NewReno::new(&reno, start),
            estimate: Estimate {
                gain: params.gain,
                alpha: params.initial_alpha,
                window_end: 0,
                acked: 0,
                marked: 0,
            },
            counters: Counters::default(),
        }
    }

    /// Returns DCTCP.Alpha, the smoothed fraction of data that was marked.
    #[must_use]
    pub const fn alpha(&self) -> f64 {
        self.estimate.alpha
    }
}

/// `true` if an ACK reports that the newest data arrived with CE (§ 3.2: ECE is DCTCP.CE).
#[must_use]
pub const fn is_marked(echo: Echo) -> bool {
    matches!(echo, Echo::Load { value, .. } if value == Ecn::Ce as u16)
}

impl Controller for Dctcp {
    fn on_ack(&mut self, path: &Path, ack: &AckSample) -> Request {
        let marked = is_marked(ack.echo);
        if let Some(had_mark) = self.estimate.on_ack(path, ack.acked_bytes, marked) {
            self.counters.windows += 1;
            self.counters.marked_windows += u64::from(had_mark);
        }
        if marked {
            // Step 9, at most once per window of data (RFC 3168 § 6.1.2, with CWR). The window does
            // not grow for such an ACK.
            return Request::Reduce(Cause::Ecn);
        }
        if ack.grow == GrowthPermission::No {
            Request::Nothing
        } else {
            self.reno.on_ack(path, ack)
        }
    }

    fn on_signal(&mut self, path: &Path, signal: Signal) {
        if signal == Signal::Reduce(Cause::Ecn) {
            // Step 9: cwnd · (1 − α / 2); at least two segments, as RFC 5681 eq. 4.
            let cwnd = self.reno.window().cwnd;
            let reduced = (cwnd as f64 * (1.0 - self.estimate.alpha / 2.0)) as u64;
            self.reno.reduce_to(path, reduced, Cause::Loss);
        } else {
            self.reno.on_signal(path, signal);
        }
    }

    /// Undoes a reduction as NewReno does; α stays (Linux, `dctcp_cwnd_undo`).
    fn undo(&mut self, before: Self, now: Time, after_timeout: bool) {
        self.reno.undo(before.reno, now, after_timeout);
    }

    fn raise_threshold(&mut self, ssthresh: u64) {
        self.reno.raise_threshold(ssthresh);
    }

    fn add_in_flight(&mut self, bytes: u64) {
        self.reno.add_in_flight(bytes);
    }

    fn window(&self) -> Window {
        self.reno.window()
    }

    fn count(&self, each: &mut dyn FnMut(&'static str, u64)) {
        each("observed_windows", self.counters.windows);
        each("marked_windows", self.counters.marked_windows);
    }
}
