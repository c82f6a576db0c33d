//! Parts of a scenario whose code is the user's.

use std::sync::Arc;

use cwnd_apps::WorkloadParams;
use cwnd_aqm::QueueParams;
use cwnd_cc::ControllerParams;
use cwnd_scenario::Scenario;
use cwnd_schema::{ClassName, ParamsChoice as _};
use pyo3::prelude::*;

use super::controller::Controllers;
use super::queue::Queues;
use super::workload::Workloads;
use super::{Class, Failure};

/// Returns the parts of a scenario that are classes: place, kind and class of each.
pub fn parts(scenario: &Scenario) -> Vec<(String, &'static str, &ClassName)> {
    let mut found = Vec::new();
    for link in &scenario.links {
        if let QueueParams::Python(params) = &link.queue {
            found.push((format!("link.{}.queue", link.name), link.queue.kind(), &params.class));
        }
    }
    for group in &scenario.flows {
        if let ControllerParams::Python(params) = &group.controller {
            let place = format!("flow.{}.controller", group.name);
            found.push((place, group.controller.kind(), &params.class));
        }
        if let WorkloadParams::Python(params) = &group.workload {
            let place = format!("flow.{}.workload", group.name);
            found.push((place, group.workload.kind(), &params.class));
        }
    }
    found
}

/// Sets the makers of the parts, from the classes of [`parts`] in its order.
pub fn load(
    scenario: &mut Scenario,
    classes: Vec<Bound<'_, PyAny>>,
    failure: &Arc<Failure>,
) -> PyResult<()> {
    let places: Vec<String> = parts(scenario).into_iter().map(|(place, ..)| place).collect();
    let seed = scenario.run.seed;
    let mut classes = places.into_iter().zip(classes);
    let mut class = |arguments| match classes.next() {
        Some((place, class)) => {
            Class::new(class, arguments, (place, seed), Arc::clone(failure)).map(Some)
        }
        None => Ok(None),
    };
    for link in &mut scenario.links {
        if let QueueParams::Python(params) = &mut link.queue {
            let queues = class(&params.loaded.arguments)?.map(Queues);
            params.loaded.maker = queues.map(|queues| Arc::new(queues) as _);
        }
    }
    for group in &mut scenario.flows {
        if let ControllerParams::Python(params) = &mut group.controller {
            let controllers = class(&params.loaded.arguments)?.map(Controllers);
            params.loaded.maker = controllers.map(|controllers| Arc::new(controllers) as _);
        }
        if let WorkloadParams::Python(params) = &mut group.workload {
            let workloads = class(&params.loaded.arguments)?.map(Workloads);
            params.loaded.maker = workloads.map(|workloads| Arc::new(workloads) as _);
        }
    }
    Ok(())
}
