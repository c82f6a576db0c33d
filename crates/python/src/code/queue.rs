//! Queues in Python.

use std::sync::{Arc, Mutex, PoisonError};

use cwnd_aqm::Reason;
use cwnd_aqm::python::{Arrived, Decider, Maker, Verdict};
use cwnd_packet::Ecn;
use cwnd_quantity::{LinkProperties, Rate, Rng, Time};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;

use super::{Class, method, names};

/// Facts that the queue of a link starts with.
#[pyclass(frozen, get_all, module = "cwnd._core")]
#[derive(Debug)]
pub struct LinkStart {
    /// Rate of the link, bit/s: the first one if it changes, the mean of a trace.
    rate: f64,
    /// Round-trip time that a bandwidth-delay product refers to, seconds.
    bdp_rtt: f64,
    /// Seed for random numbers, of this queue.
    seed: u64,
}

/// Verdicts of a queue's code that are not carried out yet.
type Verdicts = Arc<Mutex<Vec<Verdict>>>;

/// A packet in a queue.
#[pyclass(module = "cwnd._core")]
#[derive(Debug)]
pub struct QueuedPacket {
    number: u32,
    /// Size on the wire, bytes.
    #[pyo3(get)]
    size: u32,
    /// Hash of its flow and direction.
    #[pyo3(get)]
    flow: u64,
    /// Time of its arrival, seconds.
    #[pyo3(get)]
    arrived: f64,
    ecn: Ecn,
    /// `false` once it was sent or dropped.
    waits: bool,
    verdicts: Verdicts,
}

#[pymethods]
impl QueuedPacket {
    /// Code point of its ECN field: `"not-ect"`, `"ect0"`, `"ect1"` or `"ce"`.
    #[getter]
    const fn ecn(&self) -> &'static str {
        match self.ecn {
            Ecn::NotEct => "not-ect",
            Ecn::Ect0 => "ect0",
            Ecn::Ect1 => "ect1",
            Ecn::Ce => "ce",
        }
    }

    /// Drops the packet, for a reason that results show.
    ///
    /// Raises `ValueError` if it does not wait any more, or if the reason is no name.
    #[pyo3(signature = (reason="python"))]
    fn drop(&mut self, reason: &str) -> PyResult<()> {
        self.judge(reason, true)?;
        self.waits = false;
        Ok(())
    }

    /// Marks the packet with CE, for a reason that results show; returns `False` if it is not
    /// ECN-capable, and then does nothing (RFC 3168 § 5).
    ///
    /// Raises `ValueError` if it does not wait any more, or if the reason is no name.
    #[pyo3(signature = (reason="python"))]
    fn mark(&mut self, reason: &str) -> PyResult<bool> {
        if !self.ecn.is_ect() {
            return Ok(false);
        }
        self.judge(reason, false)?;
        self.ecn = Ecn::Ce;
        Ok(true)
    }
}

impl QueuedPacket {
    fn judge(&self, reason: &str, drops: bool) -> PyResult<()> {
        if !self.waits {
            return Err(PyValueError::new_err("the packet was already sent or dropped"));
        }
        let reason = Reason::named(names::reason(reason)?);
        let mut verdicts = self.verdicts.lock().unwrap_or_else(PoisonError::into_inner);
        verdicts.push(Verdict { number: self.number, drops, reason });
        Ok(())
    }
}

/// Makes the queues of a class.
#[derive(Debug)]
pub struct Queues(pub Arc<Class>);

impl Maker for Queues {
    fn make(&self, link: &LinkProperties, mut rng: Rng) -> Box<dyn Decider> {
        let facts = LinkStart {
            rate: link.rate.0 as f64,
            bdp_rtt: link.bdp_rtt.as_secs_f64(),
            seed: rng.bits(),
        };
        let class = Arc::clone(&self.0);
        let code = class.call(None, |py| {
            let object = class.construct(py, facts)?;
            Ok(Code {
                enqueue: method(&object, "enqueue")?,
                dequeue: method(&object, "dequeue")?,
                on_rate: object.getattr_opt(intern!(py, "on_rate"))?.map(Bound::unbind),
                object: object.unbind(),
            })
        });
        Box::new(PythonQueue { class, code, verdicts: Verdicts::default() })
    }
}

/// A queue whose decisions are an object's.
#[derive(Debug)]
struct PythonQueue {
    class: Arc<Class>,
    /// `None` if its constructor failed.
    code: Option<Code>,
    verdicts: Verdicts,
}

#[derive(Debug)]
struct Code {
    object: Py<PyAny>,
    enqueue: Py<PyAny>,
    dequeue: Py<PyAny>,
    on_rate: Option<Py<PyAny>>,
}

impl PythonQueue {
    fn call<T>(
        &self,
        now: Time,
        into: &mut Vec<Verdict>,
        call: impl FnOnce(Python<'_>, &Code) -> PyResult<T>,
    ) -> Option<T> {
        let code = self.code.as_ref()?;
        let called = self.class.call(Some(now), |py| call(py, code));
        into.append(&mut self.verdicts.lock().unwrap_or_else(PoisonError::into_inner));
        called
    }
}

impl Decider for PythonQueue {
    fn enqueue(&mut self, now: Time, packet: Arrived, verdicts: &mut Vec<Verdict>) {
        let arrived = QueuedPacket {
            number: packet.number,
            size: packet.wire_bytes,
            flow: packet.flow_hash,
            arrived: now.as_secs_f64(),
            ecn: packet.ecn,
            waits: true,
            verdicts: Arc::clone(&self.verdicts),
        };
        self.call(now, verdicts, |py, code| {
            code.enqueue.bind(py).call1((now.as_secs_f64(), arrived)).map(drop)
        });
    }

    fn dequeue(&mut self, now: Time, verdicts: &mut Vec<Verdict>) -> Option<u32> {
        self.call(now, verdicts, |py, code| {
            let chosen = code.dequeue.bind(py).call1((now.as_secs_f64(),))?;
            if chosen.is_none() { Ok(None) } else { self.sent(&chosen).map(Some) }
        })?
    }

    fn on_rate(&mut self, now: Time, rate: Rate) {
        let Some(on_rate) = self.code.as_ref().and_then(|code| code.on_rate.as_ref()) else {
            return;
        };
        // Its verdicts are carried out when the next packet comes or goes.
        self.class.call(Some(now), |py| {
            on_rate.bind(py).call1((now.as_secs_f64(), rate.0 as f64)).map(drop)
        });
    }

    fn count(&self, each: &mut dyn FnMut(&'static str, u64)) {
        if let Some(code) = &self.code {
            self.class.count(&code.object, each);
        }
    }
}

impl PythonQueue {
    /// Takes a packet that `dequeue` returned out of the queue.
    fn sent(&self, chosen: &Bound<'_, PyAny>) -> PyResult<u32> {
        let Ok(packet) = chosen.cast::<QueuedPacket>() else {
            let found = chosen.repr().map_or_else(|_| "this".to_owned(), |text| text.to_string());
            let message = format!("`dequeue` returned {found}, not a packet that waits, or None");
            return Err(PyTypeError::new_err(message));
        };
        let mut packet = packet.borrow_mut();
        if !(packet.waits && Arc::ptr_eq(&packet.verdicts, &self.verdicts)) {
            let message = "`dequeue` returned a packet that was already sent or dropped";
            return Err(PyValueError::new_err(message));
        }
        packet.waits = false;
        Ok(packet.number)
    }
}
