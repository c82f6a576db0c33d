//! Controllers that routers steer: the response of XCP and RCP to an echo, the headers that they
//! write, and DCTCP under any marks.

use cwnd_cc::dctcp::{Dctcp, Params};
use cwnd_cc::newreno::{self, NewReno};
use cwnd_cc::{
    AckSample, Cause, Controller, GrowthPermission, OutgoingData, Path, Request, Signal, Start,
    rcp, xcp,
};
use cwnd_packet::{CongestionHeader, Echo, Ecn};
use cwnd_quantity::{Duration, Rate};
use proptest::prelude::*;

use crate::{MSS, start};

fn path() -> Path {
    let ms = Duration::from_millis;
    let (srtt, rtt) = (Some(ms(100)), Some(ms(120)));
    Path { mss: MSS as u32, srtt, rtt, cwnd_limited: true, ..Path::default() }
}

fn outgoing(path: &Path) -> OutgoingData<'_> {
    OutgoingData { now: path.now, mss: path.mss, delivered: 0, sent: 0, rtts: path }
}

fn ack(acked: u64, echo: Echo) -> AckSample {
    AckSample { acked_bytes: acked, echo, ..AckSample::default() }
}

#[test]
fn xcp_adds_what_routers_say_down_to_a_segment() {
    let mut c = xcp::Xcp::new(&xcp::Params::default(), &start(10));
    for (delta, cwnd) in [(700, 10_700), (-1_200, 9_500), (0, 9_500), (i32::MIN, 1_000), (1, 1_001)]
    {
        let _ = c.on_ack(&path(), &ack(MSS, Echo::Delta(delta)));
        assert_eq!(c.window().cwnd, cwnd, "{delta}");
    }
    // An ACK without feedback changes nothing.
    let _ = c.on_ack(&path(), &ack(5 * MSS, Echo::None));
    assert_eq!(c.window().cwnd, 1_001);
}

#[test]
fn xcp_takes_less_but_no_more_where_the_window_is_not_the_limit() {
    let mut c = xcp::Xcp::new(&xcp::Params::default(), &start(10));
    let unused = Path { cwnd_limited: false, ..path() };
    for (delta, cwnd) in [(700, 10_000), (-1_200, 8_800)] {
        let _ = c.on_ack(&unused, &ack(MSS, Echo::Delta(delta)));
        assert_eq!(c.window().cwnd, cwnd);
    }
}

#[test]
fn xcp_hears_duplicates_and_ns2s_does_not() {
    for (params, cwnd) in [(xcp::Params::default(), 10_300), (ns2(), 10_000)] {
        let mut c = xcp::Xcp::new(&params, &start(10));
        let _ = c.on_ack(&path(), &ack(0, Echo::Delta(300)));
        assert_eq!(c.window().cwnd, cwnd);
    }
}

fn ns2() -> xcp::Params {
    let mut params = xcp::Params::default();
    assert!(cwnd_schema::Params::apply_preset(&mut params, "ns2"));
    params
}

#[test]
fn xcp_answers_losses_as_tcp_does_and_grows_by_feedback_alone() {
    let mut c = xcp::Xcp::new(&xcp::Params::default(), &start(10));
    c.on_signal(&path(), Signal::Reduce(Cause::Loss));
    assert_eq!((c.window().cwnd, c.window().ssthresh), (5_000, 5_000));
    c.on_signal(&path(), Signal::Timeout { nth: 1, reduces: true });
    assert_eq!((c.window().cwnd, c.window().ssthresh), (1_000, 2_500));
    c.on_signal(&path(), Signal::Timeout { nth: 2, reduces: false });
    assert_eq!((c.window().cwnd, c.window().ssthresh), (1_000, 2_500));
    let _ = c.on_ack(&path(), &ack(MSS, Echo::Delta(0)));
    assert_eq!(c.window().cwnd, 1_000, "there is no slow start");
}

#[test]
fn xcp_writes_its_window_its_round_trip_and_what_it_wants() {
    let bounded = Start { max_window: 25_000, ..start(10) };
    let mut c = xcp::Xcp::new(&xcp::Params::default(), &bounded);
    let _ = c.on_ack(&path(), &ack(MSS, Echo::Delta(500)));
    // (25000 − 10500) / 10 packets.
    let header = CongestionHeader::Xcp { cwnd: 10_500, rtt_us: 100_000, delta: 1_450 };
    assert_eq!(c.stamp(&outgoing(&path())), header);
    let mut c = xcp::Xcp::new(&ns2(), &start(10));
    let _ = c.on_ack(&path(), &ack(MSS, Echo::Delta(500)));
    let header = CongestionHeader::Xcp { cwnd: 10_000, rtt_us: 0, delta: i32::MAX };
    assert_eq!(c.stamp(&outgoing(&Path { srtt: None, ..path() })), header);
}

