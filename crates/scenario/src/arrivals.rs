//! Checks of a group's arrival process, and the arrival interval that gives a wanted link load.

use cwnd_apps::Transport;
use cwnd_apps::arrivals::{ArrivalRate, BUSIEST};
use cwnd_quantity::{Bytes, Duration};
use cwnd_schema::ParamsChoice as _;
use cwnd_schema::file::{Sink, Table, locate};

use crate::model::{FlowGroup, Link, Scenario};
use crate::value_forms::MAX_FLOWS;

/// Checks the arrivals of every group and fills in the interval of those given by a load.
pub(crate) fn resolve_arrivals(scenario: &mut Scenario, root: &Table, sink: &mut Sink) {
    let (links, nodes, duration) = (&scenario.links, &scenario.nodes, scenario.run.duration);
    for group in &mut scenario.flows {
        let mut errors = GroupErrors { root, sink, group: group.name.clone() };
        if group.arrivals.kind() == NONE || !can_arrive(group, &mut errors) {
            continue;
        }
        check_recorded(group, nodes, &mut errors);
        let known = group.arrivals.arriving().pace().is_some_and(|pace| pace.interval.is_some());
        resolve_interval(group, links, duration, &mut errors);
        if !known {
            report_connection_limit(group, "load", duration, &mut errors);
        }
    }
}

/// Reports a group whose interval gives more connections than can be simulated.
pub(crate) fn check_connection_limit(
    group: &FlowGroup,
    duration: Duration,
    root: &Table,
    sink: &mut Sink,
) {
    report_connection_limit(
        group,
        "interval",
        duration,
        &mut GroupErrors { root, sink, group: group.name.clone() },
    );
}

fn report_connection_limit(
    group: &FlowGroup,
    key: &str,
    duration: Duration,
    errors: &mut GroupErrors<'_>,
) {
    let Some(arrivals) = group.arriving() else { return };
    let arriving = arrivals.arriving();
    let Some(interval) = arriving.pace().and_then(|pace| pace.interval) else { return };
    let of_one = (duration.0 / interval.0.max(1)) as f64 * arriving.on_share();
    let expected = (of_one * f64::from(group.count)) as u64;
    if expected > MAX_FLOWS {
        let message = format!(
            "about {expected} connections would arrive: at most {MAX_FLOWS} can be simulated"
        );
        let section = if group.arrivals.kind() == NONE { "workload" } else { "arrivals" };
        errors.error(&[section, key], message, None);
    }
}

/// Kind of `arrivals` for flows that exist from the start or arrive as their workload says.
pub(crate) const NONE: &str = "none";

/// Error sink of one group: prefixes keys with `flow.NAME`.
struct GroupErrors<'t> {
    root: &'t Table,
    sink: &'t mut Sink,
    group: String,
}

impl GroupErrors<'_> {
    fn error(&mut self, keys: &[&str], message: String, help: Option<&str>) {
        let path: Vec<&str> =
            ["flow", &self.group].into_iter().chain(keys.iter().copied()).collect();
        let problem = self.sink.error(locate(self.root, &path), path.join("."), message);
        if let Some(help) = help {
            problem.help(help);
        }
    }
}

/// `true` if the group's workload consists of connections that an arrival process can start;
/// reports an error otherwise.
fn can_arrive(group: &FlowGroup, errors: &mut GroupErrors<'_>) -> bool {
    let (facts, kind) = (group.workload.facts(), group.workload.kind());
    if let Transport::Datagrams { .. } = facts.transport {
        let message =
            "only connections arrive: datagrams are sent all the time, or on and off".to_owned();
        errors.error(
            &["arrivals"],
            message,
            Some("remove `arrivals`, and write `on` and `off` into the workload"),
        );
        return false;
    }
    if facts.arrivals.is_some() {
        let message = format!("the flows of `{kind}` arrive already");
        errors.error(
            &["arrivals"],
            message,
            Some("remove `arrivals`, or take `workload = { kind = \"bytes\", … }`"),
        );
        return false;
    }
    if group.arrivals.arriving().waits() && group.workload.habits().is_some() {
        let message = format!("the users of `{kind}` open one connection after the other already");
        let help =
            "remove `arrivals`, and write `pages = \"none\"` and `reading` into the workload";
        errors.error(&["arrivals"], message, Some(help));
        return false;
    }
    if group.arrivals.arriving().waits()
        && group.workload.volume(Bytes(group.full_payload())).is_none()
    {
        let message =
            format!("the connections of `{kind}` have no end that another could wait for");
        errors.error(
            &["arrivals"],
            message,
            Some("remove `arrivals`, or take `workload = { kind = \"bytes\", … }`"),
        );
        return false;
    }
    true
}

/// Checks that recorded arrivals lie on the group's paths and have sizes that its workload accepts.
fn check_recorded(group: &FlowGroup, nodes: &[String], errors: &mut GroupErrors<'_>) {
    let rows = group.arrivals.arriving().rows();
    let node = |name: &Option<String>| match name {
        None => Ok(None),
        Some(name) => nodes.iter().position(|node| node == name).map(Some).ok_or(name.clone()),
    };
    for row in rows {
        let found = match (node(&row.server), node(&row.client)) {
            (Ok(server), Ok(client)) => group.path_between(server, client).is_some(),
            (Err(name), _) | (_, Err(name)) => {
                let message = format!(
                    "the arrival at {} is of the node `{name}`, which is not there",
                    row.at
                );
                errors.error(&["arrivals", "rows"], message, None);
                return;
            }
        };
        if !found {
            let name = |name: &Option<String>| name.clone().unwrap_or_else(|| "any".to_owned());
            let message = format!(
                "the arrival at {} goes from `{}` to `{}`, which is no way of this group",
                row.at,
                name(&row.server),
                name(&row.client)
            );
            errors.error(
                &["arrivals", "rows"],
                message,
                Some("write the servers into `from` and the clients into `to`"),
            );
            return;
        }
    }
    if rows.iter().any(|row| row.size.is_some()) && group.workload.of_size(Bytes(1)).is_none() {
        let message = format!(
            "sizes are recorded, and `{}` has no one size that they could be",
            group.workload.kind()
        );
        errors.error(
            &["arrivals", "rows"],
            message,
            Some("remove the column `size_bytes`, or take `workload = { kind = \"bytes\", … }`"),
        );
    }
}

