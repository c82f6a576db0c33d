//! Names, descriptions and keys of all kinds of each exchangeable part.

use std::collections::BTreeMap;

use cwnd_apps::{ArrivalParams, AttackerParams, WorkloadParams};
use cwnd_aqm::{MessengerParams, MeterParams, QueueParams};
use cwnd_cc::ControllerParams;
use cwnd_schema::{ParamsChoice, RegistryEntry};

/// A kind of a part: its name, its description, and the keys of its table.
pub type KindInfo = (&'static str, &'static str, Vec<&'static str>);

/// Returns the kinds of each exchangeable part, by the part's key in a scenario.
#[must_use]
pub fn kinds() -> BTreeMap<&'static str, Vec<KindInfo>> {
    BTreeMap::from([
        ("arrivals", all::<ArrivalParams>()),
        ("attacker", all::<AttackerParams>()),
        ("controller", all::<ControllerParams>()),
        ("messenger", all::<MessengerParams>()),
        ("meter", all::<MeterParams>()),
        ("queue", all::<QueueParams>()),
        ("workload", all::<WorkloadParams>()),
    ])
}

fn all<T: ParamsChoice>() -> Vec<KindInfo> {
    let of = |kind: &RegistryEntry| {
        let chosen = T::of_kind(kind.name);
        let fields = chosen.iter().flat_map(|chosen| chosen.params().fields());
        (kind.name, kind.doc, fields.map(|field| field.name).collect())
    };
    T::KINDS.iter().map(of).collect()
}
