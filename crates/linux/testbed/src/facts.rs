//! Facts about a run for its manifest, in addition to the tables.

use cwnd_quantity::Duration;
use cwnd_router::{DirectionReport, Report};
use cwnd_tables::Histogram;
use serde_json::{Value, json};

use crate::calibrate::Calibration;
use crate::host::SideObservations;
use crate::timeouts::BoundsReport;
use crate::world::World;

/// Facts about a side's network namespace.
#[derive(Clone, Debug, Default)]
pub struct SideFacts {
    /// Relevant sysctls, as read back.
    pub sysctls: Vec<(String, String)>,
    /// TCP counters of the kernel.
    pub counters: Vec<(String, i64)>,
}

/// Results of a finished run.
pub struct Done {
    /// Report of the router.
    pub report: Report,
    /// Observations of both sides' hosts.
    pub seen: [SideObservations; 2],
    /// Facts about both sides' namespaces.
    pub sides: [SideFacts; 2],
    /// Calibration of the router before the run, if there was one.
    pub calibration: Option<Calibration>,
}

/// Returns all facts as one document.
pub fn facts(
    world: &World,
    Done { report, seen, sides, calibration }: &Done,
    bounded: &BoundsReport,
) -> Value {
    let calibration = calibration.as_ref();
    let mut flaws = flaws(seen, report, calibration);
    flaws.extend_from_slice(&bounded.flaws);
    json!({
        "kernel": kernel(),
        "valid": flaws.is_empty(),
        "flaws": flaws,
        "notes": bounded.notes,
        "controllers": world.controllers,
        "timeouts": bounded.facts,
        "sysctls": {
            "left": object(&sides[0].sysctls),
            "right": object(&sides[1].sysctls),
        },
        "tcp_counters": {
            "left": object(&sides[0].counters),
            "right": object(&sides[1].counters),
        },
        "calibration": calibration.map(Calibration::json),
        "router": {
            "scheduling": report.scheduling,
            "idle": report.idle,
            "longest_turn_us": micros(report.longest_turn),
            "directions": report.directions.iter().map(direction).collect::<Vec<_>>(),
        },
        "samples": {
            "lateness_p99_us": quantiles(&seen[0].lateness)["p99"],
            "missed": seen[0].missed + seen[1].missed,
        },
    })
}

/// Returns the reasons why the run is invalid.
fn flaws(
    seen: &[SideObservations; 2],
    report: &Report,
    calibration: Option<&Calibration>,
) -> Vec<String> {
    let mut flaws = report.flaws.clone();
    for (flow, why) in seen.iter().flat_map(|side| &side.failures) {
        flaws.push(format!("flow {flow}: {why}"));
    }
    flaws.extend(calibration.into_iter().flat_map(Calibration::flaws));
    flaws
}

fn direction(of: &DirectionReport) -> Value {
    json!({
        "name": of.name,
        "largest_packet_bytes": of.total.largest,
        "malformed": of.total.malformed,
        "undelivered": of.undelivered,
        "lost_before": of.lost_before,
        "lateness_us": quantiles(&of.lateness),
    })
}

fn quantiles(of: &Histogram) -> Value {
    json!({
        "p50": of.quantile(0.5).map(micros),
        "p99": of.quantile(0.99).map(micros),
        "max": of.max().map(micros),
    })
}

fn object<T: Clone + Into<Value>>(pairs: &[(String, T)]) -> Value {
    Value::Object(pairs.iter().map(|(name, value)| (name.clone(), value.clone().into())).collect())
}

/// Returns the release of the running kernel.
fn kernel() -> String {
    crate::namespace::sysctl("kernel.osrelease").unwrap_or_default()
}

fn micros(d: Duration) -> f64 {
    d.0 as f64 / 1000.0
}
