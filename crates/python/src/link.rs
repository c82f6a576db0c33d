use std::ffi::OsString;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use cwnd_quantity::Duration;
use cwnd_router::linux::privileged::{CapabilitySet, Make, Program, Spec, User, run_role};
use cwnd_router::linux::{
    PrivilegedProcess as Rights, RunOptions, UnprivilegedLink, create_file, system_servers,
};
use cwnd_router::{Config, Direction, DirectionReport, Live, Point, Side};
use cwnd_schema::ParamsChoice as _;
use cwnd_tables::Histogram;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::capture::Capture;
use crate::scenario::Cell;
use crate::table::Table;

/// A process with the privileges that a link needs; it gives them up when the link's command
/// starts.
#[pyclass(frozen, module = "cwnd._core")]
#[derive(Debug)]
pub struct Keeper {
    /// `None` once a link has taken it.
    inner: Mutex<Option<Rights>>,
}

#[pymethods]
impl Keeper {
    /// Starts the process.
    ///
    /// It has the privileges of this process, or gets them by `granting`, a command such as sudo.
    /// Only then, `say` is called with the whole command before it runs, and `name` must be
    /// unguessable: it names the socket to which the process connects.
    #[new]
    #[pyo3(signature = (interpreter, script, granting=None, name="", say=None))]
    fn new(
        py: Python<'_>,
        interpreter: PathBuf,
        script: PathBuf,
        granting: Option<Vec<OsString>>,
        name: &str,
        say: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        let program = Program { interpreter, script };
        let mut told = Ok(());
        let keeper = py.detach(|| match granting {
            None => Rights::start(&program),
            Some(granting) => Rights::ask(&granting, &program, name, |command| {
                let words = [command.get_program()].into_iter().chain(command.get_args());
                let words: Vec<OsString> = words.map(ToOwned::to_owned).collect();
                told = Python::attach(|py| {
                    say.map_or(Ok(()), |say| say.call1(py, (words,)).map(drop))
                });
            }),
        });
        told?;
        Ok(Self { inner: Mutex::new(Some(keeper?)) })
    }
}

/// Runs the process of a link that `role` names, until it ends; returns its exit code.
#[pyfunction]
pub fn play_role(
    py: Python<'_>,
    interpreter: PathBuf,
    script: PathBuf,
    role: &str,
) -> PyResult<u8> {
    Ok(py.detach(|| run_role(&Program { interpreter, script }, role))?)
}

/// Switches this process to a user for good. The process must have no other threads.
#[pyfunction]
pub fn give_up_rights(user: u32) -> PyResult<()> {
    Ok(cwnd_router::linux::privileged::give_up(&User::of(user)?)?)
}

/// Gives up the capabilities of this thread for good, also for programs that it executes.
#[pyfunction]
pub fn give_up_capabilities() -> PyResult<()> {
    Ok(cwnd_router::linux::privileged::give_up_capabilities()?)
}

/// Switches this process to a user, but keeps the capabilities that runs on Linux need: to create
/// networks and devices, to load controllers, and for real-time priorities and resource limits.
/// Files are opened with that user's permissions.
#[pyfunction]
pub fn keep_network_rights(user: u32) -> PyResult<()> {
    let rights = CapabilitySet::NET_ADMIN
        | CapabilitySet::NET_RAW
        | CapabilitySet::NET_BIND_SERVICE
        | CapabilitySet::SYS_ADMIN
        | CapabilitySet::SYS_NICE
        | CapabilitySet::SYS_RESOURCE
        | CapabilitySet::BPF
        | CapabilitySet::PERFMON;
    Ok(cwnd_router::linux::privileged::keep_only(&User::of(user)?, rights)?)
}

/// Time in s, bytes sent, packets waiting, delay of the last packet in µs, drops and marks.
type LiveRow = (f64, u64, u64, Option<f64>, u64, u64);

/// A network namespace behind an emulated link.
#[pyclass(frozen, module = "cwnd._core")]
#[derive(Debug)]
pub struct Link {
    /// `None` after the link has ended.
    inner: Mutex<Option<UnprivilegedLink>>,
    live: Live,
    capture: Option<Capture>,
}

/// Counters and series that a link has recorded.
#[pyclass(frozen, module = "cwnd._core")]
#[derive(Debug)]
pub struct LinkReport {
    report: cwnd_router::Report,
}

