//! Queues in Python.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use cwnd_aqm::Reason;
use cwnd_aqm::python::{Arrived, Decider, Maker, Verdict};
use cwnd_packet::Ecn;
use cwnd_quantity::{LinkProperties, Rate, Rng, Time};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;

use super::{Class, Moment, method, names, shown};

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

/// Actions of a queue's code on packets during a call.
#[derive(Debug, Default)]
struct Done {
    /// Verdicts that are not carried out yet.
    verdicts: Mutex<Vec<Verdict>>,
    /// `true` if it forgot a packet that was neither sent nor dropped.
    has_forgotten: AtomicBool,
}

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
    queue: Arc<Done>,
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
        self.check_waits()?;
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
        self.check_waits()?;
        if !self.ecn.is_ect() {
            return Ok(false);
        }
        self.judge(reason, false)?;
        self.ecn = Ecn::Ce;
        Ok(true)
    }
}

impl QueuedPacket {
    fn check_waits(&self) -> PyResult<()> {
        let gone = || PyValueError::new_err("the packet was already sent or dropped");
        self.waits.then_some(()).ok_or_else(gone)
    }

    fn judge(&self, reason: &str, drops: bool) -> PyResult<()> {
        let reason = Reason::named(names::reason(reason)?);
        let mut verdicts = self.queue.verdicts.lock().unwrap_or_else(PoisonError::into_inner);
        verdicts.push(Verdict { number: self.number, drops, reason });
        Ok(())
    }
}

impl Drop for QueuedPacket {
    fn drop(&mut self) {
        if self.waits {
            self.queue.has_forgotten.store(true, Ordering::Relaxed);
        }
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
        let code = class.call(Moment::Start, |py| {
            let object = class.construct(py, facts)?;
            Ok(Code {
                enqueue: method(&object, "enqueue")?,
                dequeue: method(&object, "dequeue")?,
                on_rate: object.getattr_opt(intern!(py, "on_rate"))?.map(Bound::unbind),
                object: object.unbind(),
            })
        });
        Box::new(PythonQueue { class, code, done: Arc::default() })
    }
}

/// A queue whose decisions are an object's.
#[derive(Debug)]
struct PythonQueue {
    class: Arc<Class>,
    /// `None` if its constructor failed.
    code: Option<Code>,
    done: Arc<Done>,
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
        let called = self.class.call(Moment::At(now), |py| {
            let returned = call(py, code)?;
            if self.done.has_forgotten.load(Ordering::Relaxed) {
                let message = "the queue forgot a packet: `dequeue` returns it, or it is dropped";
                return Err(PyValueError::new_err(message));
            }
            Ok(returned)
        });
        into.append(&mut self.done.verdicts.lock().unwrap_or_else(PoisonError::into_inner));
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
            queue: Arc::clone(&self.done),
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
        self.class.call(Moment::At(now), |py| {
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
            let expected = "a packet that waits, or None";
            let message = format!("`dequeue` returned {}, not {expected}", shown(chosen));
            return Err(PyTypeError::new_err(message));
        };
        let mut packet = packet.borrow_mut();
        if !(packet.waits && Arc::ptr_eq(&packet.queue, &self.done)) {
            let message = "`dequeue` returned a packet that was already sent or dropped";
            return Err(PyValueError::new_err(message));
        }
        packet.waits = false;
        Ok(packet.number)
    }
}
