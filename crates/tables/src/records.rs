use std::borrow::Cow;

use cwnd_quantity::Time;

use crate::table::{ColumnData, Digest, Table};

/// Results of a run.
#[derive(Clone, Debug)]
pub struct Records {
    /// One row for each flow; of flows that arrive, perhaps only of a random selection.
    pub flows: Table,
    /// One row for each link.
    pub links: Table,
    /// One row for each link, verdict and reason that occurred.
    pub reasons: Table,
    /// Time series of flows.
    pub flow_series: Table,
    /// Time series of links.
    pub link_series: Table,
    /// Distribution of the queueing delay of each link.
    pub qdelay: Table,
    /// Distributions of the delays of each group's data packets.
    pub delays: Table,
    /// One row for each request sent after the warm-up, or for a random selection; empty without
    /// connections that clients open.
    pub requests: Table,
    /// Distributions of requests and flows, if not each has a row.
    pub sketches: Table,
    /// Sums over the flows that arrived and have no row.
    pub unrecorded: Table,
    /// End of the run, which may be earlier than its scenario says.
    pub end: Time,
    /// Number of requests sent after the warm-up, with or without a row.
    pub request_count: u64,
    /// Counters of all mechanisms over the whole run, by name.
    pub activity: Activity,
    /// Number of events taken.
    pub events: u64,
    /// Number of data segments and datagrams that reached their receivers.
    pub delivered_data_packets: u64,
}

impl Records {
    /// Packets that a link dropped (`verdict` is `dropped`) or marked (`marked`) for a reason:
    /// after the warm-up, and in the whole run; zeros if there are none.
    #[must_use]
    pub fn packets(&self, link_id: usize, verdict: &str, reason: &str) -> [u64; 2] {
        let count = |column: &str, row: usize| match self.reasons.column(column) {
            Some(ColumnData::U64(counts)) => counts[row],
            _ => 0,
        };
        let is = |column: &str, row: usize, name: &str| match self.reasons.column(column) {
            Some(ColumnData::Name { codes, labels }) => labels[codes[row].0 as usize] == name,
            Some(ColumnData::U32(numbers)) => numbers[row] as usize == link_id,
            _ => false,
        };
        let wanted = |&row: &usize| {
            is("link_id", row, "") && is("verdict", row, verdict) && is("reason", row, reason)
        };
        let row = (0..self.reasons.len()).find(wanted);
        row.map_or([0; 2], |row| ["packets", "total_packets"].map(|column| count(column, row)))
    }

    /// Digest of all tables and of the activity, equal for equal runs.
    ///
    /// It omits counters that are zero, the order of counters, rare columns that are zero, and
    /// empty tables that most runs leave empty. So a new counter, rare column or table changes no
    /// digest of runs without such events. The numbers of events, packets and requests are omitted,
    /// too, and the delays of groups, which older versions did not record.
    #[must_use]
    pub fn digest(&self) -> String {
        let mut digest = Digest::default();
        for table in [&self.flows, &self.links, &self.flow_series, &self.link_series, &self.qdelay]
        {
            digest.table(table);
        }
        let seldom = [&self.reasons, &self.requests, &self.sketches, &self.unrecorded];
        seldom.into_iter().filter(|table| !table.is_empty()).for_each(|table| digest.table(table));
        let mut acted: Vec<_> = self.activity.iter().filter(|&(_, count)| count > 0).collect();
        acted.sort_unstable();
        for (name, count) in acted {
            digest.bytes(name.as_bytes());
            digest.bytes(&count.to_le_bytes());
        }
        digest.hex()
    }
}

/// Counters of all mechanisms over the whole run, in order of first appearance. The mechanisms
/// choose the names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Activity(Vec<(Cow<'static, str>, u64)>);

