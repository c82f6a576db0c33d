//! Enum of all controllers, with direct calls for the two most used.

use alloc::boxed::Box;

#[cfg(feature = "record")]
use core::any::Any;

use cwnd_packet::{CongestionHeader, Guidance};
use cwnd_quantity::{Duration, Rate, Time};

use crate::controller::{
    AckSample, Controller, DepartureTiming, OutgoingData, Path, RateSample, Request, Signal, Window,
};
use crate::cubic::Cubic;
use crate::dynamic::DynController;
use crate::newreno::NewReno;
#[cfg(feature = "record")]
use crate::record::{Entry, Recorded};

/// A controller; NewReno and CUBIC are called directly, without a vtable, unless they have adaptive
/// backoff or record their calls.
#[derive(Clone, Debug)]
// An explicit tag, not in a niche of NewReno's fields: reading it takes one instruction instead of
// four.
#[repr(u8)]
pub enum AnyController {
    /// NewReno.
    NewReno(NewReno),
    /// CUBIC, boxed because it is larger than NewReno.
    Cubic(Box<Cubic>),
    /// Any other, also NewReno and CUBIC with adaptive backoff or a record, behind a vtable.
    Boxed(Box<dyn DynController>),
}

/// Calls a method of the controller, whatever its type.
macro_rules! each {
    ($self:expr, $c:ident => $call:expr) => {
        match $self {
            AnyController::NewReno($c) => $call,
            AnyController::Cubic($c) => $call,
            AnyController::Boxed($c) => $call,
        }
    };
}

// Frequent calls, and properties that let the transport skip work that a controller does not need.
impl AnyController {
    /// [`Controller::on_ack`].
    // NewReno takes fewer instructions than storing the facts in memory does. It is inlined where
    // they are in registers; only the other controllers get a copy in memory.
    #[inline(always)]
    pub fn dispatch_ack(&mut self, path: Path, ack: AckSample) -> Request {
        match self {
            Self::NewReno(c) => c.on_ack(&path, &ack),
            Self::Cubic(c) => on_ack(c.as_mut(), path, ack),
            Self::Boxed(c) => on_ack(c.as_mut(), path, ack),
        }
    }

    /// `false` for [`Self::NewReno`] and [`Self::Cubic`], which need no ACK whose `acked_bytes` are
    /// zero.
    #[inline]
    #[must_use]
    pub const fn uses_duplicate_acks(&self) -> bool {
        matches!(self, Self::Boxed(_))
    }

    /// `false` for [`Self::NewReno`] and [`Self::Cubic`], which write no headers and neither pace
    /// nor space segments.
    #[inline]
    #[must_use]
    pub const fn shapes_departures(&self) -> bool {
        matches!(self, Self::Boxed(_))
    }

    /// Writes the header of data that is sent into `header` and returns pacing and spacing:
    /// [`DynController::on_departure`]. [`Self::NewReno`] and [`Self::Cubic`] leave `header` as it
    /// is.
    #[inline]
    pub fn on_departure(
        &mut self,
        data: &OutgoingData,
        header: &mut CongestionHeader,
    ) -> DepartureTiming {
        match self {
            Self::NewReno(_) | Self::Cubic(_) => DepartureTiming { pacing: None, spacing: None },
            Self::Boxed(c) => c.on_departure(data, header),
        }
    }
}

#[inline(never)]
fn on_ack(controller: &mut (impl Controller + ?Sized), path: Path, ack: AckSample) -> Request {
    controller.on_ack(&path, &ack)
}

#[cfg(feature = "record")]
impl AnyController {
    /// Returns the same controller, wrapped so that its ACKs and signals are recorded from now on.
    #[must_use]
    pub fn recorded(self) -> Self {
        Self::Boxed(Box::new(Recorded::new(self)))
    }

    /// Returns the recorded calls; empty if the controller does not record.
    #[must_use]
    pub fn record(&self) -> &[Entry] {
        let Self::Boxed(controller) = self else { return &[] };
        let recorded = (controller.as_ref() as &dyn Any).downcast_ref::<Recorded<Self>>();
        recorded.map_or(&[], Recorded::entries)
    }
}

impl Controller for AnyController {
    #[inline]
    fn on_ack(&mut self, path: &Path, ack: &AckSample) -> Request {
        each!(self, c => c.on_ack(path, ack))
    }
    #[inline]
    fn on_signal(&mut self, path: &Path, signal: Signal) {
        each!(self, c => c.on_signal(path, signal))
    }
    #[inline]
    fn window(&self) -> Window {
        match self {
            Self::NewReno(c) => c.window(),
            Self::Cubic(c) => c.window(),
            Self::Boxed(c) => boxed_window(c.as_ref()),
        }
    }
    #[inline]
    fn pacing(&self) -> Option<Rate> {
        each!(self, c => c.pacing())
    }
    fn rate_applies_at_once(&self) -> bool {
        each!(self, c => c.rate_applies_at_once())
    }

    fn spacing(&self) -> Option<Duration> {
        each!(self, c => c.spacing())
    }
    fn is_rate_based(&self) -> bool {
        each!(self, c => c.is_rate_based())
    }
    fn ignores_delayed_acks(&self) -> bool {
        each!(self, c => c.ignores_delayed_acks())
    }
    fn reads_ecn_field(&self) -> bool {
        each!(self, c => c.reads_ecn_field())
    }
    fn on_rate(&mut self, sample: &RateSample) {
        each!(self, c => c.on_rate(sample))
    }
    fn undo(&mut self, before: Self, now: Time, after_timeout: bool) {
        match (self, before) {
            (Self::NewReno(c), Self::NewReno(before)) => c.undo(before, now, after_timeout),
            (Self::Cubic(c), Self::Cubic(before)) => c.undo(*before, now, after_timeout),
            (Self::Boxed(c), Self::Boxed(before)) => c.boxed_undo(before, now, after_timeout),
            // A connection never changes its controller, so the kinds always match.
            _ => {}
        }
    }
    fn raise_threshold(&mut self, ssthresh: u64) {
        each!(self, c => c.raise_threshold(ssthresh))
    }
    fn on_sack_rtt(&mut self, path: &Path, rtt: Duration) {
        each!(self, c => c.on_sack_rtt(path, rtt))
    }
    fn add_in_flight(&mut self, bytes: u64) {
        each!(self, c => c.add_in_flight(bytes))
    }
    #[inline]
    fn stamp(&mut self, data: &OutgoingData) -> CongestionHeader {
        each!(self, c => c.stamp(data))
    }
    fn min_rtt(&self) -> Option<Duration> {
        each!(self, c => c.min_rtt())
    }
    fn guidance(&self) -> Option<Guidance> {
        each!(self, c => c.guidance())
    }
    fn count(&self, each: &mut dyn FnMut(&'static str, u64)) {
        each!(self, c => c.count(each))
    }
}

/// Window of a boxed controller. Out of line, so that no caller inlines this call.
#[cold]
#[inline(never)]
fn boxed_window(controller: &dyn DynController) -> Window {
    controller.window()
}
