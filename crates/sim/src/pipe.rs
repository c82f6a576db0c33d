use std::collections::VecDeque;

use cwnd_link::{Fate, Faults, Losses, Packet as _};
use cwnd_quantity::{Duration, Time};
use cwnd_scenario::Lateness;

use crate::packet::Packet;

/// Propagation: what enters leaves a constant delay later, in order; and the random faults of a link.
///
/// Order within a pipe is kept, so it needs one pending event however many packets it holds. A packet that is held
/// back for reordering goes through a second, slower pipe.
///
/// It is one cache line: where each flow has pipes of its own, there are more than the cache holds.
#[derive(Debug)]
#[repr(align(64))]
pub struct Pipe {
    delay: Duration,
    ring: VecDeque<(Time, Packet)>,
    variation: Option<Box<Variation>>,
    /// Packets that came in.
    entered: u64,
    /// Those of them with payload.
    entered_data: u64,
}

const _: () = assert!(size_of::<Pipe>() == 64, "a pipe must fit one cache line");

/// Variation of a pipe beside its delay.
#[derive(Debug)]
enum Variation {
    /// The faults of a link, and the pipe for packets that are held back.
    Faults { faults: Faults, late: u32 },
    /// A host that takes packets late.
    Lateness(Lateness),
}

/// What a pipe counted, over the whole run.
#[derive(Clone, Copy, Debug, Default)]
pub struct PipeCounters {
    /// Packets that came in.
    pub entered: u64,
    /// Those of them with payload.
    pub entered_data: u64,
    /// What was lost.
    pub lost: Losses,
}

/// What becomes of a packet that enters.
#[derive(Debug)]
pub enum Entry {
    /// It is under way behind others.
    Queued,
    /// It is the first in the pipe and arrives then.
    First(Time),
    /// It is lost.
    Lost,
    /// It is held back: it belongs into this other pipe.
    Late(u32, Packet),
}

impl Pipe {
    /// A pipe that loses nothing.
    pub fn new(delay: Duration) -> Self {
        Self { delay, ring: VecDeque::new(), variation: None, entered: 0, entered_data: 0 }
    }

    /// Adds a link's faults; `late` is the pipe for packets that are held back.
    pub fn with_faults(self, faults: Faults, late: u32) -> Self {
        Self { variation: Some(Box::new(Variation::Faults { faults, late })), ..self }
    }

    /// Makes packets late.
    pub fn set_lateness(&mut self, lateness: Lateness) {
        self.variation = Some(Box::new(Variation::Lateness(lateness)));
    }

    /// A packet enters.
    #[inline]
    pub fn enter(&mut self, now: Time, packet: Packet) -> Entry {
        let data = packet.has_payload();
        self.entered += 1;
        self.entered_data += u64::from(data);
        let mut exit = now + self.delay;
        if let Some(variation) = self.variation.as_deref_mut() {
            match variation {
                Variation::Lateness(lateness) => exit += lateness.draw(),
                Variation::Faults { faults, late } => match faults.strike(now, data) {
                    Fate::Lost => return Entry::Lost,
                    Fate::Late(_) => return Entry::Late(*late, packet),
                    Fate::Delayed(jitter) => exit += jitter,
                },
            }
            if let Some(&(last, _)) = self.ring.back() {
                exit = exit.max(last);
            }
        }
        self.ring.push_back((exit, packet));
        if self.ring.len() == 1 { Entry::First(exit) } else { Entry::Queued }
    }

    /// A router's message enters the pipe where its way starts, which has no faults; when it leaves if it is the first there.
    // Apart from what other packets do, so that theirs is still inlined where it is called.
    #[cold]
    #[inline(never)]
    pub fn start(&mut self, now: Time, message: Packet) -> Option<Time> {
        self.entered += 1;
        let after = self.ring.back().map_or(Time::ZERO, |&(last, _)| last);
        let exit = (now + self.delay).max(after);
        self.ring.push_back((exit, message));
        (self.ring.len() == 1).then_some(exit)
    }

    /// The first packet leaves.
    #[inline]
    pub fn leave(&mut self) -> Option<Packet> {
        let (_, packet) = self.ring.pop_front()?;
        Some(packet)
    }

    /// The packet that leaves `n` after the next one.
    #[inline]
    pub fn ahead(&self, n: usize) -> Option<Packet> {
        self.ring.get(n).map(|&(_, packet)| packet)
    }

    /// The packet that leaves `n` after the next one will be looked at soon.
    #[inline]
    pub fn soon(&self, n: usize) {
        self.ring.get(n).into_iter().for_each(cwnd_memory::soon);
    }

    /// The packet that leaves next, and when.
    #[inline]
    pub fn first(&self) -> Option<(Time, Packet)> {
        self.ring.front().copied()
    }

