//! Parts that come in several kinds, as queues, workloads and meters: reading, writing, and the
//! names, descriptions and keys of all kinds.

use std::collections::BTreeMap;

use cwnd_apps::{ArrivalParams, AttackerParams, WorkloadParams};
use cwnd_aqm::{MessengerParams, MeterParams, QueueParams};
use cwnd_cc::ControllerParams;
use cwnd_schema::file::{At, Context, ReadValue, WriteValue, WrittenValue, choice};
use cwnd_schema::{ParamsChoice, RegistryEntry};

use crate::value_forms::Format;

macro_rules! parts {
    ($($part:ty, $what:literal;)+) => {$(
        impl ReadValue<Format> for $part {
            fn read(at: At<'_>, cx: &mut Context<'_>) -> Option<Self> {
                choice(at, $what, cx)
            }
        }

        impl WriteValue<Format> for $part {
            fn write(&self) -> WrittenValue<'_> {
                WrittenValue::Part(self.kind(), self.params())
            }
        }
    )+};
}
parts! {
    QueueParams, "queue";
    MeterParams, "meter";
    MessengerParams, "messenger";
    WorkloadParams, "workload";
    ArrivalParams, "arrivals";
    AttackerParams, "attacker";
}

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
