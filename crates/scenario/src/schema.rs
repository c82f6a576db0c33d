//! The JSON Schema of a scenario file, generated from the tables that the reader uses.

use cwnd_apps::{ArrivalParams, AttackerParams, WorkloadParams};
use cwnd_aqm::{MessengerParams, MeterParams, QueueParams};
use cwnd_cc::ControllerParams;
use cwnd_schema::Params;
use cwnd_schema::file::SectionKeys as _;
use cwnd_schema::file::json::{
    any_of, choice, complete, insert_params, none, object, one_of, quantities, reference,
};
use cwnd_tcp::PARTS;
use serde_json::{Map, Value as Json, json};

use crate::file::ScenarioFile;
use crate::flow_keys::{DumbbellFlowKeys, FlowKeys, GraphFlowKeys};
use crate::impairments::BurstLoss;
use crate::limits::SCHEMAS;
use crate::links::{DumbbellKeys, LinkKeys};
use crate::model::{NodePosition, Record};
use crate::pairs::Pair;
use crate::rates::RateTable;
use crate::run::Run;
use crate::stack::{StackParts, stacks};
use crate::steps::{DelayStep, RateStep};
use crate::sweep::{AxisKeys, SweepKeys};

/// Returns the JSON Schema (draft 2020-12) of a scenario file.
///
/// It requires fewer keys than the reader: an axis of the sweep may set `flow.main.rtt`.
#[must_use]
pub fn json_schema() -> Json {
    let mut root = object(&[ScenarioFile::KEYS]);
    root["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    root["title"] = json!("cwnd scenario");
    root["description"] = json!("What to simulate: links, queues, flows, and what is varied.");
    root["required"] = json!(["run", "flow"]);
    let properties = &mut root["properties"];
    if let Some(schema) = properties["schema"].as_object_mut() {
        schema.retain(|key, _| key == "default" || key == "description");
        schema.insert("enum".to_owned(), json!(SCHEMAS));
    }
    // The keys of a flow depend on the topology, so the two alternatives below set them.
    properties["flow"]["minProperties"] = json!(1);
    if let Some(flow) = properties["flow"].as_object_mut() {
        flow.remove("additionalProperties");
    }
    root["oneOf"] = json!([
        {
            "required": ["dumbbell"],
            "not": { "required": ["link"] },
            "properties": { "flow": { "additionalProperties": reference("flow-dumbbell") } },
        },
        {
            "required": ["link"],
            "not": { "required": ["dumbbell"] },
            "properties": { "flow": { "additionalProperties": reference("flow-graph") } },
        },
    ]);
    let parts = json!({
        "run": object(&[Run::KEYS]),
        "record": object(&[Record::KEYS]),
        "dumbbell": object(&[DumbbellKeys::KEYS]),
        "link": object(&[LinkKeys::KEYS]),
        "flow-dumbbell": object(&[FlowKeys::KEYS, DumbbellFlowKeys::KEYS]),
        "flow-graph": object(&[FlowKeys::KEYS, GraphFlowKeys::KEYS]),
        "sweep": object(&[SweepKeys::KEYS]),
        "axis": complete(AxisKeys::KEYS),
        "step": complete(RateStep::KEYS),
        "burst-loss": complete(BurstLoss::KEYS),
        "delay-step": complete(DelayStep::KEYS),
        "node": complete(NodePosition::KEYS),
        "pair": complete(Pair::KEYS),
        "link-rate": any_of(&[reference("rate"), none(), object(&[RateTable::KEYS])]),
        "queue": choice::<QueueParams>(),
        "meter": choice::<MeterParams>(),
        "messenger": choice::<MessengerParams>(),
        "controller": choice::<ControllerParams>(),
        "endpoint": endpoint(),
        "stack": any_of(&[reference("stack-name"), object(&[StackParts::KEYS])]),
        "stack-name": one_of(stacks().map(|stack| (stack.name, stack.doc))),
        "part": one_of(PARTS.iter().map(|part| (part.name, part.doc))),
        "workload": choice::<WorkloadParams>(),
        "arrivals": choice::<ArrivalParams>(),
        "attacker": choice::<AttackerParams>(),
    });
    let mut definitions = quantities();
    definitions.extend(parts.as_object().cloned().unwrap_or_default());
    root["$defs"] = Json::Object(definitions);
    root
}

fn endpoint() -> Json {
    let table = |params: &dyn Params| {
        let mut properties = Map::new();
        insert_params(&mut properties, params);
        json!({ "type": "object", "properties": properties, "additionalProperties": false })
    };
    any_of(&[
        reference("stack-name"),
        table(&cwnd_tcp::Params::default()),
        table(&cwnd_tcp::quic::Params::default()),
    ])
}
