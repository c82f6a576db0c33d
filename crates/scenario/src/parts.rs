//! Reading and writing of the parts that come in several kinds: queues, workloads, meters and
//! others.

use cwnd_apps::{ArrivalParams, AttackerParams, WorkloadParams};
use cwnd_aqm::{MessengerParams, MeterParams, QueueParams};
use cwnd_schema::ParamsChoice as _;
use cwnd_schema::file::{At, Context, ReadValue, WriteValue, WrittenValue, choice};

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
