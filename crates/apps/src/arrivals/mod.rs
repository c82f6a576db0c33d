//! Arrivals of a group's connections during the run, independent of their workload. Each kind has a
//! file with its parameters, its facts ([`Arriving`]) and its process.

use core::fmt;

use cwnd_quantity::{Bytes, Duration, Rng};
use cwnd_schema::{Params, Schema, registry};

pub use list::{RecordedArrival, RecordedArrivals};
pub use poisson::PoissonArrivals;

registry! {
    /// Kinds of arrivals, each with its parameters.
    #[each(each_process)]
    pub enum ArrivalParams {
        None(none),
        Poisson(poisson),
        OnOff(on_off),
        List(list),
        Closed(closed),
    }
}

/// Rate of arrivals: `interval` or `load`.
#[derive(Clone, Debug, PartialEq, Schema)]
pub struct ArrivalRate {
    /// Mean time between arrivals of each process; of one with pauses, while it is on. With `load`,
    /// the interval that results from it.
    #[default(None, "none")]
    #[bounds(above Duration::ZERO; "arrivals with no time between them would have no end")]
    pub interval: Option<Duration>,
    /// Load that the group offers in the long run, as a share of a link's rate: the mean size
    /// with headers and SYN, each byte once.
    #[default(None, "none")]
    #[bounds(above 0.0, up_to 100.0)]
    pub load: Option<f64>,
    /// The link that `load` is a share of; `"busiest"` is the one on the path of the data that the
    /// group loads most.
    #[default(BUSIEST.to_owned(), "cwnd: the link that limits the group")]
    pub link: String,
}

/// Value of [`ArrivalRate::link`] for the link that a group loads most.
pub const BUSIEST: &str = "busiest";

/// Facts about a kind of arrivals, for code that does not know the kind.
pub trait Arriving: Params {
    /// Creates an arrival process; `load` must be converted into an interval before.
    fn process(&self) -> Box<dyn Process>;

    /// `true` for the kind without arrivals.
    fn is_none(&self) -> bool {
        false
    }

    /// Rate of arrivals; `None` if the kind has none.
    fn pace(&self) -> Option<&ArrivalRate> {
        None
    }

    /// Rate of arrivals, mutable; `None` if the kind has none.
    fn pace_mut(&mut self) -> Option<&mut ArrivalRate> {
        None
    }

    /// Long-run share of the time in which connections arrive.
    fn on_share(&self) -> f64 {
        1.0
    }

    /// `true` if each connection but the first arrives only after the end of an earlier one.
    fn waits(&self) -> bool {
        false
    }

    /// Recorded arrivals in order of time; empty for other kinds.
    fn rows(&self) -> &[RecordedArrival] {
        &[]
    }

    /// Checks the parameters once `load` is converted into an interval.
    ///
    /// # Errors
    /// The key and the reason, if the interval does not fit the other parameters.
    fn check_interval(&self) -> Result<(), (&'static str, String)> {
        Ok(())
    }
}

impl ArrivalRate {
    fn gaps(&self) -> PoissonArrivals {
        PoissonArrivals { mean: self.interval.unwrap_or(Duration::MAX) }
    }
}

impl ArrivalParams {
    /// Facts about the kind.
    #[must_use]
    pub fn arriving(&self) -> &dyn Arriving {
        each_process!(self, params => params)
    }

    /// Facts about the kind, mutable.
    pub fn arriving_mut(&mut self) -> &mut dyn Arriving {
        each_process!(self, params => params)
    }
}

impl From<PoissonArrivals> for ArrivalParams {
    fn from(arrivals: PoissonArrivals) -> Self {
        let pace = ArrivalRate { interval: Some(arrivals.mean), ..ArrivalRate::default() };
        Self::Poisson(poisson::Params { pace })
    }
}

/// An arrival of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Time since the previous arrival, the end of a connection or the start of the process.
    pub gap: Duration,
    /// Index of its row among recorded arrivals; `None` for others.
    pub row: Option<usize>,
    /// Size of its transfer; `None` if it is not recorded.
    pub size: Option<Bytes>,
}

impl Arrival {
    /// Creates an arrival after a gap, without recorded data.
    #[must_use]
    pub const fn after(gap: Duration) -> Self {
        Self { gap, row: None, size: None }
    }
}

/// An arrival process.
pub trait Process: fmt::Debug + Send {
    /// Returns the next arrival; `None` if there is none, or if it [waits](Self::on_end) for the
    /// end of a connection.
    fn next(&mut self, rng: &mut Rng) -> Option<Arrival>;

    /// Returns the arrival that follows the end of one of its connections; `None` without one.
    fn on_end(&mut self, rng: &mut Rng) -> Option<Arrival> {
        let _ = rng;
        None
    }

    /// `true` if the process must be informed of the ends of its connections.
    fn awaits_ends(&self) -> bool {
        false
    }

    /// `true` if no arrival follows and none of its connections is open; `false` for processes that
    /// are not informed of ends.
    fn is_done(&self) -> bool {
        false
    }
}
