//! Digest of a run with many flows, with feature `prefetch` and, in `make test-long`, without it.

use std::sync::Arc;

use cwnd_scenario::Document;
use cwnd_sim::World;

/// More flows than the threshold of prefetching; 600 of them have pipes of their own.
const MANY: &str = r#"
[run]
duration = "400 ms"
sample = "none"

[dumbbell]
rate = "1 Gbit/s"

[flow.shared]
count = 4200
rtt = "20 ms"
start = "uniform(0 s, 100 ms)"

[flow.apart]
count = 600
rtt = "uniform(10 ms, 30 ms)"
start = "uniform(0 s, 100 ms)"
"#;

#[test]
fn prefetches_change_no_result() {
    let document = Document::parse("many", MANY, &|_: &str| Err(String::new())).unwrap();
    let plan = document.plan().unwrap();
    let mut world = World::new(Arc::new(plan.cells[0].scenario.clone()));
    let records = world.run(|_| true).unwrap();
    assert_eq!((records.events, records.digest().as_str()), (142_476, "b96bfdd30472cd3c"));
}
