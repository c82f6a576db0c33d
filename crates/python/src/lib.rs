//! The extension module `cwnd._core`: Python bindings of the scenario reader, the simulator, runs
//! on Linux, the emulated link and inference from captures.

mod capture;
mod code;
mod episode;
mod error;
mod infer;
#[cfg(target_os = "linux")]
mod link;
mod run;
mod scenario;
mod table;
mod testbed;
mod text;

use pyo3::pymodule;

/// The scenario reader, the simulator, runs on Linux, links and inference, in Rust.
#[pymodule]
mod _core {
    use pyo3::prelude::*;

    use crate::error::{Cancelled, Diverged, ScenarioError, Unavailable};

    #[pymodule_export]
    use crate::code::{Ack, DeliveryRate, FlowStart, LinkStart, Path, QueuedPacket, Signal, Start};
    #[pymodule_export]
    use crate::episode::{Episode, Stepper};
    #[pymodule_export]
    use crate::infer::{Inferred, captured_packets, captured_throughput, infer_timeouts};
    #[cfg(target_os = "linux")]
    #[pymodule_export]
    use crate::link::{
        Keeper, Link, LinkReport, give_up_capabilities, give_up_rights, keep_network_rights,
        play_role,
    };
    #[pymodule_export]
    use crate::run::{Control, Gathered, Result};
    #[pymodule_export]
    use crate::scenario::{
        Cell, Scenario, describe_library, json_schema, kinds, mechanisms, parse, reference_markdown,
    };
    #[pymodule_export]
    use crate::table::Table;
    #[pymodule_export]
    use crate::text::{read_quantity, read_text, read_toml};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        module.add("engine", env!("CWND_ENGINE"))?;
        module.add("observation_bounds", crate::episode::OBSERVATION_BOUNDS.to_vec())?;
        module.add("quic_overhead", cwnd_tcp::quic::PACKET_OVERHEAD)?;
        module.add("testbed", env!("CWND_TESTBED"))?;
        let py = module.py();
        module.add("ScenarioError", py.get_type::<ScenarioError>())?;
        module.add("Cancelled", py.get_type::<Cancelled>())?;
        module.add("Diverged", py.get_type::<Diverged>())?;
        module.add("Unavailable", py.get_type::<Unavailable>())
    }
}
