//! How the connections of a group arrive while the run goes on, whatever each of them sends.
//!
//! A kind is its parameters, what it states of itself ([`Arriving`]) and the process that it makes; it has one line in the
//! registry below.

use cwnd_units::{Bytes, Duration, DurationDist, Rng, params, params_choice};

use crate::application::PoissonArrivals;
use crate::listed::{Listed, Rows};
use crate::users::User;

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

params! {
    /// No arrivals.
    pub struct Lasting {}
}

params! {
    /// Independent arrivals.
    pub struct Poisson {
        /// How often.
        #[flatten()]
        pub pace: Pace = Pace::default(),
    }
}

params! {
    /// Independent arrivals for a while, then none for a while.
    pub struct OnOff {
        /// How often.
        #[flatten()]
        pub pace: Pace = Pace::default(),
        /// How long connections arrive, drawn each time.
        #[source("none")]
        pub on: DurationDist,
        /// How long none does after that, drawn each time.
        #[source("none")]
        pub off: DurationDist,
    }
    presets {
        /// Flash crowds (Mondal & Kuzmanovic 2008, § 4.6): Pareto periods of 16 s and 8 s in the mean, 200 connections a second;
        /// the paper has no shape, 1.5 is that of ns-2's Pareto on/off source.
        "flash-crowd" => Self {
            pace: Pace { interval: Some(Duration::from_millis(5)), ..Pace::default() },
            on: pareto(Duration::from_secs(16)),
            off: pareto(Duration::from_secs(8)),
        },
    }
}

params! {
    /// Arrivals that were recorded.
    pub struct List {
        /// A CSV file with the column `time_s` and, where they are known, `server`, `client` and `size_bytes`; or its rows in the
        /// scenario itself, `"0.5 s, server, client, 30 kB; 1 s, …"`.
        #[source("none")]
        pub rows: Rows,
    }
}

params! {
    /// Users in a closed loop: each opens a connection, and the next when that one is over and a pause has passed.
    pub struct Closed {
        /// From the end of a connection, its last acknowledgement or where it was given up, to the next, drawn each time.
        #[source("none")]
        pub pause: DurationDist,
    }
}

