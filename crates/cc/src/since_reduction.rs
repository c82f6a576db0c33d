//! H-TCP's increase: α grows with the time since the last reduction. Any controller with additive
//! increase may use it.

use cwnd_quantity::{Duration, Time};
use cwnd_schema::Schema;

/// Additive increase of a window, by the time since its last reduction.
#[derive(Clone, Debug, PartialEq, Schema)]
pub struct HTcpIncrease {
    /// Δ_L: so long after a reduction the window grows by 2 (1 − β) segments per round trip, with β
    /// = 1/2 as Reno's does.
    #[default(
        Duration::from_secs(1),
        "Leith & Shorten 2004: 1 s; draft-leith-tcp-htcp-06, Linux and FreeBSD as well"
    )]
    pub delta_low: Duration,
    /// `true` if α is multiplied by minRTT / 100 ms, 0.1 to 2, so that growth per second does not
    /// depend on the round trip. The factor on 2 (1 − β) is no less than 1.
    #[default(false, "Linux tcp_htcp.c use_rtt_scaling: on; an option of the draft")]
    pub rtt_scaling: bool,
}

/// Time of the window's last reduction; before any, that of the first call of `alpha`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SinceReduction {
    since: Option<Time>,
}

impl SinceReduction {
    /// Notes a reduction at `now`.
    pub(crate) fn reduced(&mut self, now: Time) {
        self.since = Some(now);
    }

    /// Returns α, in segments per round trip, for a sender whose last backoff left the part `beta`.
    /// Before the first reduction, time counts from the first call.
    pub(crate) fn alpha(
        &mut self,
        increase: &HTcpIncrease,
        now: Time,
        min_rtt: Option<Duration>,
        beta: f64,
    ) -> f64 {
        let since = *self.since.get_or_insert(now);
        let beyond = now.since(since).saturating_sub(increase.delta_low).0 as f64 / 1e9;
        // 1 + 10 (Δ − Δ_L) + ((Δ − Δ_L) / 2)².
        let mut factor = 1.0 + 10.0 * beyond + beyond * beyond / 4.0;
        if let (true, Some(min_rtt)) = (increase.rtt_scaling, min_rtt) {
            let scale = (min_rtt.0 as f64 / REFERENCE.0 as f64).clamp(0.1, 2.0);
            factor = (factor * scale).max(1.0);
        }
        // With β = 1/2 this is Reno's one segment per round trip; a smaller backoff grows in
        // proportion less.
        2.0 * (1.0 - beta) * factor
    }
}

/// RTT at which growth is not scaled.
const REFERENCE: Duration = Duration::from_millis(100);
