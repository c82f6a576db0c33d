//! DCTCP: invariants under any marks.

use cwnd_cc::dctcp::{Dctcp, Params};
use cwnd_cc::newreno::{self, NewReno};
use cwnd_cc::{AckSample, Cause, Controller, GrowthPermission, Path, Request, Signal, Start};
use cwnd_packet::{Echo, Ecn};
use proptest::prelude::*;

const MSS: u64 = 1000;

fn start() -> Start {
    Start {
        mss: 1000,
        initial_window: 10 * MSS,
        initial_ssthresh: 20 * MSS,
        max_window: u64::MAX,
        delayed_acks: false,
    }
}

/// Sender of windows of data, some of whose segments are marked; each segment has its ACK, and the
/// controller is reduced once per window.
struct Sender {
    controller: Dctcp,
    path: Path,
}

impl Sender {
    fn new(params: &Params) -> Self {
        let path = Path { mss: 1000, cwnd_limited: true, ..Path::default() };
        Self { controller: Dctcp::new(params, &start()), path }
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
    let mut dctcp = Dctcp::new(&params, &start());
    let mut reno = NewReno::new(&newreno::Params::default(), &start());
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
        let mut dctcp = Dctcp::new(&Params::default(), &start());
        let mut reno = NewReno::new(&newreno::Params::default(), &start());
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
