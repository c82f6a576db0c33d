//! Controllers in Python.

use std::sync::Arc;

use cwnd_cc::python::Maker;
use cwnd_cc::{
    AckSample, Cause, Controller, DynController, GrowthPermission, Phase, RateSample, Request,
    Window,
};
use cwnd_quantity::{Rate, Time};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};

use super::{Class, Moment, method, seconds, shown};

/// Facts about a connection that its controller starts with.
#[pyclass(frozen, get_all, module = "cwnd._core")]
#[derive(Debug)]
pub struct Start {
    /// Sender maximum segment size, payload bytes.
    mss: u32,
    /// First congestion window and restart window, bytes (RFC 5681's IW).
    initial_window: u64,
    /// Slow-start threshold, bytes; `None` if there is none.
    initial_ssthresh: Option<u64>,
    /// Upper bound of the window, bytes; `None` if there is none.
    max_window: Option<u64>,
    /// `True` if the receiver may hold back the ACK of a lone segment (RFC 5681 § 4.2).
    delayed_acks: bool,
    /// Seed for random numbers, of this object.
    seed: u64,
}

/// Facts that the transport knows, valid during the call.
#[pyclass(get_all, module = "cwnd._core")]
#[derive(Debug, Default)]
pub struct Path {
    /// Simulated time, seconds.
    now: f64,
    /// Sender maximum segment size, payload bytes.
    mss: u32,
    /// Smoothed round-trip time, seconds (RFC 6298); `None` before the first sample.
    srtt: Option<f64>,
    /// Smallest round-trip time so far, seconds.
    min_rtt: Option<f64>,
    /// Newest round-trip time, seconds.
    rtt: Option<f64>,
    /// Payload bytes sent and not yet cumulatively acknowledged (RFC 5681's FlightSize).
    flight_size: u64,
    /// Payload bytes cumulatively acknowledged since the start.
    delivered: u64,
    /// Payload bytes sent since the start, each counted once.
    sent: u64,
    /// State of loss recovery: `"open"`, `"cwr"`, `"recovery"` or `"loss"`.
    phase: &'static str,
    /// `True` if the congestion window limited what was sent (RFC 7661).
    cwnd_limited: bool,
    /// Number of round trips.
    round: u64,
}

/// Facts that one ACK reports, valid during the call.
#[pyclass(get_all, module = "cwnd._core")]
#[derive(Debug, Default)]
pub struct Ack {
    /// Payload bytes newly acknowledged; zero for a duplicate.
    acked_bytes: u64,
    /// Payload bytes newly reported by SACK.
    newly_sacked: u64,
    /// Payload bytes found lost since the ACK before this one.
    newly_lost: u64,
    /// Round-trip time measured by this ACK, seconds; `None` without a valid sample.
    rtt: Option<f64>,
    /// `True` if the ACK carried ECE.
    ece: bool,
    /// `True` if the window may grow for this ACK (RFC 5681, RFC 7661). As in Linux it may not in
    /// the round trip after a reduction, of which RFC 3168 § 6.1.2 excludes only ACKs with ECE.
    grow: bool,
}

/// Delivery rate that one ACK reports (draft-cheng-iccrg-delivery-rate-estimation-00).
#[pyclass(frozen, get_all, module = "cwnd._core")]
#[derive(Debug)]
pub struct DeliveryRate {
    /// Payload bytes that the ACK newly reports, cumulatively or by SACK.
    newly_delivered: u64,
    /// Payload bytes reported since the start.
    total_delivered: u64,
    /// Value of `total_delivered` when the newest of the reported segments was sent; `None` if the
    /// ACK reports no segment.
    prior_delivered: Option<u64>,
    /// Seconds in which the bytes since `prior_delivered` were sent or delivered, the longer of
    /// both; `None` if no rate follows from it.
    interval: Option<f64>,
    /// Round-trip time of that segment, seconds; `None` if it was sent more than once.
    rtt: Option<f64>,
    /// Payload bytes presumed in the network, after this ACK.
    in_flight: u64,
    /// `true` if the application limited the sender when that segment was sent.
    app_limited: bool,
}

