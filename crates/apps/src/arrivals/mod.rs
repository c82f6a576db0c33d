//! Arrivals of a group's connections while the run goes on, whatever each of them sends: a file for
//! each kind, with its parameters, its facts ([`Arriving`]) and its process.

use core::fmt;

use cwnd_quantity::{Bytes, Duration, Rng};
use cwnd_schema::{Params, Schema, registry};

use crate::listed::Listed;

pub use poisson::PoissonArrivals;

registry! {
    /// The kinds of arrivals, each with its parameters.
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
pub struct Pace {
    /// Mean time between arrivals of each process; of one with pauses, while it is on. Where
    /// `load` is given, what it comes to.
    #[default(None, "none")]
    #[bounds(above Duration::ZERO; "arrivals with no time between them would have no end")]
    pub interval: Option<Duration>,
    /// Load that the group offers in the long run, as a share of a link's rate: the mean size
    /// with headers and SYN, each byte once.
    #[default(None, "none")]
    #[bounds(above 0.0, up_to 100.0)]
    pub load: Option<f64>,
    /// The link that `load` is a share of; `"busiest"` is the one on the way of the data that
    /// the group loads most.
    #[default(BUSIEST.to_owned(), "cwnd: the link that limits the group")]
    pub link: String,
}

/// The link that a group loads most.
pub const BUSIEST: &str = "busiest";

/// Facts about a kind of arrivals, for code that does not know the kind.
pub trait Arriving: Params {
    /// Begins a process.
    fn process(&self) -> Box<dyn Process>;

    /// `true` of the kind that stands for no arrivals.
    fn is_none(&self) -> bool {
        false
    }

    /// Rate of arrivals, if the kind has one.
    fn pace(&self) -> Option<&Pace> {
        None
    }

    /// As [`Arriving::pace`], to be set.
    fn pace_mut(&mut self) -> Option<&mut Pace> {
        None
    }

    /// The share of the time, in the long run, in which connections arrive.
    fn on_share(&self) -> f64 {
        1.0
    }

    /// `true` if a connection comes only once the one before it is over.
    fn waits(&self) -> bool {
        false
    }

    /// Recorded arrivals in order of time; empty for other kinds.
    fn rows(&self) -> &[Listed] {
        &[]
    }

    /// Checks the parameters once `load` is settled.
    ///
    /// # Errors
    /// If no process could be made of them: the key and the reason.
    fn settled(&self) -> Result<(), (&'static str, String)> {
        Ok(())
    }
}

impl Pace {
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

    /// As [`ArrivalParams::arriving`], to be set.
    pub fn arriving_mut(&mut self) -> &mut dyn Arriving {
        each_process!(self, params => params)
    }
}

impl From<PoissonArrivals> for ArrivalParams {
    fn from(arrivals: PoissonArrivals) -> Self {
        let pace = Pace { interval: Some(arrivals.mean), ..Pace::default() };
        Self::Poisson(poisson::Params { pace })
    }
}

/// The next arrival.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Next {
    /// Time since the one before it, or since the process began.
    pub gap: Duration,
    /// Number of its row, if arrivals were recorded.
    pub row: Option<usize>,
    /// Size of its transfer, if that was recorded.
    pub size: Option<Bytes>,
}

impl Next {
    /// An arrival of which only the time is known.
    #[must_use]
    pub const fn after(gap: Duration) -> Self {
        Self { gap, row: None, size: None }
    }
}

/// A process of arrivals.
pub trait Process: fmt::Debug + Send {
    /// The next arrival; `None` if there is none any more, or if it [waits](Self::over) for the one
    /// before it.
    fn next(&mut self, rng: &mut Rng) -> Option<Next>;

    /// The arrival that follows from the end of a connection of it; `None` if none does.
    fn over(&mut self, rng: &mut Rng) -> Option<Next> {
        let _ = rng;
        None
    }

    /// `true` if it is to hear when its connections are over.
    fn hears(&self) -> bool {
        false
    }

    /// `true` if nothing comes any more, now that none of its connections is open; `false` for
    /// processes that do not hear of ends.
    fn is_done(&self) -> bool {
        false
    }
}
