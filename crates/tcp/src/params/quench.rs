//! Response to source quenches (RFC 1016, RFC 5927, RFC 6633).

use cwnd_quantity::Duration;
use cwnd_schema::{Choice, Schema};

/// Response of a sender to a source quench.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum QuenchAnswer {
    /// The controller reduces the window, at most once a round trip (BECN § IV-B).
    #[name("reduce")]
    Reduce,
    /// The sender pauses between packets (RFC 1016, SQuID); the window stays.
    #[name("pause")]
    Pause,
}

/// Source quenches that a sender believes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum QuenchCheck {
    /// Those that quote data that is outstanding (RFC 5927 § 4.1).
    #[name("in-flight")]
    InFlight,
    /// All.
    #[name("none")]
    None,
}

/// Response to source quenches.
#[derive(Clone, Debug, PartialEq, Schema)]
#[idle(
    [squid_step, squid_min_pause, squid_decrease, squid_event, squid_period],
    !self.obey_quench || self.quench_answer != QuenchAnswer::Pause,
    "without `quench_answer = \"pause\"`"
)]
pub struct Params {
    /// `true` if the sender obeys a router's source quench. With `quench_answer = "reduce"`, a
    /// quench reduces the window at most once a round trip, together with all other causes. Serves
    /// experiments on source quenches (BECN), and attacks by forged ones.
    #[default(false, "RFC 6633 § 3: hosts ignore them")]
    pub obey_quench: bool,
    /// Response to a source quench that the sender obeys. Serves experiments on source quenches:
    /// smaller windows (BECN) and pauses (RFC 1016).
    #[default(QuenchAnswer::Reduce, "BECN § IV-B")]
    #[idle(!self.obey_quench, "without `obey_quench`")]
    pub quench_answer: QuenchAnswer,
    /// Source quenches that the sender believes. Serves experiments on off-path attacks by forged
    /// quenches.
    #[default(QuenchCheck::InFlight, "RFC 5927 § 4.1")]
    pub quench_check: QuenchCheck,
    /// After so many quenches of a round trip that quote nothing outstanding the rest of that round
    /// trip's are not believed either; none is no limit. Nothing with `quench_check = "none"`.
    /// Serves experiments on off-path attacks by forged quenches.
    #[default(Some(10), "RFC 5927 has none; RFC 5961 § 7 answers 10 doubtful segments in 5 s")]
    #[idle(self.quench_check == QuenchCheck::None, "with `quench_check = \"none\"`")]
    #[was("quench_guesses")]
    pub quench_max_guesses: Option<u32>,
    /// With `quench_answer = "pause"`: how long.
    #[flatten(SquidParams::default())]
    pub squid: SquidParams,
}

/// Parameters of RFC 1016, "The SQuID Algorithm".
#[derive(Clone, Debug, PartialEq, Schema)]
pub struct SquidParams {
    /// K: by how much an increase event makes the pause longer. Serves experiments on source
    /// quenches answered by pauses (RFC 1016).
    #[default(Duration::from_millis(20), "RFC 1016: 20 ms")]
    pub squid_step: Duration,
    /// I: the shortest pause after an increase event. Serves experiments on source quenches
    /// answered by pauses (RFC 1016).
    #[default(Duration::from_millis(75), "RFC 1016: 75 ms")]
    #[was("squid_least")]
    pub squid_min_pause: Duration,
    /// J: by how much a decrease event makes it shorter. Serves experiments on source quenches
    /// answered by pauses (RFC 1016).
    #[default(Duration::from_millis(1), "RFC 1016: 1 ms")]
    pub squid_decrease: Duration,
    /// E: the quenches that come within this time of the first are one increase event. Serves
    /// experiments on source quenches answered by pauses (RFC 1016).
    #[default(Duration::from_secs(2), "RFC 1016: 2 s")]
    pub squid_event: Duration,
    /// S: the pause becomes shorter at the first packet after so long a time. Serves experiments on
    /// source quenches answered by pauses (RFC 1016).
    #[default(Duration::from_secs(1), "RFC 1016: 1 s")]
    pub squid_period: Duration,
}