/// A rare event.
#[pyclass(frozen, get_all, module = "cwnd._core")]
#[derive(Debug, Default)]
pub struct Signal {
    /// Kind: `"reduce"`, `"timeout"`, `"idle"` or `"resume"`; `"other"` of a later version.
    kind: &'static str,
    /// Cause of a reduction: `"loss"`, `"ecn"`, `"delay"`, `"quench"` or `"load"`.
    cause: Option<&'static str>,
    /// Number of expiries of the retransmission timer in a row, from 1.
    nth: u32,
    /// `True` if a timeout lowers the slow-start threshold (RFC 5681 § 3.1).
    reduces: bool,
    /// Seconds without data, of `"idle"`.
    idle: Option<f64>,
    /// Window that the transport keeps after a pause, bytes; `None` is the initial window.
    keep: Option<u64>,
    /// Time at which data was last sent, seconds, of `"resume"`.
    since: Option<f64>,
}

/// Makes the controllers of a class.
#[derive(Debug)]
pub struct Controllers(pub Arc<Class>);

impl Maker for Controllers {
    fn make(&self, start: &cwnd_cc::Start) -> Box<dyn DynController> {
        Box::new(PythonController::new(Arc::clone(&self.0), *start))
    }
}

/// A controller whose decisions are an object's in Python.
#[derive(Debug)]
struct PythonController {
    class: Arc<Class>,
    start: cwnd_cc::Start,
    /// `None` if there is no object: its constructor failed.
    code: Option<Code>,
    /// `true` if the object has seen nothing but its start.
    is_new: bool,
    window: Window,
    pacing: Option<Rate>,
    /// Time of the last call.
    now: Time,
}

/// An object, its methods, and the objects that its calls receive.
#[derive(Debug)]
struct Code {
    object: Py<PyAny>,
    on_ack: Py<PyAny>,
    on_signal: Py<PyAny>,
    /// `None` if the object takes no delivery rates.
    on_rate: Option<Py<PyAny>>,
    path: Py<Path>,
    ack: Py<Ack>,
    /// `path` and `ack` as the arguments of `on_ack`: each call would make a tuple of its own.
    facts: Py<PyTuple>,
    paces: bool,
    has_threshold: bool,
}

impl PythonController {
    fn new(class: Arc<Class>, start: cwnd_cc::Start) -> Self {
        let window = Window { cwnd: start.initial_window, ssthresh: start.initial_ssthresh };
        let mut made =
            Self { class, start, code: None, is_new: true, window, pacing: None, now: Time::ZERO };
        made.code = Arc::clone(&made.class).call(Moment::Start, |py| made.construct(py));
        made
    }

    fn construct(&mut self, py: Python<'_>) -> PyResult<Code> {
        let bound = |bytes: u64| (bytes < u64::MAX).then_some(bytes);
        let start = Start {
            mss: self.start.mss,
            initial_window: self.start.initial_window,
            initial_ssthresh: bound(self.start.initial_ssthresh),
            max_window: bound(self.start.max_window),
            delayed_acks: self.start.delayed_acks,
            seed: self.class.seed(),
        };
        let object = self.class.construct(py, start)?;
        let code = Code::of(&object)?;
        self.read(py, &code)?;
        Ok(code)
    }

    /// Reads the object's window, threshold and pacing rate.
    fn read(&mut self, py: Python<'_>, code: &Code) -> PyResult<()> {
        let object = code.object.bind(py);
        let window = object
            .getattr(intern!(py, "window"))
            .map_err(|_| PyTypeError::new_err("the object has no attribute `window`, in bytes"))?;
        let window = number(&window)
            .filter(|bytes| bytes.is_finite() && *bytes >= 0.0)
            .ok_or_else(|| wrong("window", &window, "a number of bytes"))?;
        let least = u64::from(self.start.mss);
        // Half of the range, so that adding to a window cannot overflow.
        let most = self.start.max_window.clamp(least, u64::MAX / 2);
        self.window.cwnd = (window as u64).clamp(least, most);
        if code.has_threshold {
            let threshold = object.getattr(intern!(py, "ssthresh"))?;
            self.window.ssthresh = match number(&threshold) {
                None if threshold.is_none() => u64::MAX,
                Some(bytes) if bytes >= 0.0 => bytes as u64,
                _ => return Err(wrong("ssthresh", &threshold, "a number of bytes, or None")),
            };
        }
        if code.paces {
            let rate = object.getattr(intern!(py, "pacing_rate"))?;
            self.pacing = match number(&rate) {
                None if rate.is_none() => None,
                Some(bit_s) if bit_s >= 1.0 && bit_s.is_finite() => Some(Rate(bit_s as u64)),
                _ => return Err(wrong("pacing_rate", &rate, "a rate in bit/s, or None")),
            };
        }
        Ok(())
    }