    /// When the next packet leaves.
    #[inline]
    pub fn next_exit(&self) -> Option<Time> {
        self.ring.front().map(|&(exit, _)| exit)
    }

    /// Packets inside.
    pub fn held(&self) -> u64 {
        self.ring.len() as u64
    }

    /// What it counted.
    pub fn counters(&self) -> PipeCounters {
        let lost = match self.variation.as_deref() {
            Some(Variation::Faults { faults, .. }) => faults.lost(),
            Some(Variation::Lateness(_)) | None => Losses::default(),
        };
        PipeCounters { entered: self.entered, entered_data: self.entered_data, lost }
    }

    /// Gives the pipe to another flow with another delay.
    pub const fn set_delay(&mut self, delay: Duration) {
        self.delay = delay;
    }
}

#[cfg(test)]
mod tests {
    use cwnd_quantity::{DurationDist, Rng};
    use cwnd_scenario::Impairments;

    use super::*;

    const DELAY: Duration = Duration::from_millis(10);
    const LATE: u32 = 7;

    fn faulty(impairments: Impairments) -> Pipe {
        Pipe::new(DELAY).with_faults(Faults::new(&impairments, |name| Rng::named(3, name)), LATE)
    }

    #[test]
    fn what_enters_leaves_a_delay_later() {
        let mut pipe = Pipe::new(DELAY);
        for n in 0..3 {
            let entry = pipe.enter(Time(u64::from(n) * 5), Packet::numbered(n, 100));
            assert_eq!(matches!(entry, Entry::First(_)), n == 0, "one pending event is enough");
        }
        for n in 0..3 {
            assert_eq!(pipe.next_exit(), Some(Time(u64::from(n) * 5) + DELAY));
            assert_eq!(pipe.leave().unwrap().number(), n);
        }
        assert_eq!((pipe.held(), pipe.next_exit()), (0, None));
    }

    #[test]
    fn jitter_is_uniform_for_a_packet_alone_and_never_lets_one_pass_another() {
        let jitter = Duration::from_millis(4);
        let settings =
            Impairments { jitter: DurationDist::constant(jitter), ..Impairments::default() };
        let mut pipe = faulty(settings.clone());
        let n = 10_000_u64;
        let mut extra = Vec::new();
        for i in 0..n {
            // Further apart than the jitter: nobody waits for anybody.
            let now = Time(i * 5_000_000);
            pipe.enter(now, Packet::numbered(i as u32, 100));
            extra.push(pipe.next_exit().unwrap().since(now + DELAY).0 as f64);
            pipe.leave();
        }
        // Uniform from 0 to 4 ms: mean 2 ms, deviation 4/√12 ms.
        let mean = extra.iter().sum::<f64>() / n as f64;
        let deviation = jitter.0 as f64 / 12_f64.sqrt();
        assert!((mean - 2e6).abs() < 4.0 * deviation / (n as f64).sqrt(), "{mean}");
        assert!(extra.iter().all(|&e| e <= jitter.0 as f64));

        let mut pipe = faulty(settings);
        for i in 0..n {
            pipe.enter(Time(i * 1000), Packet::numbered(i as u32, 100));
        }
        let mut last = Time::ZERO;
        for i in 0..n {
            let exit = pipe.next_exit().unwrap();
            assert!(exit >= last && exit >= Time(i * 1000) + DELAY);
            assert_eq!(pipe.leave().unwrap().number(), i as u32);
            last = exit;
        }
    }

    #[test]
    fn losses_and_late_packets_come_at_the_rates_they_were_given() {
        let (loss, reorder) = (0.02, 0.1);
        let mut pipe = faulty(Impairments {
            loss,
            reorder,
            reorder_delay: Duration(1),
            ..Impairments::default()
        });
        let n = 100_000;
        let (mut lost, mut late) = (0, 0);
        for i in 0..n {
            match pipe.enter(Time(i), Packet::numbered(i as u32, 100)) {
                Entry::Lost => lost += 1,
                Entry::Late(to, packet) => {
                    assert_eq!((to, packet.number()), (LATE, i as u32));
                    late += 1;
                }
                Entry::First(_) | Entry::Queued => {}
            }
        }
        let within = |hits: u64, p: f64| {
            let n = n as f64;
            (hits as f64 - n * p).abs() < 4.0 * (n * p * (1.0 - p)).sqrt()
        };
        assert!(within(lost, loss), "{lost} lost");
        // A lost packet is not late, too.
        assert!(within(late, reorder * (1.0 - loss)), "{late} late");
        assert_eq!(pipe.counters().lost, Losses { packets: lost, data: lost });
        assert_eq!(pipe.held() + lost + late, n);
    }
}
