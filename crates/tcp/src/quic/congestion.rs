//! Congestion control (RFC 9002 § 7, appendix B): the events that reach a controller.

use cwnd_cc::{
    AckSample, AnyController, Cause, Controller as _, GrowthPermission, Path, Phase, Request,
    Signal,
};
use cwnd_quantity::{Duration, Time};

use super::SentPacket;

/// A controller and the recovery period that decides which events it sees.
#[derive(Clone, Debug)]
pub struct Congestion {
    controller: AnyController,
    /// max_datagram_size, bytes.
    mds: u32,
    /// Start of the newest recovery period (congestion_recovery_start_time); `None` before one, and
    /// after persistent congestion.
    start: Option<Time>,
    /// `true` from a reduction until a packet sent after it is acknowledged (§ 7.3.2), or until
    /// persistent congestion.
    recovers: bool,
    /// Bytes acknowledged, and bytes sent.
    delivered: u64,
    sent: u64,
    /// Round trips, and bytes sent when the newest began; it ends once as many are acknowledged.
    round: (u64, u64),
    /// Packets received with CE, as far as the receiver reported.
    ce: u64,
    /// Reductions of the window, by [`Cause::index`].
    reductions: [u64; Cause::COUNT],
}

/// Time, RTT estimates and bytes in flight at an event.
#[derive(Clone, Copy, Debug, Default)]
pub struct Moment {
    /// The current time.
    pub now: Time,
    /// smoothed_rtt; `None`, like the next two, before the first sample.
    pub smoothed: Option<Duration>,
    /// min_rtt.
    pub min: Option<Duration>,
    /// latest_rtt.
    pub latest: Option<Duration>,
    /// Bytes in flight before the event.
    pub in_flight: u64,
}

impl Congestion {
    /// Creates the state of a new connection on a path for datagrams of `mds` bytes.
    #[must_use]
    pub const fn new(controller: AnyController, mds: u32) -> Self {
        Self {
            controller,
            mds,
            start: None,
            recovers: false,
            delivered: 0,
            sent: 0,
            round: (0, 0),
            ce: 0,
            reductions: [0; Cause::COUNT],
        }
    }

    /// Returns the congestion window in bytes, at least kMinimumWindow (§ 7.2).
    #[must_use]
    pub fn window(&self) -> u64 {
        self.controller.window().cwnd.max(2 * u64::from(self.mds))
    }

    /// Returns the controller.
    #[must_use]
    pub const fn controller(&self) -> &AnyController {
        &self.controller
    }

    /// Returns the packets received with CE, as far as the receiver reported.
    #[must_use]
    pub const fn ce(&self) -> u64 {
        self.ce
    }

    /// Returns the reductions of the window, by [`Cause::index`]; that of persistent congestion is
    /// no part of them.
    #[must_use]
    pub const fn reductions(&self) -> [u64; Cause::COUNT] {
        self.reductions
    }

    /// Returns the start of the newest recovery period; `None` before one, and after persistent
    /// congestion (§ 7.6.2).
    #[must_use]
    pub const fn recovery_start(&self) -> Option<Time> {
        self.start
    }

    /// `true` from a reduction until a packet sent after it is acknowledged (§ 7.3.2), or until
    /// persistent congestion.
    #[must_use]
    pub const fn is_recovering(&self) -> bool {
        self.recovers
    }

    /// Counts the bytes of a packet sent in flight (§ B.4).
    pub fn on_sent(&mut self, bytes: u32) {
        self.sent += u64::from(bytes);
    }

    /// Processes newly acknowledged packets (OnPacketsAcked, § B.5). Only those sent after the
    /// start of the newest recovery period end it and grow the window (§ 7.3.2), which does not
    /// grow if it was underused (`limited`, § 7.8). A reduction that the controller asks for is
    /// made, unless another was made at the same time.
    pub fn on_acked(&mut self, at: &Moment, packets: &[SentPacket], limited: bool) {
        let counts = |packet: &&SentPacket| self.start.is_none_or(|start| packet.at > start);
        let bytes = |packet: &SentPacket| u64::from(packet.bytes);
        let acked: u64 = packets.iter().map(bytes).sum();
        let counted: u64 = packets.iter().filter(counts).map(bytes).sum();
        if acked == 0 {
            return;
        }
        self.recovers &= counted == 0;
        self.delivered += acked;
        if self.delivered >= self.round.1 {
            self.round = (self.round.0 + 1, self.sent);
        }
        let mut path = self.path(at);
        path.cwnd_limited = !limited;
        let sample = AckSample {
            acked_bytes: if counted > 0 { counted } else { acked },
            rtt: at.latest,
            grow: if counted > 0 && !limited {
                GrowthPermission::Yes
            } else {
                GrowthPermission::No
            },
            ..AckSample::default()
        };
        if let Request::Reduce(cause) = self.controller.on_ack(&path, &sample) {
            self.on_event(at, at.now, cause);
        }
    }

