//! Controllers with explicit feedback, each with a meter and an echo, by what registries declare.

use std::sync::LazyLock;

use cwnd_aqm::MeterParams;
use cwnd_cc::ControllerParams;
use cwnd_packet::{Ability, Contract, HasContract as _, Place};
use cwnd_schema::{Param as _, ParamsChoice as _, Value};
use cwnd_tcp::EchoKind;

/// A scheme of explicit feedback: the meter of both links, the controller and the echo.
#[derive(Clone, Copy, Debug)]
pub struct FeedbackScheme {
    /// Kind of the meter.
    pub meter: &'static str,
    /// Kind of the controller.
    pub controller: &'static str,
    /// Policy of the receiver.
    pub echo: &'static str,
}

/// Schemes of the controllers with strict requirements: one for each echo that provides what the
/// controller asks of receivers. The meter is the first that provides what it asks of links; panics
/// if none does.
pub static FEEDBACK_SCHEMES: LazyLock<Vec<FeedbackScheme>> = LazyLock::new(|| {
    let mut all = Vec::new();
    for kind in ControllerParams::KINDS {
        let requirements =
            ControllerParams::of_kind(kind.name).expect("it is registered").contract().requirements;
        if !requirements.iter().any(|requirement| requirement.required) {
            continue;
        }
        let of = |receiver: bool| {
            let requirements = requirements.iter().map(|requirement| requirement.ability);
            let at = requirements.filter(move |asked| match asked.place() {
                Place::Sender => false,
                Place::Receiver => receiver,
                Place::SomeLink | Place::EveryLink => !receiver,
            });
            at.collect::<Vec<_>>()
        };
        let provided = |by: Contract, asked: &[Ability]| {
            asked.iter().all(|ability| by.provides.contains(ability))
        };
        let meter = MeterParams::KINDS.iter().map(|meter| meter.name).find(|name| {
            let meter = MeterParams::of_kind(name).expect("it is registered");
            provided(meter.contract(), &of(false))
        });
        let meter = meter.unwrap_or_else(|| panic!("no meter provides what {} asks", kind.name));
        for &echo in EchoKind::NAMES {
            let read = EchoKind::read(&Value::Text(echo.to_owned())).expect("it is a name");
            if provided(read.contract(), &of(true)) {
                all.push(FeedbackScheme { meter, controller: kind.name, echo });
            }
        }
    }
    all
});
