//! Slow start as a separate choice, shared by every controller that has one.

use alloc::boxed::Box;

use cwnd_quantity::{Duration, Time};
use cwnd_schema::{Choice, Schema};

use crate::controller::{AckSample, Path};
use crate::decrease::Stage;
use crate::hystart::{HyStart, HyStartClassic, Step};

/// Exit from the first slow start (and with any `hystart` but `hystart++` from those that follow a
/// timeout).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum SlowStart {
    /// At the slow-start threshold or the first congestion signal (RFC 5681 § 3.1).
    #[name("standard")]
    Standard,
    /// Exit when the RTT rises, through a conservative phase (RFC 9406).
    #[name("hystart++")]
    HyStart,
    /// Exit when ACKs have come in one train for half a round trip, or the RTT rises (Linux's
    /// CUBIC).
    #[name("hystart")]
    Classic,
    /// The same where the kernel paces, which draws trains out: one of a whole round trip counts
    /// (`hystart_update`, `sk_pacing_status`).
    #[name("hystart-paced")]
    ClassicPaced,
    /// The same as it was in Linux 3.17, which knew milliseconds and took a sixteenth of the RTT
    /// for a rise.
    #[name("hystart-3.17")]
    Classic317,
    /// The same in ns-3's version: a train of a whole round trip, or twice the least RTT.
    #[name("hystart-ns-3")]
    ClassicNs3,
}

/// Rules of a controller's growth in slow start and after an ECN-echo.
#[derive(Clone, Debug, PartialEq, Schema)]
pub struct GrowthRules {
    /// L: one ACK in slow start counts for at most so many segments; none is no limit. While
    /// HyStart++ is active it is 8.
    #[default(Some(2), "RFC 3465 § 2.3")]
    #[bounds(from 1; "with a limit of 0 slow start never grows")]
    pub abc_limit: Option<u32>,
    /// The same in the slow start after a timeout.
    #[default(Some(1), "RFC 3465 § 2.3; Linux has no limit (tcp_slow_start)")]
    #[bounds(from 1; "with a limit of 0 slow start never grows")]
    pub abc_limit_after_timeout: Option<u32>,
    /// Exit from the first slow start; with HyStart, other than HyStart++, also from those after a
    /// timeout.
    #[default(SlowStart::Standard, "RFC 5681 § 3.1")]
    pub slow_start: SlowStart,
    /// `true` if the window grows in the round trip after an ECN reduction, on ACKs without ECE;
    /// Linux, and FreeBSD's NewReno, freeze it.
    #[default(true, "RFC 3168 § 6.1.2 excludes only ACKs with ECE")]
    pub grow_in_cwr: bool,
}

/// Bytes that an ACK counts for in slow start.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Credit {
    /// The bytes acknowledged, at most `limit` segments (RFC 3465).
    Bytes {
        /// L of RFC 3465 § 2.3.
        limit: Option<u32>,
        /// The same after a timeout.
        after_timeout: Option<u32>,
    },
    /// One segment for each ACK.
    Ack,
}

impl Credit {
    /// Credit by bytes, with the limits of `growing`.
    pub(crate) const fn bytes(growing: &GrowthRules) -> Self {
        Self::Bytes { limit: growing.abc_limit, after_timeout: growing.abc_limit_after_timeout }
    }

    #[inline]
    fn for_ack(self, mss: u64, acked: u64) -> u64 {
        match self {
            Self::Bytes { limit, .. } => limited(acked, limit, mss),
            Self::Ack => mss,
        }
    }
}

/// Returns the bytes of `acked` that count under a limit of L segments.
#[inline]
pub(crate) fn limited(acked: u64, limit: Option<u32>, mss: u64) -> u64 {
    limit.map_or(acked, |segments| acked.min(u64::from(segments) * mss))
}

/// Growth in slow start by one ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Growth {
    /// Bytes by which the window grows; at the exit, the bytes that count for congestion avoidance.
    pub(crate) bytes: u64,
    /// `true` if slow start ends at this ACK, before growth: the controller sets ssthresh to its
    /// window.
    pub(crate) exit: bool,
}

/// Detector of the end of slow start before a loss.
#[derive(Clone, Debug)]
enum Exit {
    Nothing,
    PlusPlus(Box<HyStart>),
    Classic(Box<HyStartClassic>),
}

/// State of a connection's slow start.
#[derive(Clone, Debug)]
pub(crate) struct SlowStartState {
    exit: Exit,
    /// Kept because classic HyStart starts anew at each timeout.
    kind: SlowStart,
    /// `true` in a connection's first slow start.
    first: bool,
    after_timeout: bool,
}

impl SlowStartState {
    pub(crate) fn new(kind: SlowStart) -> Self {
        let exit = match kind {
            SlowStart::HyStart => Exit::PlusPlus(Box::default()),
            SlowStart::Standard
            | SlowStart::Classic
            | SlowStart::ClassicPaced
            | SlowStart::Classic317
            | SlowStart::ClassicNs3 => Self::classic(kind),
        };
        Self { exit, kind, first: true, after_timeout: false }
    }

