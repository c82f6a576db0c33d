use std::ffi::OsString;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use cwnd_quantity::Duration;
use cwnd_router::linux::keeper::{CapabilitySet, Make, Program, Spec, User, play};
use cwnd_router::linux::{Front, Keeper as Rights, Manner, create_file, system_servers};
use cwnd_router::{Config, Direction, DirectionReport, Point, Side};
use cwnd_tables::Histogram;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::capture::Capture;
use crate::scenario::Cell;
use crate::table::Table;

/// A process that has the rights which a link needs, until its command starts.
#[pyclass(frozen, module = "cwnd._core")]
#[derive(Debug)]
pub struct Keeper {
    /// `None` once a link has it.
    inner: Mutex<Option<Rights>>,
}

#[pymethods]
impl Keeper {
    /// Starts one: with the rights of this process, or by a command that grants rights, such as sudo. Then `say` is told the
    /// whole command before it runs, and `name` is one that nobody guesses.
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

/// Plays the role of a process of a link until its end; its exit code.
#[pyfunction]
pub fn play_role(
    py: Python<'_>,
    interpreter: PathBuf,
    script: PathBuf,
    role: &str,
) -> PyResult<u8> {
    Ok(py.detach(|| play(&Program { interpreter, script }, role))?)
}

/// Makes this process, which has no other threads, that of a user for good.
#[pyfunction]
pub fn give_up_rights(user: u32) -> PyResult<()> {
    Ok(cwnd_router::linux::keeper::give_up(&User::of(user)?)?)
}

/// The same, but for the rights that runs on Linux need: to make networks and devices and to load controllers. Files are
/// opened as that user opens them.
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
    Ok(cwnd_router::linux::keeper::keep_only(&User::of(user)?, rights)?)
}

/// A place behind an emulated link, in a network namespace of its own.
#[pyclass(frozen, module = "cwnd._core")]
#[derive(Debug)]
pub struct Link {
    /// `None` after the end.
    inner: Mutex<Option<Front>>,
    capture: Option<Capture>,
}

/// What happened on a link.
#[pyclass(frozen, module = "cwnd._core")]
#[derive(Debug)]
pub struct LinkReport {
    report: cwnd_router::Report,
}

#[pymethods]
impl Link {
    /// Makes the links `uplink` and `downlink` of a scenario real; their propagation is the round-trip time of its flow,
    /// half of it each way. Queries for names that go nowhere behind a link are passed on, or all of them to `dns`. `user`
    /// is who the command will be; its connections ask for ECN as `ecn` says, or as the system's do. A capture shows what
    /// leaves the lines (`link`), or what `command` or `caller` sends and receives.
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
            Front::make(keeper, Make { user, ecn }, config, file, (&system_servers(), dns))
        })?;
        Ok(Self { inner: Mutex::new(Some(front)), capture })
    }

    /// Runs a command with this environment and waits for its end and that of its connections: its exit code as a shell
    /// gives it, and whether it had a `/proc` of its own. Other Python threads go on meanwhile.
    #[pyo3(signature = (command, environment, allow_sudo=false, output_to_errors=false))]
    fn run(
        &self,
        py: Python<'_>,
        command: Vec<OsString>,
        environment: Vec<(OsString, OsString)>,
        allow_sudo: bool,
        output_to_errors: bool,
    ) -> PyResult<(i32, bool)> {
        let (spec, manner) =
            (Spec { command, environment }, Manner { allow_sudo, output_to_errors });
        py.detach(|| {
            let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
            let ended = inner.as_mut().ok_or_else(ended)?.run(&spec, manner)?;
            Ok((ended.code, ended.own_proc))
        })
    }

    /// Its IPv4 address at the caller's end, and the one behind it.
    #[getter]
    fn addresses(&self) -> PyResult<(String, String)> {
        self.with(|link| {
            let ends = link.made().ends;
            (ends.caller.to_string(), ends.behind.to_string())
        })
    }

    /// The same for IPv6; `None` where this machine has none.
    #[getter]
    fn addresses6(&self) -> PyResult<Option<(String, String)>> {
        self.with(|link| {
            link.made().ends6.map(|ends| (ends.caller.to_string(), ends.behind.to_string()))
        })
    }

    /// Why what is beyond this machine can't be reached; `None` if it can.
    #[getter]
    fn confined(&self) -> PyResult<Option<String>> {
        self.with(|link| link.made().confined.clone())
    }

    /// Why it can't be reached over IPv6; `None` if it can.
    #[getter]
    fn confined6(&self) -> PyResult<Option<String>> {
        self.with(|link| link.made().confined6.clone())
    }

    /// Ends the link; other Python threads go on meanwhile.
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
    fn with<T>(&self, work: impl FnOnce(&Front) -> T) -> PyResult<T> {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.as_ref().map(work).ok_or_else(ended)
    }
}

fn ended() -> PyErr {
    PyRuntimeError::new_err("the link has ended")
}

/// Where a capture looks; the command is at the side where the uplink begins.
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

/// A server for names: an address, with a port if it has one of its own.
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
        match of.unfilled() {
            Some(why) => Err(PyValueError::new_err(why)),
            None => Ok(of),
        }
    };
    let (mut up, mut down) = (direction("uplink")?, direction("downlink")?);
    let rtt = match scenario.flows.first().map(|flow| &flow.edge_rtt) {
        Some(rtt) if !rtt.varies() => rtt.mean(),
        _ => return Err(PyValueError::new_err("the round-trip time of a link is constant")),
    };
    down.delay = rtt / 2;
    up.delay = rtt - down.delay;
    let mut config = Config::new(up, down);
    config.seed = scenario.run.seed;
    config.sample = scenario.run.sample;
    Ok(config)
}

#[pymethods]
impl LinkReport {
    #[getter]
    fn links(&self) -> Table {
        Table::new(self.report.links())
    }

    #[getter]
    fn reasons(&self) -> Table {
        Table::new(self.report.reasons())
    }

    #[getter]
    fn link_series(&self) -> Table {
        Table::new(self.report.samples.clone())
    }

    #[getter]
    fn qdelay(&self) -> Table {
        Table::new(self.report.qdelay())
    }

    /// How the router itself did: whether the run is what was asked for, and what each direction's packets met besides
    /// the queue.
    fn summary<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let report = &self.report;
        let dict = PyDict::new(py);
        dict.set_item("valid", report.valid())?;
        dict.set_item("flaws", &report.flaws)?;
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

/// What there was of it, by name.
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

/// RFC 1035 § 4.2.
const DNS_PORT: u16 = 53;