    /// Calls into the object, then reads what it decided. A failed run calls nothing more.
    fn call<T>(
        &mut self,
        now: Time,
        call: impl FnOnce(Python<'_>, &Code) -> PyResult<T>,
    ) -> Option<T> {
        (self.is_new, self.now) = (false, now);
        let (class, code) = (Arc::clone(&self.class), self.code.take()?);
        let called = class.call(Moment::At(now), |py| {
            let value = call(py, &code)?;
            self.read(py, &code)?;
            Ok(value)
        });
        self.code = Some(code);
        called
    }

    /// Sets the object's window, and its threshold if it has one, in bytes.
    fn set_window(&mut self, window: Window) {
        self.call(self.now, |py, code| {
            code.object.setattr(py, intern!(py, "window"), window.cwnd)?;
            if code.has_threshold {
                let threshold = (window.ssthresh < u64::MAX).then_some(window.ssthresh);
                code.object.setattr(py, intern!(py, "ssthresh"), threshold)?;
            }
            Ok(())
        });
    }
}

impl Code {
    fn of(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = object.py();
        let (path, ack) = (Py::new(py, Path::default())?, Py::new(py, Ack::default())?);
        Ok(Self {
            on_ack: method(object, "on_ack")?,
            on_signal: method(object, "on_signal")?,
            on_rate: object.getattr_opt(intern!(py, "on_rate"))?.map(Bound::unbind),
            facts: (&path, &ack).into_pyobject(py)?.unbind(),
            path,
            ack,
            paces: object.hasattr(intern!(py, "pacing_rate"))?,
            has_threshold: object.hasattr(intern!(py, "ssthresh"))?,
            object: object.clone().unbind(),
        })
    }

    fn set_path(&self, py: Python<'_>, from: &cwnd_cc::Path) {
        let phase = match from.phase {
            Phase::Open => "open",
            Phase::Cwr => "cwr",
            Phase::Recovery => "recovery",
            Phase::Loss => "loss",
        };
        *self.path.bind(py).borrow_mut() = Path {
            now: from.now.as_secs_f64(),
            mss: from.mss,
            srtt: seconds(from.srtt),
            min_rtt: seconds(from.min_rtt),
            rtt: seconds(from.rtt),
            flight_size: from.flight_size,
            delivered: from.delivered,
            sent: from.sent,
            phase,
            cwnd_limited: from.cwnd_limited,
            round: from.round,
        };
    }

    fn set_ack(&self, py: Python<'_>, from: &AckSample) {
        *self.ack.bind(py).borrow_mut() = Ack {
            acked_bytes: from.acked_bytes,
            newly_sacked: from.newly_sacked,
            newly_lost: from.newly_lost,
            rtt: seconds(from.rtt),
            ece: from.ece,
            grow: from.grow == GrowthPermission::Yes,
        };
    }
}

impl Controller for PythonController {
    fn on_ack(&mut self, path: &cwnd_cc::Path, ack: &AckSample) -> Request {
        let request = self.call(path.now, |py, code| {
            code.set_path(py, path);
            code.set_ack(py, ack);
            let asked = code.on_ack.bind(py).call1(code.facts.bind(py))?;
            if asked.is_none() { Ok(Request::Nothing) } else { request(&asked) }
        });
        request.unwrap_or(Request::Nothing)
    }

    fn on_signal(&mut self, path: &cwnd_cc::Path, signal: cwnd_cc::Signal) {
        self.call(path.now, |py, code| {
            code.set_path(py, path);
            code.on_signal.bind(py).call1((&code.path, described(signal))).map(|_| ())
        });
    }

    fn is_rate_based(&self) -> bool {
        self.code.as_ref().is_some_and(|code| code.on_rate.is_some())
    }

