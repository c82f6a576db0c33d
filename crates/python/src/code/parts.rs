//! Parts of a scenario whose code is the user's.

use std::path::PathBuf;
use std::sync::Arc;

use cwnd_apps::WorkloadParams;
use cwnd_aqm::QueueParams;
use cwnd_cc::ControllerParams;
use cwnd_quantity::Rng;
use cwnd_scenario::Scenario;
use cwnd_schema::{ClassName, ParamsChoice as _, SourceFile};
use pyo3::prelude::*;

use super::controller::Controllers;
use super::native::{Native, Object};
use super::queue::Queues;
use super::workload::Workloads;
use super::{Class, Failure};
use crate::error::code_error;

/// A part: its place, kind, source file, and class; "" for code in C.
type Part<'s> = (String, &'static str, &'s SourceFile, &'s str);

/// Returns the parts of a scenario whose code is the user's.
pub fn parts(scenario: &Scenario) -> Vec<Part<'_>> {
    let mut found = Vec::new();
    for link in &scenario.links {
        if let QueueParams::Python(params) = &link.queue {
            let ClassName { path, class } = &params.class;
            found.push((format!("link.{}.queue", link.name), link.queue.kind(), path, &**class));
        }
    }
    for group in &scenario.flows {
        let place = format!("flow.{}.controller", group.name);
        match &group.controller {
            ControllerParams::Python(params) => {
                let ClassName { path, class } = &params.class;
                found.push((place, group.controller.kind(), path, class));
            }
            ControllerParams::C(params) => {
                found.push((place, group.controller.kind(), &params.path, ""));
            }
            _ => {}
        }
        if let WorkloadParams::Python(params) = &group.workload {
            let ClassName { path, class } = &params.class;
            let place = format!("flow.{}.workload", group.name);
            found.push((place, group.workload.kind(), path, class));
        }
    }
    found
}

/// Sets the makers of the parts, from the classes of [`parts`] in its order; for code in C from the
/// paths of compiled objects. Returns `true` if a part is in Python.
pub fn load(
    scenario: &mut Scenario,
    classes: Vec<Bound<'_, PyAny>>,
    failure: &Arc<Failure>,
) -> PyResult<bool> {
    let places: Vec<String> = parts(scenario).into_iter().map(|(place, ..)| place).collect();
    let seed = scenario.run.seed;
    let mut has_python = false;
    let mut classes = places.into_iter().zip(classes);
    let mut class = |classes: &mut dyn Iterator<Item = (String, Bound<'_, PyAny>)>, arguments| {
        has_python = true;
        match classes.next() {
            Some((place, class)) => {
                Class::new(class, arguments, (place, seed), Arc::clone(failure)).map(Some)
            }
            None => Ok(None),
        }
    };
    for link in &mut scenario.links {
        if let QueueParams::Python(params) = &mut link.queue {
            let queues = class(&mut classes, &params.loaded.arguments)?.map(Queues);
            params.loaded.maker = queues.map(|queues| Arc::new(queues) as _);
        }
    }
    for group in &mut scenario.flows {
        match &mut group.controller {
            ControllerParams::Python(params) => {
                let found = class(&mut classes, &params.loaded.arguments)?;
                let controllers = found.map(Controllers);
                params.loaded.maker = controllers.map(|controllers| Arc::new(controllers) as _);
            }
            ControllerParams::C(params) => {
                let Some((place, file)) = classes.next() else { continue };
                let native = native(params, &file, Rng::named(seed, &place).bits())?;
                params.loaded.maker = Some(Arc::new(native));
            }
            _ => {}
        }
        if let WorkloadParams::Python(params) = &mut group.workload {
            let workloads = class(&mut classes, &params.loaded.arguments)?.map(Workloads);
            params.loaded.maker = workloads.map(|workloads| Arc::new(workloads) as _);
        }
    }
    Ok(has_python)
}

/// Loads a compiled object, from the path of a file that only this run uses.
fn native(params: &cwnd_cc::c::Params, file: &Bound<'_, PyAny>, seed: u64) -> PyResult<Native> {
    let compiled: PathBuf = file.extract()?;
    let object = Object::load(&compiled, params.name.as_deref(), &params.loaded.arguments, seed);
    let object =
        object.map_err(|why| code_error(file.py(), &format!("{} {why}", params.path.name)))?;
    Ok(Native::new(object))
}
