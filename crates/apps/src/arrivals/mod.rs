//! How the connections of a group arrive while the run goes on, whatever each of them sends.
//!
//! A kind is its parameters, what it states of itself ([`Arriving`]) and the process that it makes; it has one line in the
//! registry.

use core::fmt;

use cwnd_units::{Bytes, Duration, Params, Rng, params, registry};

use crate::application::PoissonArrivals;
use crate::listed::Listed;
use crate::users::User;

registry! {
    /// How connections arrive, with its parameters.
    #[each(each_process)]
    pub enum ArrivalParams {
        None(none),
        Poisson(poisson),
        OnOff(on_off),
        List(list),
        Closed(closed),
    }
}

params! {
    /// How often connections arrive: `interval` or `load`.
    pub struct Pace {
        /// Mean time between arrivals of each process; of one with pauses, while it is on. Where `load` is given, what it comes to.
        #[source("none")]
        #[bounds(above Duration::ZERO; "arrivals with no time between them would have no end")]
        pub interval: Option<Duration> = None,
        /// What the group offers in the long run, as a share of a link's rate: the mean size with headers and SYN, each byte once.
        #[source("none")]
        #[bounds(above 0.0, up_to 100.0)]
        pub load: Option<f64> = None,
        /// The link that `load` is a share of; `"busiest"` is the one on the way of the data that the group loads most.
        #[source("cwnd: the link that limits the group")]
        pub link: String = BUSIEST.to_owned(),
    }
}

/// The link that a group loads most.
pub const BUSIEST: &str = "busiest";

/// What is to be known of a kind of arrivals where it is of no interest which it is.
pub trait Arriving: Params {
    /// Makes a process.
    fn process(&self) -> Box<dyn Process>;

    /// `true` of the kind that stands for no arrivals.
    fn is_none(&self) -> bool {
        false
    }

    /// How often connections arrive, where a rate says so.
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

    /// Whether a connection comes only once the one before it is over.
    fn waits(&self) -> bool {
        false
    }

    /// What was recorded, in order of time; of other kinds nothing.
    fn rows(&self) -> &[Listed] {
        &[]
    }

    /// What is wrong with it once everything is known: the key and the reason.
    ///
    /// # Errors
    /// If no process could be made of it.
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
    /// What others must know of it.
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

/// What arrives next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Next {
    /// How long after the one before it, or after the process began.
    pub gap: Duration,
    /// Which of the rows it is, if they were recorded.
    pub row: Option<usize>,
    /// How much it transfers, if that was recorded.
    pub size: Option<Bytes>,
}

impl Next {
    /// One of which no more is known.
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

impl Process for User {
    fn next(&mut self, rng: &mut Rng) -> Option<Next> {
        self.opens(rng).map(Next::after)
    }

    fn over(&mut self, rng: &mut Rng) -> Option<Next> {
        User::over(self, rng).map(Next::after)
    }

    fn hears(&self) -> bool {
        true
    }

    fn is_done(&self) -> bool {
        User::is_done(self)
    }
}
