//! The simulator for a page: a scenario's text in, tables of its run out (`make play`).
//!
//! A page calls it through a few exports of bytes (`exports`), in a worker without threads. A
//! [`Playground`] advances its run by a number of events, so that its caller can draw what there
//! is, or drop the run for a newer one.

mod edit;
#[cfg(target_family = "wasm")]
mod exports;
mod format;

use std::sync::Arc;

use cwnd_scenario::{Cell, Diagnostics, Document, Outline, Scenario};
use cwnd_schema::ParamsChoice as _;
use cwnd_sim::World;
use serde_json::{Value as Json, json};

pub use edit::edit;

/// Number of samples that a page can draw while the run goes on.
const MAX_SAMPLES: u64 = 100_000;

/// One run of a scenario, in progress.
#[derive(Debug)]
pub struct Playground {
    world: World,
    end_s: f64,
    warmup_s: f64,
    is_over: bool,
}

impl Playground {
    /// Reads a scenario and prepares its run `index`, or its last one if there are fewer. Returns,
    /// as JSON, the facts of the scenario with its values as written, and as resolved with all
    /// defaults.
    ///
    /// # Errors
    /// The diagnostics of the scenario, as JSON: a text, and a list with lines and keys.
    pub fn open(text: &str, index: usize) -> Result<(Self, String), String> {
        let outline = outline(text).map_err(|found| diagnostics(&found).to_string())?;
        let Some(cell) = outline.cell(index.min(outline.runs().saturating_sub(1))) else {
            return Err(refusal("there is no such run"));
        };
        if has_code(&cell.scenario) {
            return Err(refusal(OWN_CODE));
        }
        let run = &cell.scenario.run;
        if let Some(mut sample) = run.sample
            && run.duration.0 / MAX_SAMPLES > sample.0
        {
            sample.0 = run.duration.0.div_ceil(MAX_SAMPLES);
            return Err(refusal(&format!(
                "a page draws at most {MAX_SAMPLES} samples: set `run.sample` to {sample} or more"
            )));
        }
        let facts = facts(&outline, &cell, text).to_string();
        let (end_s, warmup_s) = (run.duration.as_secs_f64(), run.warmup.as_secs_f64());
        let mut world = World::unbuilt(Arc::new(cell.scenario));
        match world.build(|_| true) {
            Ok(()) => Ok((Self { world, end_s, warmup_s, is_over: false }, facts)),
            Err(cwnd_sim::Cancelled) => Err(refusal("the run was stopped")),
        }
    }

    /// Handles at most so many events; returns `true` while the run goes on.
    pub fn advance(&mut self, events: u32) -> bool {
        for _ in 0..events {
            if self.is_over || !self.world.step() {
                self.is_over = true;
                break;
            }
        }
        !self.is_over
    }

    /// Time series so far.
    #[must_use]
    pub fn series(&self) -> Vec<u8> {
        let [flow_series, link_series] = &self.world.series();
        format::tables(self.head(), &[("flow_series", flow_series), ("link_series", link_series)])
    }

    /// All tables of the run, with its digest. Runs what is left of it.
    #[must_use]
    pub fn results(mut self) -> Vec<u8> {
        while self.advance(u32::MAX) {}
        let records = self.world.finish();
        let mut head = self.head();
        head["digest"] = records.digest().into();
        head["end_s"] = records.end.as_secs_f64().into();
        let tables = [
            ("flow_series", &records.flow_series),
            ("link_series", &records.link_series),
            ("flows", &records.flows),
            ("unrecorded", &records.unrecorded),
            ("links", &records.links),
            ("reasons", &records.reasons),
        ];
        format::tables(head, &tables)
    }

    fn head(&self) -> Json {
        let time_s = self.world.now().as_secs_f64();
        json!({ "time_s": time_s, "end_s": self.end_s, "warmup_s": self.warmup_s })
    }
}

/// Returns the JSON Schema of scenarios, without kinds of installed packages.
#[must_use]
pub fn json_schema() -> String {
    cwnd_scenario::json_schema(&[])
}

const OWN_CODE: &str = "code of one's own runs with `cwnd run` only";
const NO_FILES: &str =
    "a page reads no files; `cwnd cell` prints a run with the contents of its files";

/// Reads a scenario, which may name no files.
fn outline(text: &str) -> Result<Outline, Diagnostics> {
    let is_code = |name: &str| name.ends_with(".py") || name.ends_with(".c");
    let files = |name: &str| Err(if is_code(name) { OWN_CODE } else { NO_FILES }.to_owned());
    Document::parse("scenario.toml", text, &files)?.outline()
}

/// Returns `true` if a part's code is the user's, which a page cannot load.
fn has_code(scenario: &Scenario) -> bool {
    scenario.links.iter().any(|link| link.queue.is_loaded())
        || scenario.flows.iter().any(|g| g.controller.is_loaded() || g.workload.is_loaded())
}

fn facts(outline: &Outline, cell: &Cell, text: &str) -> Json {
    let values = |text: &str| toml::from_str::<Json>(text).unwrap_or_default();
    let axes = outline.axes.iter().map(|axis| json!({ "name": axis.name, "labels": axis.labels }));
    json!({
        "name": outline.name,
        "description": outline.description,
        "axes": axes.collect::<Vec<_>>(),
        "repeat": outline.repeat(),
        "index": cell.index,
        "groups": cell.scenario.flows.iter().map(|group| &group.name).collect::<Vec<_>>(),
        "links": cell.scenario.links.iter().map(|link| &link.name).collect::<Vec<_>>(),
        "id": cell.id,
        "warnings": diagnostics(&outline.warnings),
        "written": values(text),
        "resolved": values(&cell.resolved_toml),
    })
}

fn diagnostics(found: &Diagnostics) -> Json {
    let list = found.iter().map(|each| {
        json!({
            "line": each.line, "column": each.column, "key": each.key, "message": each.message,
            "help": each.help, "severity": each.severity.name(),
        })
    });
    json!({ "text": found.render(false), "list": list.collect::<Vec<_>>() })
}

fn refusal(message: &str) -> String {
    json!({ "text": format!("error: {message}"), "list": [] }).to_string()
}