/// What is to be known of a kind of arrivals where it is of no interest which it is.
pub trait Arriving {
    /// Makes a process.
    fn process(&self) -> Process;

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

impl Arriving for Lasting {
    fn process(&self) -> Process {
        Process::List { rows: Rows::default(), next: 0 }
    }
}

impl Arriving for Poisson {
    fn process(&self) -> Process {
        Process::Poisson(self.pace.gaps())
    }
    fn pace(&self) -> Option<&Pace> {
        Some(&self.pace)
    }
    fn pace_mut(&mut self) -> Option<&mut Pace> {
        Some(&mut self.pace)
    }
}

impl Arriving for OnOff {
    fn process(&self) -> Process {
        let (on, off) = (self.on.clone(), self.off.clone());
        Process::OnOff(Box::new(Bursts { gaps: self.pace.gaps(), on, off, left: None }))
    }
    fn pace(&self) -> Option<&Pace> {
        Some(&self.pace)
    }
    fn pace_mut(&mut self) -> Option<&mut Pace> {
        Some(&mut self.pace)
    }
    fn on_share(&self) -> f64 {
        let (on, off) = (self.on.0.mean(), self.off.0.mean());
        on / (on + off)
    }
    fn settled(&self) -> Result<(), (&'static str, String)> {
        let interval = self.pace.gaps().mean;
        // About so many periods pass without an arrival, each of which takes a draw.
        let useful = self.on.0.limited_mean(interval.0 as f64);
        if useful * MOST_EMPTY < interval.0 as f64 {
            let message = format!(
                "periods of {} are over before a connection arrives, once in {interval}",
                self.on
            );
            return Err(("on", message));
        }
        Ok(())
    }
}

impl Arriving for List {
    fn process(&self) -> Process {
        Process::List { rows: self.rows.clone(), next: 0 }
    }
    fn rows(&self) -> &[Listed] {
        self.rows.listed()
    }
}

impl Arriving for Closed {
    fn process(&self) -> Process {
        Process::Closed { pause: self.pause.clone(), begun: false }
    }
    fn waits(&self) -> bool {
        true
    }
}

/// More empty periods in a row than this are refused.
const MOST_EMPTY: f64 = 1_000.0;

fn pareto(mean: Duration) -> DurationDist {
    use cwnd_units::dist::{Shape, Width};
    DurationDist(Shape::Pareto(1.5, Width::Mean(mean.0)))
}

impl Pace {
    fn gaps(&self) -> PoissonArrivals {
        PoissonArrivals { mean: self.interval.unwrap_or(Duration::MAX) }
    }
}

/// The registry: a kind is one line of it.
macro_rules! arrivals {
    ($( $(#[doc = $doc:literal])+ $kind:ident($params:ident) = $text:literal, )+) => {
        params_choice! {
            /// How connections arrive, with its parameters.
            pub enum ArrivalParams { $( $(#[doc = $doc])+ $kind($params) = $text, )+ }
        }

        impl Default for ArrivalParams {
            fn default() -> Self {
                Self::None(Lasting::default())
            }
        }

        impl ArrivalParams {
            /// What others must know of it.
            #[must_use]
            pub fn arriving(&self) -> &dyn Arriving {
                match self { $( Self::$kind(params) => params, )+ }
            }

            /// As [`ArrivalParams::arriving`], to be set.
            pub fn arriving_mut(&mut self) -> &mut dyn Arriving {
                match self { $( Self::$kind(params) => params, )+ }
            }
        }
    };
}

arrivals! {
    /// None arrives: flows are there from the beginning, or come as their workload says.
    None(Lasting) = "none",
    /// Independent of each other: exponential gaps.
    Poisson(Poisson) = "poisson",
    /// Independent of each other while they are on; then there are none for a while.
    OnOff(OnOff) = "on-off",
    /// As they were recorded: when, between whom, how much.
    List(List) = "list",
    /// Users in a closed loop: a connection, a pause, the next.
    Closed(Closed) = "closed",
}

impl From<PoissonArrivals> for ArrivalParams {
    fn from(arrivals: PoissonArrivals) -> Self {
        let pace = Pace { interval: Some(arrivals.mean), ..Pace::default() };
        Self::Poisson(Poisson { pace })
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

/// A process that goes on.
#[derive(Clone, Debug)]
pub enum Process {
    /// Without memory.
    Poisson(PoissonArrivals),
    /// With pauses.
    OnOff(Box<Bursts>),
    /// From a list.
    List {
        /// All of it.
        rows: Rows,
        /// How much of it has come.
        next: usize,
    },
    /// One after the other.
    Closed {
        /// From the end of each to the next.
        pause: DurationDist,
        /// Whether the first has come.
        begun: bool,
    },
    /// The connections of a user.
    User(Box<User>),
}

/// Arrivals with pauses; it begins with a period in which they come.
#[derive(Clone, Debug)]
pub struct Bursts {
    gaps: PoissonArrivals,
    on: DurationDist,
    off: DurationDist,
    /// What is left of the period; `None` before the first.
    left: Option<Duration>,
}

impl Process {
    /// The next arrival; `None` if there is none any more, or if it [waits](Self::over) for the one before it.
    pub fn next(&mut self, rng: &mut Rng) -> Option<Next> {
        let gap = match self {
            Self::Poisson(gaps) => gaps.gap(rng),
            Self::OnOff(bursts) => bursts.gap(rng),
            Self::List { rows, next } => {
                let row = *next;
                *next += 1;
                let (listed, before) = (rows.listed().get(row)?, row.checked_sub(1));
                let before = before.map_or(Duration::ZERO, |i| rows.listed()[i].at);
                let gap = listed.at.saturating_sub(before);
                return Some(Next { gap, row: Some(row), size: listed.size });
            }
            Self::Closed { begun: true, .. } => return None,
            Self::Closed { begun, .. } => {
                *begun = true;
                Duration::ZERO
            }
            Self::User(user) => return user.opens(rng).map(Next::after),
        };
        Some(Next::after(gap))
    }

    /// What comes after a connection of it that is over now; `None` if that has nothing to do with it.
    pub fn over(&mut self, rng: &mut Rng) -> Option<Next> {
        match self {
            // Time passes in every pause.
            Self::Closed { pause, .. } => Some(Next::after(pause.sample(rng).max(Duration(1)))),
            Self::User(user) => user.over(rng).map(Next::after),
            Self::Poisson(_) | Self::OnOff(_) | Self::List { .. } => None,
        }
    }

    /// Whether it is to hear when its connections are over.
    #[must_use]
    pub const fn hears(&self) -> bool {
        matches!(self, Self::Closed { .. } | Self::User(_))
    }

    /// Whether nothing comes any more, now that none of its connections is open; of those that do not hear of ends it is not known.
    #[must_use]
    pub fn is_done(&self) -> bool {
        match self {
            Self::User(user) => user.is_done(),
            _ => false,
        }
    }
}

impl Bursts {
    /// The gap in time that is on, and all pauses that fall into it.
    fn gap(&mut self, rng: &mut Rng) -> Duration {
        let mut left = self.left.take().unwrap_or_else(|| self.on.sample(rng));
        let mut busy = self.gaps.gap(rng);
        let mut gap = Duration::ZERO;
        while busy > left {
            busy = busy.saturating_sub(left);
            gap = gap.saturating_add(left).saturating_add(self.off.sample(rng));
            left = self.on.sample(rng);
            if gap >= NEVER {
                break;
            }
        }
        self.left = Some(left.saturating_sub(busy));
        gap.saturating_add(busy)
    }
}

/// Longer than any run.
const NEVER: Duration = Duration(u64::MAX / 2);