impl Activity {
    /// Adds to the counter with this name; a new name is kept even with count 0.
    pub fn add(&mut self, name: impl Into<Cow<'static, str>>, count: u64) {
        let name = name.into();
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, sum)) => *sum += count,
            None => self.0.push((name, count)),
        }
    }

    /// Adds the counters of `others` that are not zero.
    pub fn extend_with(&mut self, others: &Self) {
        for (name, count) in others.iter().filter(|&(_, count)| count > 0) {
            self.add(name.to_owned(), count);
        }
    }

    /// Value of the counter with this name; `None` if no mechanism has named it.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<u64> {
        self.0.iter().find(|(known, _)| known == name).map(|&(_, count)| count)
    }

    /// Names and values of all counters.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        self.0.iter().map(|(name, count)| (&**name, *count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::{
        Delays, FlowRow, FlowSamples, Flows, LinkSamples, Links, QueueDelays, Reasons, Requests,
        Sketches, Unrecorded,
    };

    fn records(counts: &[(&'static str, u64)]) -> Records {
        let mut activity = Activity::default();
        counts.iter().for_each(|&(name, count)| activity.add(name, count));
        let none = |_: &str| Vec::new();
        let mut flows = Flows::default();
        flows.push(FlowRow { segments_sent: 7, ..FlowRow::default() });
        Records {
            flows: flows.into_table(|_| vec!["main".to_owned()]),
            links: Links::default().into_table(none),
            reasons: Reasons::default().into_table(none),
            flow_series: FlowSamples::default().into_table(none),
            link_series: LinkSamples::default().into_table(none),
            qdelay: QueueDelays::default().into_table(none),
            delays: Delays::default().into_table(none),
            requests: Requests::default().into_table(none),
            sketches: Sketches::default().into_table(none),
            unrecorded: Unrecorded::default().into_table(none),
            end: Time::ZERO,
            request_count: 0,
            activity,
            events: 0,
            delivered_data_packets: 0,
        }
    }

    #[test]
    fn a_counter_that_is_zero_or_stands_elsewhere_changes_no_digest() {
        let digest = records(&[("marks", 3), ("drops", 2)]).digest();
        let more = [("quenches", 0), ("drops", 2), ("bursts", 0), ("marks", 3)];
        assert_eq!(records(&more).digest(), digest);
    }

    #[test]
    fn a_rare_column_changes_the_digest_only_where_it_tells_something() {
        let digest = |row: FlowRow, without_rare: bool| {
            let mut flows = Flows::default();
            flows.push(FlowRow::default());
            flows.push(row);
            let mut table = flows.into_table(|_| vec!["main".to_owned()]);
            table.columns.retain(|column| !(without_rare && column.rare));
            let mut digest = Digest::default();
            digest.table(&table);
            digest.hex()
        };
        let nothing = || digest(FlowRow::default(), false);
        assert_eq!(nothing(), digest(FlowRow::default(), true));
        assert_ne!(nothing(), digest(FlowRow { duplicates: 1, ..FlowRow::default() }, false));
        assert_ne!(
            nothing(),
            digest(FlowRow { gave_up: crate::Name(1), ..FlowRow::default() }, false)
        );
    }

    #[test]
    fn a_counter_that_counted_changes_the_digest_with_its_name_and_its_number() {
        let digest = records(&[("marks", 3)]).digest();
        for other in [&[("marks", 4)][..], &[("drops", 3)], &[], &[("marks", 3), ("drops", 1)]] {
            assert_ne!(records(other).digest(), digest, "{other:?}");
        }
    }

    #[test]
    fn counts_of_one_name_add_up_wherever_they_come_from() {
        let mut activity = Activity::default();
        for (name, count) in [("marks", 2), ("drops", 0), ("marks", 3), ("drops", 1)] {
            activity.add(name, count);
        }
        let mut others = Activity::default();
        others.add("quenches", 0);
        others.add(format!("drops_{}", "tail"), 4);
        activity.extend_with(&others);
        let all: Vec<_> = activity.iter().collect();
        assert_eq!(all, [("marks", 5), ("drops", 1), ("drops_tail", 4)]);
        assert_eq!((activity.get("drops"), activity.get("quenches")), (Some(1), None));
    }
}