#[test]
fn rcp_sends_at_the_newest_rate_and_losses_change_nothing() {
    let mut c = rcp::Rcp::new(&rcp::Params::default(), &start(10));
    assert_eq!((c.pacing(), c.window().cwnd), (None, 10_000));
    for mbit in [8, 2, 80] {
        let rate = Rate::from_mbit(mbit);
        let _ = c.on_ack(&path(), &ack(0, Echo::Rate(rate.into())));
        assert_eq!(c.pacing(), Some(rate));
        // Four round trips of 100 ms.
        assert_eq!(c.window().cwnd, mbit * 50_000);
    }
    c.on_signal(&path(), Signal::Reduce(Cause::Loss));
    c.on_signal(&path(), Signal::Timeout { nth: 1, reduces: true });
    assert_eq!((c.pacing(), c.window().cwnd), (Some(Rate::from_mbit(80)), 4_000_000));
    c.on_signal(&path(), Signal::Idle { idle: Duration::from_secs(2), keep: None });
    assert_eq!((c.pacing(), c.window().cwnd), (None, 10_000));
}

#[test]
fn rcp_of_a_rate_below_a_packet_in_a_round_trip_may_have_two_outstanding() {
    let mut c = rcp::Rcp::new(&rcp::Params::default(), &start(10));
    for bits in [0, 1, 7_999] {
        let _ = c.on_ack(&path(), &ack(MSS, Echo::Rate(Rate(bits).into())));
        assert_eq!((c.pacing(), c.window().cwnd), (Some(Rate(bits.max(1))), 2_000));
    }
}

#[test]
fn rcp_asks_for_any_rate_and_tells_the_newest_round_trip() {
    let mut c = rcp::Rcp::new(&rcp::Params::default(), &start(10));
    let header = CongestionHeader::Rcp { rate: Rate(u64::MAX), rtt_us: 120_000 };
    assert_eq!(c.stamp(&outgoing(&path())), header);
}

fn dctcp_start() -> Start {
    Start {
        mss: 1000,
        initial_window: 10 * MSS,
        initial_ssthresh: 20 * MSS,
        max_window: u64::MAX,
        delayed_acks: false,
    }
}

/// Sender of windows of data, some of whose segments are marked; each segment has its ACK, and the
/// controller is reduced at the first mark of a window.
struct Sender {
    controller: Dctcp,
    path: Path,
}

impl Sender {
    fn new(params: &Params) -> Self {
        let path = Path { mss: 1000, cwnd_limited: true, ..Path::default() };
        Self { controller: Dctcp::new(params, &dctcp_start()), path }
    }

    /// Sends a window; `is_marked` selects the marked segments by their number since the start.
    fn window(&mut self, is_marked: impl Fn(u64) -> bool) {
        let segments = self.controller.window().cwnd / MSS;
        self.path.sent = self.path.delivered + segments * MSS;
        let mut answered = false;
        for _ in 0..segments {
            let n = self.path.delivered / MSS;
            self.path.flight_size = self.path.sent - self.path.delivered;
            self.path.delivered += MSS;
            // New data sent for this ACK belongs to the next window.
            self.path.sent += MSS;
            let value = if is_marked(n) { Ecn::Ce } else { Ecn::Ect0 } as u16;
            let echo = Echo::Load { value, bits: 2, changes: 0 };
            let ack = AckSample {
                acked_bytes: MSS,
                echo,
                grow: GrowthPermission::Yes,
                ..AckSample::default()
            };
            let asked = self.controller.on_ack(&self.path, &ack);
            let due = if is_marked(n) { Request::Reduce(Cause::Ecn) } else { Request::Nothing };
            assert_eq!(asked, due);
            if is_marked(n) && !answered {
                answered = true;
                self.controller.on_signal(&self.path, Signal::Reduce(Cause::Ecn));
            }
        }
    }
}

