//! TCP*(n) with any controller: the program of `cwnd-kernel` that bounds timeouts of a group's
//! connections.

use std::path::Path;

use cwnd_scenario::FlowGroup;
use serde_json::{Value, json};

use crate::error::Error;
use crate::kernel::{Loaded, Place};
use crate::unsupported::Timeouts;

/// Bounds of a group's timeouts.
#[derive(Debug)]
pub struct Bounds {
    asked: Timeouts,
    group: String,
    /// Program that sets them.
    pub loaded: Loaded,
}

/// Effect of the bounds in a run.
#[derive(Clone, Debug, Default)]
pub struct Bounded {
    /// Requested values and counters of each group, for the manifest.
    pub facts: Vec<Value>,
    /// Notes on differences from TCP*(n).
    pub notes: Vec<String>,
    /// Reasons why the run is invalid.
    pub flaws: Vec<String>,
}

impl Bounds {
    /// Prepares the program for a group's timeouts, which is loaded in its namespace. `None` if
    /// they are the kernel's.
    pub fn of(group: &FlowGroup, program: Option<&Path>) -> Result<Option<Self>, Error> {
        let Some(asked) = Timeouts::of(&group.endpoint) else { return Ok(None) };
        let (after, syns) = (asked.after.to_string(), asked.syn_after.to_string());
        let words = ["hold", "tcpstar", "--backoff-after", &after, "--syn-backoff-after", &syns];
        let words = words.map(str::to_owned).to_vec();
        let loaded = Loaded::new(words, Place::SendersAddress, program)?;
        Ok(Some(Self { asked, group: group.name.clone(), loaded }))
    }
}

/// Returns the effect of all groups' programs; call it while they run.
pub fn told<'a>(all: impl Iterator<Item = &'a Bounds>) -> Bounded {
    let mut found = Bounded::default();
    for bounds in all {
        let card = bounds.loaded.card().unwrap_or_default();
        let counters = card.get("counters").cloned().unwrap_or_default();
        let count = |name: &str| counters.get(name).and_then(Value::as_u64).unwrap_or(0);
        let (group, n) = (&bounds.group, bounds.asked.after);
        if count("refused") > 0 {
            found.flaws.push(format!(
                "flow.{group}: the kernel has no bound for timeouts (TCP_RTO_MAX_MS, since 6.15)"
            ));
        }
        if count("timeouts") == 0 {
            found.notes.push(format!("flow.{group}: no timer expired, so TCP*({n}) never acted"));
        } else if bounds.asked.exactly && count("bounded_above") > 0 {
            found.notes.push(format!(
                "flow.{group}: of TCP*({n}) Linux does what `rto_backoff = \"bounded\"` says: \
                 timeouts below 1 s double up to 1 s, \
                 unless fewer than four segments are outstanding"
            ));
        }
        found.facts.push(json!({
            "group": group,
            "backoff_after": n,
            "syn_backoff_after": bounds.asked.syn_after,
            "counters": counters,
        }));
    }
    found
}
