use core::fmt;

use cwnd_aqm::{AnyQdisc, MeterParams, QueueParams};
use cwnd_quantity::{Duration, LinkProperties, Rate, Rng, Serialiser, Streams, Time};
use cwnd_scenario::{Impairments, Link, LinkRate};

use crate::acks_first::AcksFirst;
use crate::counters::Packet;
use crate::impairments::LinkImpairments;
use crate::line::{Line, Pace};
use crate::timeline::{Slots, Timeline};

/// Settings of a link except its propagation delay, messenger and middlebox.
#[derive(Clone, Copy, Debug)]
pub struct Settings<'a> {
    /// Name of the link and prefix of its random streams.
    pub name: &'a str,
    /// Transmission rate.
    pub rate: &'a LinkRate,
    /// Queue before the line; unused if the rate is unlimited.
    pub queue: &'a QueueParams,
    /// Meter at the queue, which writes headers of packets.
    pub meter: &'a MeterParams,
    /// Packets that the device below the queue holds besides the one it sends.
    pub device_queue: u32,
    /// `true` if packets without payload are served before those in the queue.
    pub acks_first: bool,
    /// Round-trip time to which sizes in BDP refer.
    pub bdp_rtt: Duration,
    /// Loss, jitter, reordering and steps of the delay.
    pub impairments: &'a Impairments,
}

impl<'a> From<&'a Link> for Settings<'a> {
    fn from(link: &'a Link) -> Self {
        Self {
            name: &link.name,
            rate: &link.rate,
            queue: &link.queue,
            meter: &link.meter,
            device_queue: link.device_queue,
            acks_first: link.acks_first,
            bdp_rtt: link.bdp_rtt,
            impairments: &link.impairments,
        }
    }
}

impl Settings<'_> {
    /// Facts for the queue, and the random stream of the queue; `None` if the rate is unlimited.
    ///
    /// The rate among the facts is the initial one of steps, and the mean of a period or a trace.
    #[must_use]
    pub fn facts(&self, random: &Streams) -> Option<(LinkProperties, Rng)> {
        let rng = random.named(&format!("link.{}.queue", self.name));
        let rate = match self.rate {
            LinkRate::Unlimited => return None,
            LinkRate::Steps { initial, period: None, .. } => *initial,
            LinkRate::Steps { initial, period: Some(period), .. } => {
                let mean = self.rate.mean_bit_s_between(Time::ZERO, Time(period.0));
                mean.map_or(*initial, |mean| Rate(mean as u64))
            }
            LinkRate::Trace(at_ms) => Slots::new(at_ms.clone()).mean_rate(),
        };
        Some((LinkProperties { rate, bdp_rtt: self.bdp_rtt }, rng))
    }

    /// Creates the link's idle line; `None` if the rate is unlimited.
    #[must_use]
    pub fn line<P>(&self, random: &Streams) -> Option<Line<P>>
    where
        P: Packet + fmt::Debug + Send + 'static,
    {
        let (facts, rng) = self.facts(random)?;
        let (pace, changes) = match self.rate {
            LinkRate::Unlimited => return None,
            LinkRate::Steps { initial, changes, period } => {
                // Each period starts at the initial rate.
                let first = period.map(|_| (Time::ZERO, *initial));
                let steps = first.into_iter().chain(changes.iter().copied()).collect();
                (Pace::Rate(Serialiser::new(*initial)), Timeline::new(steps, *period))
            }
            LinkRate::Trace(at_ms) => {
                let pace = Pace::Slots { slots: Slots::new(at_ms.clone()), left: 0 };
                (pace, Timeline::new(Vec::new(), None))
            }
        };
        let line = Line::new(self.with_acks_first(self.queue.build(&facts, rng)), pace);
        let line = line.with_changes(changes).with_device_queue(self.device_queue);
        let rng = random.named(&format!("link.{}.meter", self.name));
        Some(match self.meter.build(&facts, rng) {
            Some(meter) => line.with_meter(meter),
            None => line,
        })
    }

    /// Returns the queue, behind another one for packets without payload if these are served first.
    #[must_use]
    pub fn with_acks_first<P>(&self, queue: AnyQdisc<P>) -> AnyQdisc<P>
    where
        P: Packet + fmt::Debug + Send + 'static,
    {
        if self.acks_first { AnyQdisc::boxed(AcksFirst::new(queue)) } else { queue }
    }

    /// Creates the link's impairments; `None` if it has none.
    #[must_use]
    pub fn impairments(&self, random: &Streams) -> Option<LinkImpairments> {
        (*self.impairments != Impairments::default()).then(|| {
            LinkImpairments::new(self.impairments, |what| {
                random.named(&format!("link.{}.{what}", self.name))
            })
        })
    }
}
