//! Lists of kinds in messages, which grow with each kind that is added.

use cwnd_apps::{ArrivalParams, AttackerParams, WorkloadParams};
use cwnd_aqm::{MessengerParams, MeterParams, QueueParams};
use cwnd_cc::ControllerParams;
use cwnd_units::ParamsChoice;

/// The text with each list of all kinds replaced by the name of its registry.
pub fn named(text: &str) -> String {
    let lists = [
        ("ARRIVALS", list::<ArrivalParams>()),
        ("ATTACKERS", list::<AttackerParams>()),
        ("CONTROLLERS", list::<ControllerParams>()),
        ("MESSENGERS", list::<MessengerParams>()),
        ("METERS", list::<MeterParams>()),
        ("QUEUES", list::<QueueParams>()),
        ("WORKLOADS", list::<WorkloadParams>()),
    ];
    let lines = text.split('\n').map(|line| {
        let list = lists.iter().find(|(_, list)| line.ends_with(&format!("there are {list}")));
        list.map_or(line.to_owned(), |(name, list)| line.replace(list, name))
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn list<T: ParamsChoice>() -> String {
    T::KINDS.iter().map(|kind| format!("`{}`", kind.name)).collect::<Vec<_>>().join(", ")
}