    /// Processes lost packets, the last of which was sent at `last` (OnPacketsLost, § B.8). They
    /// reduce the window once per recovery period. Persistent congestion reduces it to
    /// kMinimumWindow and ends recovery (§ 7.6.2).
    pub fn on_lost(&mut self, at: &Moment, last: Time, persistent: bool) {
        self.on_event(at, last, Cause::Loss);
        if persistent {
            let signal = Signal::Timeout { nth: 1, reduces: false };
            self.controller.on_signal(&self.path(at), signal);
            // A controller's timeout leaves one datagram, but kMinimumWindow is two.
            self.controller.add_in_flight(u64::from(self.mds));
            (self.start, self.recovers) = (None, false);
        }
    }

    /// Processes the receiver's count of packets marked CE (ProcessECN, § B.7): a larger count than
    /// before shows congestion. The largest newly acknowledged packet was sent at `sent`.
    pub fn on_ecn(&mut self, at: &Moment, ce: u64, sent: Time) {
        if ce > self.ce {
            self.ce = ce;
            self.on_event(at, sent, Cause::Ecn);
        }
    }

    /// Reduces the window and starts a recovery period (OnCongestionEvent, § B.6), unless the
    /// packet that shows congestion was sent before the newest period or at its start.
    fn on_event(&mut self, at: &Moment, sent: Time, cause: Cause) {
        if self.start.is_none_or(|start| sent > start) {
            (self.start, self.recovers) = (Some(at.now), true);
            self.reductions[cause.index()] += 1;
            self.controller.on_signal(&self.path(at), Signal::Reduce(cause));
        }
    }

    const fn path(&self, at: &Moment) -> Path {
        Path {
            now: at.now,
            mss: self.mds,
            srtt: at.smoothed,
            min_rtt: at.min,
            rtt: at.latest,
            flight_size: at.in_flight,
            delivered: self.delivered,
            sent: self.sent,
            phase: if self.recovers { Phase::Recovery } else { Phase::Open },
            cwnd_limited: true,
            round: self.round.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use cwnd_cc::newreno::Params;
    use cwnd_cc::{Base, ControllerParams, GrowthRules, Rule};

    use super::*;
    use crate::quic::start;

    const MDS: u32 = 1000;

    fn congestion() -> Congestion {
        let growing = GrowthRules { abc_limit: None, ..GrowthRules::default() };
        let rule = Rule { base: Base::Cwnd, ..Rule::default() };
        let params = ControllerParams::NewReno(Params { growing, rule, ..Params::default() });
        Congestion::new(params.build(&start(MDS)), MDS)
    }

    fn moment(now: u64) -> Moment {
        Moment { now: Time(now), ..Moment::default() }
    }

    fn packet(at: u64) -> SentPacket {
        let at = Time(at);
        SentPacket { number: 0, at, bytes: MDS, ack_eliciting: true, start: 0, len: 900 }
    }

    #[test]
    fn slow_start_grows_by_what_is_acknowledged_unless_the_application_limits() {
        let mut congestion = congestion();
        congestion.on_acked(&moment(10), &[packet(1), packet(0)], false);
        assert_eq!(congestion.window(), 12_000);
        congestion.on_acked(&moment(10), &[packet(2)], true);
        assert_eq!(congestion.window(), 12_000);
    }

    #[test]
    fn packets_sent_before_recovery_neither_reduce_nor_grow_the_window() {
        let mut congestion = congestion();
        congestion.on_lost(&moment(10), Time(3), false);
        congestion.on_lost(&moment(11), Time(10), false);
        congestion.on_ecn(&moment(12), 1, Time(9));
        congestion.on_acked(&moment(12), &[packet(10)], false);
        assert_eq!((congestion.window(), congestion.recovery_start()), (5000, Some(Time(10))));
        assert!(congestion.is_recovering());
        // § 7.3.2: a packet sent during recovery ends it.
        congestion.on_acked(&moment(20), &[packet(11)], false);
        assert!(!congestion.is_recovering());
        congestion.on_ecn(&moment(21), 2, Time(11));
        congestion.on_ecn(&moment(22), 2, Time(22));
        assert_eq!(congestion.window(), 2500, "a count that stays shows nothing new");
    }

    #[test]
    fn persistent_congestion_leaves_two_datagrams_and_ends_recovery() {
        let mut congestion = congestion();
        congestion.on_lost(&moment(10), Time(3), true);
        assert_eq!((congestion.window(), congestion.recovery_start()), (2000, None));
        congestion.on_acked(&moment(11), &[packet(4)], false);
        assert_eq!(congestion.window(), 3000, "slow start, for packets sent before as well");
    }
}