/// Sets the interval between arrivals from `interval` or `load`, and reports a contradiction of
/// both.
fn resolve_interval(
    group: &mut FlowGroup,
    links: &[Link],
    duration: Duration,
    errors: &mut GroupErrors<'_>,
) {
    let Some(pace) = group.arrivals.arriving().pace().cloned() else { return };
    let resolved = match (pace.interval, pace.load) {
        (None, None) => {
            let message = "nothing says how often connections arrive".to_owned();
            errors.error(
                &["arrivals"],
                message,
                Some("write `interval = \"10 ms\"`, or `load = 0.8`"),
            );
            return;
        }
        (Some(_), None) => pace,
        (given, Some(load)) => {
            let Some((link, interval)) =
                interval_for_load(group, &pace, load, links, duration, errors)
            else {
                return;
            };
            let difference = |given: Duration| given.0.abs_diff(interval.0);
            // One part in a million: an `interval` from a resolved file is rounded to whole
            // nanoseconds.
            if let Some(given) = given
                && difference(given) > 1 + interval.0 / 1_000_000
            {
                let message = format!(
                    "a load of {load} on `{}` comes to an interval of {interval}, not {given}",
                    link.name
                );
                errors.error(
                    &["arrivals", "interval"],
                    message,
                    Some("remove `interval` or `load`"),
                );
                return;
            }
            ArrivalRate {
                interval: Some(given.unwrap_or(interval)),
                link: link.name.clone(),
                ..pace
            }
        }
    };
    if let Some(pace) = group.arrivals.arriving_mut().pace_mut() {
        *pace = resolved;
    }
    if let Err((key, message)) = group.arrivals.arriving().check_interval() {
        errors.error(&["arrivals", key], message, None);
    }
}

/// Returns the loaded link, and the arrival interval of each of the group's `count` processes,
/// which together load it by `load`. The interval applies while a process is on.
fn interval_for_load<'l>(
    group: &FlowGroup,
    pace: &ArrivalRate,
    load: f64,
    links: &'l [Link],
    duration: Duration,
    errors: &mut GroupErrors<'_>,
) -> Option<(&'l Link, Duration)> {
    let Some(volume) = group.workload.volume(Bytes(group.full_payload())) else {
        let message = format!(
            "a load needs a mean size, and flows of `{}` have none that is known",
            group.workload.kind()
        );
        errors.error(&["arrivals", "load"], message, Some("write `interval` in its place"));
        return None;
    };
    if !volume.bytes.is_finite() {
        let message =
            "a load needs a mean size, and these sizes have none: their tail is too heavy"
                .to_owned();
        errors.error(
            &["arrivals", "load"],
            message,
            Some("cut the sizes, as in min(…, 1 GB), or write `interval` in place of `load`"),
        );
        return None;
    }
    // Offered load counts each byte once: retransmissions and ACKs on the reverse path are left
    // out.
    let opening = volume.connections * group.opening() as f64;
    let headers = volume.segments * group.headers() as f64 + opening;
    let bits = 8.0 * (volume.bytes + headers);
    // Share of the connections whose data crosses each link.
    let mut crossing_share = vec![0.0; links.len()];
    for (path, part) in group.path_shares() {
        path.route.iter().for_each(|&link| crossing_share[link] += part);
    }
    let demand = |i: usize| {
        let rate = links[i].rate.mean_bit_s(duration)?;
        Some(crossing_share[i] * bits / rate).filter(|&seconds| seconds > 0.0)
    };
    let i = if pace.link == BUSIEST {
        let loaded = (0..links.len()).filter_map(|i| Some((i, demand(i)?)));
        // Of equally loaded links the first in the file counts.
        loaded.max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0))).map(|(i, _)| i)
    } else {
        links.iter().position(|link| link.name == pace.link)
    };
    let Some((i, seconds)) = i.and_then(|i| Some((i, demand(i)?))) else {
        let message = match i {
            None if pace.link == BUSIEST => {
                "no link on the way of the data has a rate that could be loaded".to_owned()
            }
            None => format!("there is no link `{}`", pace.link),
            Some(_) => format!("`{}` has no rate, or is not on the way of the data", pace.link),
        };
        let key = if pace.link == BUSIEST { "load" } else { "link" };
        errors.error(
            &["arrivals", key],
            message,
            Some("name a link on the way of the data that has a rate, or write `interval`"),
        );
        return None;
    };
    let on = group.arrivals.arriving().on_share();
    let interval_s = f64::from(group.count) * on * seconds / load;
    match Duration::from_secs_f64(interval_s) {
        Duration::ZERO => {
            errors.error(
                &["arrivals", "load"],
                "connections would arrive with no time between them".to_owned(),
                None,
            );
            None
        }
        interval => Some((&links[i], interval)),
    }
}