#[pymethods]
impl Link {
    /// Sets up the links `uplink` and `downlink` of a scenario. Their propagation delay is half the
    /// round-trip time of its flow each.
    ///
    /// DNS queries to servers on a loopback address, which cannot be reached from behind the link,
    /// are relayed; with `dns`, all queries go to that server. The command runs as `user`; `ecn`
    /// sets whether its connections request ECN (by default the system's setting). `pcap_at`
    /// selects the packets of the capture: those that leave the lines (`link`), or those that
    /// `command` or `caller` sends and receives.
    #[new]
    #[pyo3(signature = (cell, keeper, user, ecn=None, pcap=None, pcap_at=None, dns=None))]
    #[expect(clippy::too_many_arguments, reason = "Python names them")]
    fn new(
        py: Python<'_>,
        cell: &Cell,
        keeper: &Keeper,
        user: u32,
        ecn: Option<bool>,
        pcap: Option<PathBuf>,
        pcap_at: Option<&str>,
        dns: Option<&str>,
    ) -> PyResult<Self> {
        let point = pcap_at.map_or(Ok(Point::Line), point)?;
        let config = config(cell)?;
        let dns = dns.map(server).transpose()?;
        let (capture, file) = match pcap {
            None => (None, None),
            Some(path) => {
                let (capture, output) = Capture::into_file(&path, create_file(&path))?;
                let file =
                    cwnd_router::Capture::new(output, "cwnd link", &config.directions, point)
                        .map_err(|error| capture.error(&error))?;
                (Some(capture), Some(file.with_time_of_day()))
            }
        };
        let keeper = keeper.inner.lock().unwrap_or_else(PoisonError::into_inner).take();
        let keeper = keeper.ok_or_else(|| PyRuntimeError::new_err("the rights are given up"))?;
        let front = py.detach(|| {
            UnprivilegedLink::make(
                keeper,
                Make { user, ecn },
                config,
                file,
                (&system_servers(), dns),
            )
        })?;
        Ok(Self { live: front.live(), inner: Mutex::new(Some(front)), capture })
    }

    /// Runs a command with this environment, and waits until it and its connections end.
    ///
    /// Returns its exit code as a shell gives it, and `True` if it had a `/proc` of its own. Other
    /// Python threads keep running.
    #[pyo3(signature = (command, environment, allow_sudo=false, output_to_errors=false))]
    fn run(
        &self,
        py: Python<'_>,
        command: Vec<OsString>,
        environment: Vec<(OsString, OsString)>,
        allow_sudo: bool,
        output_to_errors: bool,
    ) -> PyResult<(i32, bool)> {
        let (spec, options) =
            (Spec { command, environment }, RunOptions { allow_sudo, output_to_errors });
        py.detach(|| {
            let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
            let ended = inner.as_mut().ok_or_else(ended)?.run(&spec, options)?;
            Ok((ended.code, ended.own_proc))
        })
    }

    /// Last rows of the time series, of the uplink and the downlink; `None` before the first.
    fn live(&self) -> [Option<LiveRow>; 2] {
        self.live.rows().map(|row| {
            row.map(|of| {
                (
                    of.time_s,
                    of.sent_bytes.unwrap_or(0),
                    of.qlen_pkts,
                    of.sojourn_us,
                    of.drop,
                    of.mark,
                )
            })
        })
    }

    /// IPv4 addresses of the link: at the caller's end, and behind it.
    #[getter]
    fn addresses(&self) -> PyResult<(String, String)> {
        self.with(|link| {
            let ends = link.made().ends;
            (ends.caller.to_string(), ends.behind.to_string())
        })
    }

    /// IPv6 addresses of the link, as `addresses`; `None` if they could not be added, as on a
    /// machine without IPv6.
    #[getter]
    fn addresses6(&self) -> PyResult<Option<(String, String)>> {
        self.with(|link| {
            link.made().ends6.map(|ends| (ends.caller.to_string(), ends.behind.to_string()))
        })
    }

    /// Reason why hosts beyond this machine cannot be reached; `None` if they can.
    #[getter]
    fn confined(&self) -> PyResult<Option<String>> {
        self.with(|link| link.made().unreachable_reason.clone())
    }

    /// Reason why hosts beyond this machine cannot be reached over IPv6; `None` if they can.
    #[getter]
    fn confined6(&self) -> PyResult<Option<String>> {
        self.with(|link| link.made().unreachable_reason6.clone())
    }

    /// Ends the link and returns its report. Other Python threads keep running.
    fn finish(&self, py: Python<'_>) -> PyResult<LinkReport> {
        let link = self.inner.lock().unwrap_or_else(PoisonError::into_inner).take();
        let link = link.ok_or_else(ended)?;
        let finished = py.detach(|| link.finish());
        if let Some(error) = self.capture.as_ref().and_then(Capture::failed) {
            return Err(error);
        }
        Ok(LinkReport { report: finished? })
    }
}

impl Link {
    fn with<T>(&self, work: impl FnOnce(&UnprivilegedLink) -> T) -> PyResult<T> {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.as_ref().map(work).ok_or_else(ended)
    }
}

fn ended() -> PyErr {
    PyRuntimeError::new_err("the link has ended")
}

/// Returns the capture point of a name. The command is at side A, where the uplink begins.
fn point(name: &str) -> PyResult<Point> {
    match name {
        "link" => Ok(Point::Line),
        "command" => Ok(Point::At(Side::A)),
        "caller" => Ok(Point::At(Side::B)),
        _ => {
            let help = "link, command or caller";
            Err(PyValueError::new_err(format!("packets cannot be captured at `{name}`: {help}")))
        }
    }
}