    fn on_rate(&mut self, sample: &RateSample) {
        self.call(self.now, |py, code| {
            let Some(on_rate) = &code.on_rate else { return Ok(()) };
            let rate = DeliveryRate {
                newly_delivered: sample.newly_delivered,
                total_delivered: sample.total_delivered,
                prior_delivered: sample.prior_delivered,
                interval: seconds(sample.interval),
                rtt: seconds(sample.rtt),
                in_flight: sample.in_flight,
                app_limited: sample.app_limited,
            };
            on_rate.bind(py).call1((rate,)).map(|_| ())
        });
    }

    fn count(&self, each: &mut dyn FnMut(&'static str, u64)) {
        if let Some(code) = &self.code {
            self.class.count(&code.object, each);
        }
    }

    fn window(&self) -> Window {
        self.window
    }

    fn pacing(&self) -> Option<Rate> {
        self.pacing
    }

    fn undo(&mut self, before: Self, now: Time, _after_timeout: bool) {
        self.now = now;
        self.set_window(Window {
            cwnd: self.window.cwnd.max(before.window.cwnd),
            ssthresh: self.window.ssthresh.max(before.window.ssthresh),
        });
    }

    fn raise_threshold(&mut self, ssthresh: u64) {
        if ssthresh > self.window.ssthresh {
            self.set_window(Window { ssthresh, ..self.window });
        }
    }

    fn add_in_flight(&mut self, bytes: u64) {
        self.set_window(Window { cwnd: self.window.cwnd + bytes, ..self.window });
    }
}

/// A copy of a new object is another new one, of another connection. A later one, before a
/// reduction that may be undone, keeps what the object decided.
impl Clone for PythonController {
    fn clone(&self) -> Self {
        let class = Arc::clone(&self.class);
        if self.is_new && self.code.is_some() {
            return Self::new(class, self.start);
        }
        Self { class, code: None, ..*self }
    }
}

/// Returns the number that an attribute is; `None` if it is something else.
fn number(value: &Bound<'_, PyAny>) -> Option<f64> {
    value.extract().ok()
}

/// Error of an attribute that is not what it must be.
fn wrong(name: &str, value: &Bound<'_, PyAny>, expected: &str) -> PyErr {
    PyValueError::new_err(format!("`{name}` is {}, not {expected}", shown(value)))
}

/// Returns the reduction that `on_ack` asks for by the name of its cause.
fn request(asked: &Bound<'_, PyAny>) -> PyResult<Request> {
    let cause = asked.cast::<PyString>().ok().and_then(|text| match text.to_str().ok()? {
        "loss" => Some(Cause::Loss),
        "ecn" => Some(Cause::Ecn),
        "delay" => Some(Cause::Delay),
        "load" => Some(Cause::Load),
        _ => None,
    });
    cause.map(Request::Reduce).ok_or_else(|| {
        PyValueError::new_err(format!(
            "`on_ack` returned {}: it returns None, or \"delay\", \"ecn\", \"load\" or \
            \"loss\" for a reduction",
            shown(asked)
        ))
    })
}

fn described(signal: cwnd_cc::Signal) -> Signal {
    match signal {
        cwnd_cc::Signal::Reduce(cause) => {
            let cause = match cause {
                Cause::Loss => "loss",
                Cause::Ecn => "ecn",
                Cause::Delay => "delay",
                Cause::Quench { .. } => "quench",
                Cause::Load => "load",
            };
            Signal { kind: "reduce", cause: Some(cause), ..Signal::default() }
        }
        cwnd_cc::Signal::Timeout { nth, reduces } => {
            Signal { kind: "timeout", nth, reduces, ..Signal::default() }
        }
        cwnd_cc::Signal::Idle { idle, keep } => Signal {
            kind: "idle",
            idle: seconds(Some(idle)),
            keep: keep.map(|window| window.cwnd),
            ..Signal::default()
        },
        cwnd_cc::Signal::Resume { since } => {
            Signal { kind: "resume", since: Some(since.as_secs_f64()), ..Signal::default() }
        }
        // Later kinds are of no use to code that does not know them.
        _ => Signal { kind: "other", ..Signal::default() },
    }
}
