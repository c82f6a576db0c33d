use std::collections::VecDeque;

use cwnd_link::{Fate, LinkImpairments, LossCounts, Packet as _};
use cwnd_quantity::{Duration, Time};
use cwnd_scenario::Lateness;

use crate::packet::Packet;

/// Parts of a scenario's link, as indices into the network's tables.
#[derive(Clone, Copy, Debug)]
pub struct LinkParts {
    /// Queue and transmitter; `None` if the rate is unlimited.
    pub line: Option<u32>,
    /// Propagation delay and impairments; `None` for a line without either.
    pub pipe: Option<u32>,
    /// Middlebox that tampers with options, behind line and pipe.
    pub middlebox: Option<u32>,
}

/// Propagation delay and random impairments of a link, or the delay in a host.
///
/// Packets leave in the order in which they entered, so a pipe needs one pending event for any
/// number of packets. A packet that is held back for reordering goes through a second, slower pipe.
///
/// A pipe fits one cache line: thousands of flows may each have pipes of their own.
#[derive(Debug)]
#[repr(align(64))]
pub struct Pipe {
    delay: Duration,
    ring: VecDeque<(Time, Packet)>,
    variation: Option<Box<Variation>>,
    /// Packets that entered, lost ones and those held back included.
    entered: u64,
    /// Packets with payload that entered.
    entered_data: u64,
}

#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<Pipe>() == 64, "a pipe must fit one cache line");

/// Cause of varying delay or of loss in a pipe.
#[derive(Debug)]
enum Variation {
    /// Impairments of a link, and the pipe for packets that they hold back.
    Impairments { impairments: LinkImpairments, late: u32 },
    /// Random delay of packets in a host.
    Lateness(Lateness),
}

/// Counters of a pipe over the whole run.
#[derive(Clone, Copy, Debug, Default)]
pub struct PipeCounters {
    /// Packets that entered.
    pub entered: u64,
    /// Packets with payload that entered.
    pub entered_data: u64,
    /// Packets that the link's impairments lost.
    pub lost: LossCounts,
}

/// Outcome for a packet that enters a pipe.
#[derive(Debug)]
pub enum Entry {
    /// Queued behind other packets.
    Queued,
    /// First in the pipe; leaves at this time.
    First(Time),
    /// Lost.
    Lost,
    /// Held back for reordering: the caller puts it into this other pipe.
    Late(u32, Packet),
}

impl Pipe {
    /// Creates a pipe without impairments.
    pub fn new(delay: Duration) -> Self {
        Self { delay, ring: VecDeque::new(), variation: None, entered: 0, entered_data: 0 }
    }

    /// Adds a link's impairments; `late` is the pipe for packets that are held back.
    pub fn with_impairments(self, impairments: LinkImpairments, late: u32) -> Self {
        Self { variation: Some(Box::new(Variation::Impairments { impairments, late })), ..self }
    }

    /// Adds a random delay to each packet from now on, in a pipe of a host.
    pub fn set_lateness(&mut self, lateness: Lateness) {
        self.variation = Some(Box::new(Variation::Lateness(lateness)));
    }

    /// Takes in a packet, unless it is lost or held back; returns its outcome.
    #[inline]
    pub fn enter(&mut self, now: Time, packet: Packet) -> Entry {
        let data = packet.has_payload();
        self.entered += 1;
        self.entered_data += u64::from(data);
        let mut exit = now + self.delay;
        if let Some(variation) = self.variation.as_deref_mut() {
            match variation {
                Variation::Lateness(lateness) => exit += lateness.draw(),
                Variation::Impairments { impairments, late } => {
                    match impairments.apply(now, data) {
                        Fate::Lost => return Entry::Lost,
                        Fate::Late(_) => return Entry::Late(*late, packet),
                        Fate::Delayed(jitter) => exit += jitter,
                    }
                }
            }
            if let Some(&(last, _)) = self.ring.back() {
                exit = exit.max(last);
            }
        }
        self.ring.push_back((exit, packet));
        if self.ring.len() == 1 { Entry::First(exit) } else { Entry::Queued }
    }

    /// Takes in a router's message at the start of its route, in a pipe without impairments.
    /// Returns its exit time if it is first.
    // Separate from `enter`, which is then still inlined in its callers.
    #[cold]
    #[inline(never)]
    pub fn start(&mut self, now: Time, message: Packet) -> Option<Time> {
        self.entered += 1;
        let after = self.ring.back().map_or(Time::ZERO, |&(last, _)| last);
        let exit = (now + self.delay).max(after);
        self.ring.push_back((exit, message));
        (self.ring.len() == 1).then_some(exit)
    }

    /// Removes the first packet.
    #[inline]
    pub fn leave(&mut self) -> Option<Packet> {
        let (_, packet) = self.ring.pop_front()?;
        Some(packet)
    }

    /// The packet that leaves `n` packets after the first.
    #[inline]
    pub fn peek(&self, n: usize) -> Option<Packet> {
        self.ring.get(n).map(|&(_, packet)| packet)
    }

    /// Prefetches the ring entry of the packet that leaves `n` packets after the first.
    #[inline]
    pub fn prefetch(&self, n: usize) {
        self.ring.get(n).into_iter().for_each(cwnd_memory::prefetch);
    }

    /// The first packet and its exit time.
    #[inline]
    pub fn first(&self) -> Option<(Time, Packet)> {
        self.ring.front().copied()
    }

    /// Exit time of the first packet.
    #[inline]
    pub fn next_exit(&self) -> Option<Time> {
        self.ring.front().map(|&(exit, _)| exit)
    }

    /// Number of packets inside.
    pub fn held(&self) -> u64 {
        self.ring.len() as u64
    }

    /// Counters until now.
    pub fn counters(&self) -> PipeCounters {
        let lost = match self.variation.as_deref() {
            Some(Variation::Impairments { impairments, .. }) => impairments.lost(),
            Some(Variation::Lateness(_)) | None => LossCounts::default(),
        };
        PipeCounters { entered: self.entered, entered_data: self.entered_data, lost }
    }

    /// Sets the delay, for the next flow that uses the pipe.
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
        Pipe::new(DELAY)
            .with_impairments(LinkImpairments::new(&impairments, |name| Rng::named(3, name)), LATE)
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
            // The packets are further apart than the jitter, so none waits for another.
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
        assert_eq!(pipe.counters().lost, LossCounts { packets: lost, data: lost });
        assert_eq!(pipe.held() + lost + late, n);
    }
}
