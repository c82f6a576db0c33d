//! Delays of the data packets of each group: in queues, their jitter, and those of round trips.

use cwnd_quantity::{Duration, Time};
use cwnd_tables::{Buckets, Delays, LastTransit};

use super::Recorder;
use crate::flow::Flow;
use crate::journey::Journey;

/// Delays of the data packets of a group, in the order of [`Delays::KINDS`].
#[derive(Debug, Default)]
pub struct GroupDelays([Buckets; Delays::KINDS.len()]);

impl Recorder {
    /// Records a data packet of a group that reached its receiver.
    #[inline]
    pub fn packet(&mut self, group: u32, journey: Journey) {
        if let Some(GroupDelays([queueing, ..])) = self.delays.get_mut(group as usize) {
            queueing.add(journey.queued);
        }
    }

    /// Records a datagram of a group that reached its receiver after the one with the transit time
    /// `last`.
    #[cold]
    pub fn datagram(&mut self, group: u32, journey: Journey, now: Time, last: &mut LastTransit) {
        self.packet(group, journey);
        if let Some(difference) = last.next(now.since(journey.sent))
            && let Some(GroupDelays([_, jitter, _])) = self.delays.get_mut(group as usize)
        {
            jitter.add(difference);
        }
    }

    /// Records the round trips of a flow, within the accuracy of its RTTs.
    pub fn round_trips(&mut self, flow: &Flow) {
        if let Some(GroupDelays([.., round_trip])) = self.delays.get_mut(flow.group as usize) {
            for (rtt, count) in flow.rtt.middles() {
                let added = Duration(rtt.0.saturating_sub(flow.base_rtt.0));
                round_trip.add_many(added, u32::try_from(count).unwrap_or(u32::MAX));
            }
        }
    }
}

/// Rows of all groups.
pub fn table(groups: &[GroupDelays]) -> Delays {
    let mut rows = Delays::default();
    for (group, GroupDelays(kinds)) in (0..).zip(groups) {
        (0..).zip(kinds).for_each(|(kind, delays)| rows.add(group, kind, delays));
    }
    rows
}
