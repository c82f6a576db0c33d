//! Parts of a scenario whose code is the user's.

use std::path::PathBuf;
use std::sync::Arc;

use cwnd_apps::WorkloadParams;
use cwnd_aqm::QueueParams;
use cwnd_cc::ControllerParams;
use cwnd_quantity::Rng;
use cwnd_scenario::Scenario;
use cwnd_schema::description::values_as_json;
use cwnd_schema::file::DESCRIPTION;
use cwnd_schema::{ClassName, Description, ParamsChoice as _, SourceFile};
use pyo3::prelude::*;

use super::controller::Controllers;
use super::native::{Native, Object, Settings};
use super::queue::Queues;
use super::workload::Workloads;
use super::{Class, Failure};
use crate::error::code_error;

/// A part: its place, kind, name and text of its source file, and class; "" for code in C. That of
/// an installed package is of the kind `installed`, with its description as the text.
pub type Part<'s> = (String, &'static str, &'s str, &'s str, &'s str);

/// Returns the parts of a scenario whose code is the user's.
pub fn parts(scenario: &Scenario) -> Vec<Part<'_>> {
    fn of<'s>(place: String, kind: &'static str, file: &'s SourceFile, class: &'s str) -> Part<'s> {
        (place, kind, &file.name, &file.text, class)
    }
    let mut found = Vec::new();
    for link in &scenario.links {
        if let QueueParams::Python(params) = &link.queue {
            let ClassName { path, class } = &params.class;
            found.push(of(format!("link.{}.queue", link.name), link.queue.kind(), path, class));
        }
    }
    for group in &scenario.flows {
        let place = format!("flow.{}.controller", group.name);
        match &group.controller {
            ControllerParams::Python(params) => {
                let ClassName { path, class } = &params.class;
                found.push(of(place, group.controller.kind(), path, class));
            }
            ControllerParams::C(params) => {
                found.push(of(place, group.controller.kind(), &params.path, ""));
            }
            ControllerParams::Installed(params) => {
                let Description { text, entry, .. } = params.description;
                found.push((place, DESCRIPTION, entry.name, text, ""));
            }
            _ => {}
        }
        if let WorkloadParams::Python(params) = &group.workload {
            let ClassName { path, class } = &params.class;
            let place = format!("flow.{}.workload", group.name);
            found.push(of(place, group.workload.kind(), path, class));
        }
    }
    found
}

/// Sets the makers of the parts, from the classes of [`parts`] in its order; for compiled code from
/// the paths of objects. Returns `true` if a part is in Python.
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
                let settings = Settings::Variables(&params.loaded.arguments);
                let selected = (params.path.name.as_str(), params.name.as_deref());
                let seed = Rng::named(seed, &place).bits();
                let native = native(&file, selected, settings, seed, failure)?;
                params.loaded.maker = Some(Arc::new(native));
            }
            ControllerParams::Installed(params) => {
                let Some((place, file)) = classes.next() else { continue };
                let (name, values) = (params.description.entry.name, values_as_json(params));
                let settings = Settings::Parameters(&values);
                let seed = Rng::named(seed, &place).bits();
                let native = native(&file, (name, Some(name)), settings, seed, failure)?;
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

/// Loads a compiled object, from the path of a file that only this run uses, and selects one of its
/// controllers. `file_name` is for errors.
fn native(
    file: &Bound<'_, PyAny>,
    (file_name, selected): (&str, Option<&str>),
    settings: Settings<'_>,
    seed: u64,
    failure: &Arc<Failure>,
) -> PyResult<Native> {
    let compiled: PathBuf = file.extract()?;
    let object = Object::load(&compiled, selected, settings, seed, failure);
    let object = object.map_err(|why| code_error(file.py(), &format!("{file_name} {why}")))?;
    Ok(Native::new(object))
}