#[test]
fn alpha_fades_by_a_sixteenth_in_each_window_without_a_mark() {
    let mut sender = Sender::new(&Params::default());
    for window in 1..40 {
        // The first ACK ends a window of its own (RFC 8257 § 3.3: WindowEnd starts as SND.UNA), and
        // the windows of data follow.
        sender.window(|_| false);
        let due = (15.0_f64 / 16.0).powi(window);
        let alpha = sender.controller.alpha();
        assert!((alpha / due - 1.0).abs() < 1e-12, "{window}: {alpha}, not {due}");
    }
}

#[test]
fn a_part_that_is_always_marked_is_what_alpha_becomes() {
    let mut sender = Sender::new(&Params { initial_alpha: 0.0, ..Params::default() });
    for window in 0..400 {
        sender.window(|n| n % 4 == 0);
        // A window of few segments has one mark more or less than a quarter of them.
        let alpha = sender.controller.alpha();
        assert!(window < 100 || (0.15..0.35).contains(&alpha), "{window}: {alpha}");
    }
}

#[test]
fn without_estimate_and_with_all_marked_it_halves_as_for_a_loss() {
    let params = Params { gain: 1.0, ..Params::default() };
    let mut dctcp = Dctcp::new(&params, &dctcp_start());
    let mut reno = NewReno::new(&newreno::Params::default(), &dctcp_start());
    let path = Path { mss: 1000, flight_size: 10 * MSS, ..Path::default() };
    dctcp.on_signal(&path, Signal::Reduce(Cause::Ecn));
    reno.on_signal(&path, Signal::Reduce(Cause::Loss));
    assert_eq!(dctcp.window(), reno.window());
}

proptest! {
    /// Under any marks: α is in [0, 1], and a mark takes at most half of the window and never
    /// raises it.
    #[test]
    fn alpha_is_a_part_and_a_mark_takes_at_most_half(
        gain in 0.001..=1.0_f64,
        initial_alpha in 0.0..=1.0_f64,
        marks in prop::collection::vec(any::<u64>(), 1..60),
    ) {
        let mut sender = Sender::new(&Params { gain, initial_alpha, ..Params::default() });
        for bits in marks {
            sender.window(|n| bits >> (n % 64) & 1 == 1);
            let alpha = sender.controller.alpha();
            prop_assert!((0.0..=1.0).contains(&alpha), "{}", alpha);
            let before = sender.controller.window().cwnd;
            let mut after = sender.controller.clone();
            after.on_signal(&sender.path, Signal::Reduce(Cause::Ecn));
            let left = after.window().cwnd;
            prop_assert!(left <= before && (left >= before / 2 || left >= 2 * MSS));
        }
    }

    /// Without a mark it is NewReno, whatever else happens (RFC 8257 § 3.4, 3.5).
    #[test]
    fn without_a_mark_it_is_newreno(
        events in prop::collection::vec((0..12_u8, 1..4000_u64, 0..60_u64), 1..200)
    ) {
        let mut dctcp = Dctcp::new(&Params::default(), &dctcp_start());
        let mut reno = NewReno::new(&newreno::Params::default(), &dctcp_start());
        let mut path = Path { mss: 1000, cwnd_limited: true, ..Path::default() };
        for (what, acked_bytes, flight) in events {
            path.flight_size = flight * MSS;
            path.sent = path.delivered + flight * MSS;
            match what {
                0 => both(&mut dctcp, &mut reno, &path, Signal::Reduce(Cause::Loss)),
                1 => both(&mut dctcp, &mut reno, &path, Signal::Timeout { nth: 1, reduces: true }),
                _ => {
                    path.delivered += acked_bytes;
                    let echo = Echo::Load { value: Ecn::Ect0 as u16, bits: 2, changes: 0 };
                    let grow =
                        if what == 2 { GrowthPermission::InCwr } else { GrowthPermission::Yes };
                    let ack = AckSample { acked_bytes, echo, grow, ..AckSample::default() };
                    prop_assert_eq!(dctcp.on_ack(&path, &ack), Request::Nothing);
                    prop_assert_eq!(reno.on_ack(&path, &ack), Request::Nothing);
                }
            }
            prop_assert_eq!(dctcp.window(), reno.window());
        }
    }
}

fn both(dctcp: &mut Dctcp, reno: &mut NewReno, path: &Path, signal: Signal) {
    dctcp.on_signal(path, signal);
    reno.on_signal(path, signal);
}
