//! Parameters of BBR; sections are of draft-cardwell-iccrg-bbr-congestion-control-00.

use cwnd_packet::{Ability, Contract, HasContract};
use cwnd_quantity::Duration;
use cwnd_schema::{PresetOf, Presets, Schema};

/// BBR, version 1.
#[derive(Clone, Debug, PartialEq, Schema)]
#[schema(presets)]
pub struct Params {
    /// BBRHighGain: gain of pacing rate and window until the pipe is full. In Drain it is still the
    /// gain of the window, and the pacing gain is its inverse.
    #[default(
        2.885_390_081_777_927,
        "draft-cardwell-iccrg-bbr-congestion-control-00 § 4.3.2.1: 2 / ln 2"
    )]
    #[bounds(above 1.0; "it would never find more")]
    pub startup_gain: f64,
    /// Pacing gain in the phase that probes for more bandwidth.
    #[default(1.25, "draft-cardwell-iccrg-bbr-congestion-control-00 § 4.3.4.1: 5/4")]
    #[bounds(above 1.0; "it would never find more")]
    pub probe_gain: f64,
    /// Pacing gain in the next phase, which drains the queue of the probe.
    #[default(0.75, "draft-cardwell-iccrg-bbr-congestion-control-00 § 4.3.4.1: 3/4")]
    #[bounds(above 0.0, below 1.0; "the queue would stay")]
    pub drain_gain: f64,
    /// Window in ProbeBW, in bandwidth-delay products; three send quanta are added.
    #[default(2.0, "draft-cardwell-iccrg-bbr-congestion-control-00 § 4.3.4.1: 2")]
    #[bounds(from 1.0; "it could not use the link")]
    pub cwnd_gain: f64,
    /// BtlBwFilterLen: round trips over which the bandwidth is the largest sample.
    #[default(10, "draft-cardwell-iccrg-bbr-congestion-control-00 § 2: 10")]
    #[bounds(from 1, up_to 1000; "it counts round trips")]
    pub bandwidth_rounds: u32,
    /// RTpropFilterLen and ProbeRTTInterval: age at which the least RTT is measured again.
    #[default(
        Duration::from_secs(10),
        "draft-cardwell-iccrg-bbr-congestion-control-00 § 4.1.2.2, 4.3.5: 10 s"
    )]
    #[bounds(above Duration::ZERO; "it would do nothing else")]
    pub min_rtt_window: Duration,
    /// `true` if an RTT equal to the minimum also renews it; otherwise only a lower RTT does.
    #[default(
        true,
        "draft-cardwell-iccrg-bbr-congestion-control-00 § 4.1.2.3; not in Linux 6.18 \
        (bbr_update_min_rtt)"
    )]
    pub equal_refreshes: bool,
    /// ProbeRTTDuration: time for which a probe for the least RTT keeps the least window.
    #[default(
        Duration::from_millis(200),
        "draft-cardwell-iccrg-bbr-congestion-control-00 § 4.3.5: 200 ms"
    )]
    pub probe_rtt: Duration,
    /// BBRMinPipeCwnd: least window, segments.
    #[default(4, "draft-cardwell-iccrg-bbr-congestion-control-00 § 4.2.3.3: 4")]
    #[bounds(from 2; "ACKs of a single segment may be delayed")]
    pub least_window: u32,
    /// Part by which the pacing rate is lowered.
    #[default(0.0, "Linux 6.18 (bbr_pacing_margin_percent): 1 %; none in the draft")]
    #[bounds(from 0.0, below 1.0; "nothing would go")]
    pub pacing_margin: f64,
    /// Gain for ACK aggregation: the multiple, added to the window, of the data acknowledged ahead
    /// of the bandwidth estimate.
    #[default(0.0, "Linux 6.18 (bbr_extra_acked_gain): 1; none in the draft")]
    #[bounds(from 0.0; "it adds to the window")]
    pub surplus_gain: f64,
}

impl Presets for Params {
    const PRESETS: &'static [PresetOf<Self>] = &[
        PresetOf::new(
            "draft",
            "draft-cardwell-iccrg-bbr-congestion-control-00; the default where the stack has none.",
            Self::default,
        ),
        PresetOf::new("linux", "Linux's `bbr`, but for its estimate of policers.", || Self {
            equal_refreshes: false,
            pacing_margin: 0.01,
            surplus_gain: 1.0,
            ..Self::default()
        }),
    ];
}

impl HasContract for Params {
    fn contract(&self) -> Contract {
        Contract::new().wants(Ability::Pacing, "its pace is what keeps the queue short")
    }
}