    /// Classic HyStart in its first state; `Exit::Nothing` for the other kinds.
    fn classic(kind: SlowStart) -> Exit {
        match kind {
            SlowStart::Standard | SlowStart::HyStart => Exit::Nothing,
            SlowStart::Classic => Exit::Classic(Box::default()),
            SlowStart::ClassicPaced => Exit::Classic(Box::new(HyStartClassic::linux_paced())),
            SlowStart::ClassicNs3 => Exit::Classic(Box::new(HyStartClassic::ns3())),
            SlowStart::Classic317 => Exit::Classic(Box::new(HyStartClassic::linux_3_17())),
        }
    }

    /// Handles an ACK in slow start at a window of `cwnd` bytes.
    #[inline]
    pub(crate) fn on_ack(
        &mut self,
        path: &Path,
        ack: &AckSample,
        cwnd: u64,
        credit: Credit,
    ) -> Growth {
        let mss = u64::from(path.mss);
        match &mut self.exit {
            Exit::Nothing => {}
            Exit::PlusPlus(hystart) => return Self::on_ack_hystart(hystart, path, ack, credit),
            Exit::Classic(hystart) => {
                // Passes copies: without HyStart, path and sample then need not be in memory.
                if hystart.on_ack(&{ *path }, &{ *ack }, cwnd) {
                    return Growth { bytes: ack.acked_bytes, exit: true };
                }
            }
        }
        // After a timeout one ACK may cover data that left the network long ago (RFC 3465 § 2.3).
        let bytes = match credit {
            Credit::Bytes { after_timeout, .. } if self.after_timeout => {
                limited(ack.acked_bytes, after_timeout, mss)
            }
            other => other.for_ack(mss, ack.acked_bytes),
        };
        Growth { bytes, exit: false }
    }

    /// Adds an ACK's growth to a window with fractions of a byte, up to its threshold. Returns the
    /// bytes left for congestion avoidance once the threshold is reached.
    pub(crate) fn grow(
        &mut self,
        growth: Growth,
        window: &mut f64,
        ssthresh: &mut u64,
        max_window: f64,
    ) -> u64 {
        if growth.exit {
            *ssthresh = *window as u64;
            self.on_exit();
            return growth.bytes;
        }
        let step = growth.bytes.min(*ssthresh - *window as u64);
        *window = (*window + step as f64).min(max_window);
        if *window as u64 >= *ssthresh {
            self.on_exit();
        }
        growth.bytes - step
    }

    fn on_ack_hystart(
        hystart: &mut HyStart,
        path: &Path,
        ack: &AckSample,
        credit: Credit,
    ) -> Growth {
        let mss = u64::from(path.mss);
        let bytes = match credit {
            Credit::Bytes { .. } => limited(ack.acked_bytes, Some(HyStart::LIMIT), mss),
            Credit::Ack => mss,
        };
        match hystart.on_ack(path.round, ack.rtt) {
            Step::Full => Growth { bytes, exit: false },
            Step::Conservative => Growth { bytes: bytes / HyStart::GROWTH_DIVISOR, exit: false },
            Step::Exit => Growth { bytes: ack.acked_bytes, exit: true },
        }
    }

    /// Returns the stage of a window that is below its threshold or not.
    pub(crate) const fn stage(&self, below_threshold: bool) -> Stage {
        match (below_threshold, self.first) {
            (false, _) => Stage::Avoidance,
            (true, false) => Stage::SlowStart,
            (true, true) => Stage::FirstSlowStart,
        }
    }

    /// Handles a congestion signal. HyStart++ is for the first slow start only; later ones end at a
    /// known threshold (RFC 9406 § 4.3). Classic HyStart returns at the next timeout.
    pub(crate) fn on_congestion(&mut self) {
        self.exit = Exit::Nothing;
        self.first = false;
    }

    /// Undoes a reduction: slow start returns to its state `before`. After a timeout the detector
    /// of its end stays as it is now, as Linux's HyStart began anew. `delay_min`, if given,
    /// replaces classic HyStart's least delay.
    pub(crate) fn undo(
        &mut self,
        before: Self,
        now: Time,
        after_timeout: bool,
        delay_min: Option<Duration>,
    ) {
        let exit = if after_timeout { self.exit.clone() } else { before.exit };
        *self = Self { exit, ..before };
        if let Exit::Classic(hystart) = &mut self.exit {
            hystart.skip_sample(now, after_timeout, delay_min);
        }
    }

    /// Takes an RTT that SACK alone reports; returns `true` if slow start ends by it.
    pub(crate) fn on_sack_rtt(&mut self, path: &Path, rtt: Duration, cwnd: u64) -> bool {
        let sample = AckSample { rtt: Some(rtt), ..AckSample::default() };
        match &mut self.exit {
            Exit::Classic(hystart) => hystart.on_ack(path, &sample, cwnd),
            Exit::Nothing | Exit::PlusPlus(_) => false,
        }
    }

    /// Starts the slow start that follows an expiry of the retransmission timer.
    pub(crate) fn on_timeout(&mut self, path: &Path) {
        // As Linux's `bictcp_reset`.
        self.exit = Self::classic(self.kind);
        if let Exit::Classic(hystart) = &mut self.exit {
            hystart.start_round(path);
        }
        self.first = false;
        self.after_timeout = true;
    }

    /// Ends slow start, at the threshold or at the exit that HyStart found.
    #[inline]
    pub(crate) fn on_exit(&mut self) {
        self.exit = Exit::Nothing;
        self.first = false;
        self.after_timeout = false;
    }
}
