//! TCP*(n) with any controller: the program of `cwnd-kernel` that bounds timeouts of a group's
//! connections.

use std::path::Path;

use cwnd_scenario::FlowGroup;
use serde_json::{Value, json};

use crate::error::Error;
use crate::kernel::{LoadPlace, Loaded};
use crate::unsupported::Timeouts;

/// Bounds of a group's timeouts.
#[derive(Debug)]
pub struct Bounds {
    requested: Timeouts,
    group: String,
    /// Program that sets them.
    pub loaded: Loaded,
}

/// Effect of the bounds in a run.
#[derive(Clone, Debug, Default)]
pub struct BoundsReport {
    /// Requested values and counters of each group, for the manifest.
    pub facts: Vec<Value>,
    /// Notes on differences from TCP*(n).
    pub notes: Vec<String>,
    /// Reasons why the run is invalid.
    pub flaws: Vec<String>,
}

impl Bounds {
    /// Prepares the program for a group's timeouts, which is loaded in the senders' namespace.
    /// `None` if they are the kernel's.
    pub fn of(group: &FlowGroup, program: Option<&Path>) -> Result<Option<Self>, Error> {
        let Some(requested) = Timeouts::of(&group.endpoint) else { return Ok(None) };
        let (after, syns) = (requested.after.to_string(), requested.syn_after.to_string());
        let words = ["hold", "tcpstar", "--backoff-after", &after, "--syn-backoff-after", &syns];
        let words = words.map(str::to_owned).to_vec();
        let loaded = Loaded::new(words, LoadPlace::SendersAddress, program)?;
        Ok(Some(Self { requested, group: group.name.clone(), loaded }))
    }
}

/// Returns the effect of all groups' programs; call it while they run.
pub fn report<'a>(all: impl Iterator<Item = &'a Bounds>) -> BoundsReport {
    let mut found = BoundsReport::default();
    for bounds in all {
        let status = bounds.loaded.status().unwrap_or_default();
        let counters = status.get("counters").cloned().unwrap_or_default();
        let count = |name: &str| counters.get(name).and_then(Value::as_u64).unwrap_or(0);
        let (group, n) = (&bounds.group, bounds.requested.after);
        if count("refused") > 0 {
            found.flaws.push(format!(
                "flow.{group}: the kernel has no bound for timeouts (TCP_RTO_MAX_MS, since 6.15)"
            ));
        }
        if count("timeouts") == 0 {
            found.notes.push(format!("flow.{group}: no timer expired, so TCP*({n}) never acted"));
        } else if bounds.requested.exactly && count("bounded_above") > 0 {
            found.notes.push(format!(
                "flow.{group}: of TCP*({n}) Linux does what `rto_backoff = \"bounded\"` says: \
                 timeouts below 1 s double up to 1 s, \
                 unless fewer than four segments are outstanding"
            ));
        }
        found.facts.push(json!({
            "group": group,
            "backoff_after": n,
            "syn_backoff_after": bounds.requested.syn_after,
            "counters": counters,
        }));
    }
    found
}
