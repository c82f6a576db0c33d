//! Delays of the data packets of each group: in queues, their jitter, and those of round trips.

use cwnd_quantity::{Duration, Time};
use cwnd_tables::{Buckets, Delays};

use super::Recorder;
use crate::flow::Flow;
use crate::journey::{Journey, LastTransit};

/// Delays of the data packets of a group, in the order of [`Delays::KINDS`].
#[derive(Debug, Default)]
pub struct GroupDelays([Buckets; Delays::KINDS.len()]);

impl Recorder {
    /// Records a data packet of a group that reached its receiver.
    #[inline]
    pub fn packet(&mut self, group: u32, journey: Journey, now: Time, last: &mut LastTransit) {
        let Some(GroupDelays([queueing, jitter, _])) = self.delays.get_mut(group as usize) else {
            return;
        };
        queueing.add(journey.queued);
        if let Some(difference) = last.next(now, journey) {
            jitter.add(difference);
        }
    }

    /// Records an RTT of a flow's data.
    #[inline]
    pub fn rtt(&mut self, flow: &mut Flow, rtt: Duration) {
        flow.rtt.add(rtt);
        if let Some(GroupDelays([.., round_trip])) = self.delays.get_mut(flow.group as usize) {
            round_trip.add(Duration(rtt.0.saturating_sub(flow.base_rtt.0)));
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