/// Reads the address of a DNS server, with a port if it is not 53.
fn server(text: &str) -> PyResult<SocketAddr> {
    let address = text.parse::<IpAddr>().map(|address| SocketAddr::new(address, DNS_PORT));
    address.or_else(|_| text.parse()).map_err(|_| {
        let example = "as in 192.0.2.1, 127.0.0.1:5353 or [2001:db8::1]:53";
        PyValueError::new_err(format!("{text} is no address of a server: {example}"))
    })
}

fn config(cell: &Cell) -> PyResult<Config> {
    let scenario = cell.scenario();
    let direction = |name: &str| {
        let link = scenario.links.iter().find(|link| link.name == name);
        let of = link
            .map(Direction::of_link)
            .ok_or_else(|| PyValueError::new_err(format!("there is no link `{name}`")))?;
        if of.queue.is_loaded() {
            let message =
                format!("a link has no queue `{}`: its router has root's rights", of.queue.kind());
            return Err(PyValueError::new_err(message));
        }
        match of.meter_without_effect() {
            Some(why) => Err(PyValueError::new_err(why)),
            None => Ok(of),
        }
    };
    let mut config = Config::new(direction("uplink")?, direction("downlink")?);
    config.seed = scenario.run.seed;
    config.sample = scenario.run.sample;
    config.max_samples = MAX_SAMPLES;
    Ok(config)
}

#[pymethods]
impl LinkReport {
    #[getter]
    fn links(&self) -> PyResult<Table> {
        Table::new(self.report.links())
    }

    #[getter]
    fn reasons(&self) -> PyResult<Table> {
        Table::new(self.report.reasons())
    }

    #[getter]
    fn link_series(&self) -> PyResult<Table> {
        Table::new(self.report.samples.clone())
    }

    #[getter]
    fn qdelay(&self) -> PyResult<Table> {
        Table::new(self.report.qdelay())
    }

    /// Returns the state of the router itself: whether the run is valid, its load, and counts and
    /// lateness of each direction's packets in the whole run.
    fn summary<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let report = &self.report;
        let dict = PyDict::new(py);
        dict.set_item("valid", report.valid())?;
        dict.set_item("flaws", &report.flaws)?;
        dict.set_item("began_s", report.began.as_secs_f64())?;
        dict.set_item("elapsed_s", report.elapsed.as_secs_f64())?;
        dict.set_item("idle", report.idle)?;
        dict.set_item("cpu", report.cpu)?;
        dict.set_item("longest_turn_us", micros(report.longest_turn))?;
        dict.set_item("scheduling", report.scheduling)?;
        let directions = PyDict::new(py);
        for direction in &report.directions {
            directions.set_item(&direction.name, summary_of(py, direction, report.elapsed)?)?;
        }
        dict.set_item("directions", directions)?;
        Ok(dict)
    }
}

fn summary_of<'py>(
    py: Python<'py>,
    direction: &DirectionReport,
    elapsed: Duration,
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    let total = &direction.total;
    let seconds = elapsed.as_secs_f64().max(f64::MIN_POSITIVE);
    dict.set_item("arrived_pkts", total.link.arrived)?;
    dict.set_item("delivered_pkts", total.delivered)?;
    dict.set_item("delivered_bytes", total.delivered_bytes)?;
    dict.set_item("sent_bit_s", total.link.delivered_bytes as f64 * 8.0 / seconds)?;
    for (name, reasons) in [("drops", &total.link.drops), ("marks", &total.link.marks)] {
        let by_reason = reasons.iter().map(|(reason, count)| (reason.name(), count));
        dict.set_item(name, counts(py, by_reason)?)?;
    }
    dict.set_item("quenches", direction.quenches)?;
    dict.set_item("counted", counts(py, direction.counted.iter())?)?;
    dict.set_item("malformed_pkts", total.malformed)?;
    dict.set_item("largest_bytes", total.largest)?;
    dict.set_item("lost_before_pkts", direction.lost_before)?;
    dict.set_item("undelivered_pkts", direction.undelivered)?;
    dict.set_item("inside_pkts", direction.held)?;
    for (name, q) in [("late_p50_us", 0.5), ("late_p99_us", 0.99), ("late_max_us", 1.0)] {
        dict.set_item(name, quantile(&direction.lateness, q))?;
    }
    Ok(dict)
}

/// Returns the counts above zero by name.
fn counts<'py, 'a>(
    py: Python<'py>,
    all: impl Iterator<Item = (&'a str, u64)>,
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (name, count) in all.filter(|&(_, count)| count > 0) {
        dict.set_item(name, count)?;
    }
    Ok(dict)
}

fn quantile(histogram: &Histogram, q: f64) -> Option<f64> {
    histogram.quantile(q).map(micros)
}

fn micros(d: Duration) -> f64 {
    d.as_nanos() as f64 / 1000.0
}

/// Rows of a direction's time series in memory: 17 minutes at intervals of 20 ms.
const MAX_SAMPLES: usize = 50_000;
/// Port of DNS (RFC 1035 § 4.2).
const DNS_PORT: u16 = 53;
