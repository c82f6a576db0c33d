//! Calibration of the router: before a run, it gets the run's delays and highest rates, and a known
//! buffer. Its output is measured with datagrams between the two namespaces.

use std::io;
use std::net::{SocketAddrV4, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use cwnd_aqm::{QueueParams, fifo};
use cwnd_quantity::{Bytes, Duration, QueueSize, Rate};
use cwnd_router::{Config, Stop, Tun};
use cwnd_scenario::LinkRate;
use serde_json::{Value, json};

use crate::world::{Side, monotonic_ns, sleep_until};

/// UDP socket in the namespace of a side.
#[derive(Debug)]
pub struct Probe {
    socket: UdpSocket,
    side: Side,
}

impl Probe {
    /// Opens the socket; the calling thread must be in the side's namespace.
    pub fn open(side: Side) -> io::Result<Self> {
        let socket = UdpSocket::bind(SocketAddrV4::new(side.address(0), PORT))?;
        Ok(Self { socket, side })
    }

    /// Sends a datagram that carries a number; its size on the wire includes the headers.
    fn send(&self, to: Side, number: u32, wire_bytes: usize) -> io::Result<()> {
        let mut payload = vec![0; wire_bytes - HEADERS];
        payload[..4].copy_from_slice(&number.to_be_bytes());
        self.socket.send_to(&payload, SocketAddrV4::new(to.address(0), PORT))?;
        Ok(())
    }

    /// Returns the number and arrival time of the next datagram; `None` after a timeout.
    fn receive(&self) -> io::Result<Option<(u32, u64)>> {
        let mut payload = [0; 2048];
        match self.socket.recv(&mut payload) {
            Ok(_) => {
                let number = u32::from_be_bytes([payload[0], payload[1], payload[2], payload[3]]);
                Ok(Some((number, monotonic_ns())))
            }
            Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

/// Comparison of the router's settings with measurements.
#[derive(Clone, Debug, PartialEq)]
pub struct Calibration {
    /// One row for each quantity.
    pub rows: Vec<Row>,
}

/// A quantity that was set and measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Name of the link and quantity.
    pub what: String,
    /// Unit of both values.
    pub unit: &'static str,
    /// Value set in the router.
    pub set: f64,
    /// Measured value.
    pub measured: f64,
    /// Largest accepted difference.
    pub tolerance: f64,
}

impl Row {
    /// `true` if the measured value is within the tolerance.
    #[must_use]
    pub fn holds(&self) -> bool {
        (self.measured - self.set).abs() <= self.tolerance
    }
}

impl Calibration {
    /// Returns the rows for the manifest.
    #[must_use]
    pub fn json(&self) -> Value {
        let row = |row: &Row| {
            json!({
                "what": row.what,
                "unit": row.unit,
                "set": row.set,
                "measured": row.measured,
                "tolerance": row.tolerance,
                "holds": row.holds(),
            })
        };
        Value::Array(self.rows.iter().map(row).collect())
    }

    /// Returns a message for each quantity outside its tolerance.
    pub fn flaws(&self) -> impl Iterator<Item = String> + '_ {
        self.rows.iter().filter(|row| !row.holds()).map(|row| {
            let Row { what, unit, set, measured, .. } = row;
            format!("calibration: {what} is {measured:.4} {unit} instead of {set:.4} {unit}")
        })
    }
}

/// Measures a router like that of the run, but with plain FIFO buffers, constant rates, equal
/// delays of all flows, no impairments and no device queues. Delays are measured in each direction,
/// rate and buffer where the rate is neither unlimited nor a trace.
///
/// Packets are at most as large as the run's, as larger ones exceed the devices' MTU. Stops early
/// with the error `Interrupted` once `stopped` is set.
pub fn calibrate(
    config: &Config,
    largest: Bytes,
    tuns: [&Tun; 2],
    probes: [&Probe; 2],
    stopped: &AtomicBool,
) -> io::Result<Calibration> {
    let mut rows = Vec::new();
    let probe = PROBE.min(largest.0 as usize);
    let room = packets_of(largest);
    for (i, direction) in config.directions.iter().enumerate() {
        let (from, to) = (probes[i], probes[1 - i]);
        let mut test = config.clone();
        test.warmup = Duration::ZERO;
        test.sample = None;
        let mut buffer = None;
        for (j, other) in test.directions.iter_mut().enumerate() {
            other.impairments = Default::default();
            other.queue = QueueParams::Fifo(fifo::Params { limit: QueueSize::Packets(room) });
            other.device_queue = 0;
            // The additional delays of flows are represented by the first of them.
            other.delay += other.flow_delays.values().next().copied().unwrap_or_default();
            other.flow_delays.clear();
            let rate = hold_highest(&mut other.rate);
            if i == j {
                buffer = rate;
            }
        }
        let delay = test.directions[i].delay;
        let stop = Stop::new()?;
        let measured = thread::scope(|scope| {
            let router = thread::Builder::new()
                .spawn_scoped(scope, || cwnd_router::run(&test, tuns[0], tuns[1], &stop, None))?;
            let full = buffer.map_or(Duration::ZERO, |rate| rate.time_for(largest));
            let train = buffer.map(|rate| Train { rate, largest, room });
            let silence = delay + full * 3 + SILENCE;
            let measured = measure((from, to), probe, train, silence, stopped);
            stop.stop();
            router.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            measured
        })?;
        let name = &direction.name;
        let serialisation = buffer.map_or(0.0, |rate| rate.time_for(Bytes(probe as u64)).0 as f64);
        rows.push(Row {
            what: format!("{name}: one-way delay"),
            unit: "ms",
            set: (delay.0 as f64 + serialisation) / 1e6,
            measured: measured.delay_ns / 1e6,
            tolerance: DELAY_TOLERANCE_MS,
        });
        if let (Some(rate), Some((rate_bit_s, passed))) = (buffer, measured.train) {
            let set = rate.0 as f64;
            rows.push(Row {
                what: format!("{name}: rate"),
                unit: "Mbit/s",
                set: set / 1e6,
                measured: rate_bit_s / 1e6,
                tolerance: set * RATE_TOLERANCE / 1e6,
            });
            rows.push(Row {
                what: format!("{name}: buffer"),
                unit: "packets",
                set: room as f64,
                measured: passed,
                tolerance: room as f64 / BUFFER as f64,
            });
        }
    }
    Ok(Calibration { rows })
}

/// Replaces steps by the highest of their rates, and returns it; `None` for a trace or an unlimited
/// rate, which stay. A recorded rate may begin with an outage of 1 bit/s, at which one packet takes
/// hours.
fn hold_highest(rate: &mut LinkRate) -> Option<Rate> {
    let LinkRate::Steps { .. } = rate else { return None };
    let highest = Rate(rate.highest_bit_s()? as u64);
    *rate = LinkRate::constant(highest);
    Some(highest)
}

/// Returns the size, in packets of `largest` bytes, of a buffer that drains in the time of forty
/// packets of 1500 B, so that smaller packets give the same precision.
fn packets_of(largest: Bytes) -> u64 {
    (BUFFER * FULL).div_ceil(largest.0.max(1))
}

/// A train of packets sent back to back.
#[derive(Clone, Copy, Debug)]
struct Train {
    rate: Rate,
    largest: Bytes,
    /// Packets that fit the buffer.
    room: u64,
}

impl Train {
    /// Returns the number of packets that are on the line or have left after this time.
    fn left(&self, ns: u64) -> f64 {
        1.0 + (ns as f64 / self.rate.time_for(self.largest).0 as f64).floor()
    }
}

/// Measurements of one direction.
struct Measured {
    delay_ns: f64,
    /// Rate in bit/s, and the number of packets that passed less those that left while the train
    /// was being sent; `None` without a train.
    train: Option<(f64, f64)>,
}

/// Sends probes and a train of packets in one direction, and measures their arrivals.
fn measure(
    (from, to): (&Probe, &Probe),
    probe: usize,
    train: Option<Train>,
    silence: Duration,
    stopped: &AtomicBool,
) -> io::Result<Measured> {
    let look = core::time::Duration::from_nanos(silence.0.min(POLL_INTERVAL.0));
    to.socket.set_read_timeout(Some(look))?;
    let (sent, train_ns, arrivals) = thread::scope(|scope| {
        let receiver = thread::Builder::new().spawn_scoped(scope, || {
            let (mut arrivals, mut last) = (Vec::new(), monotonic_ns());
            while !stopped.load(Ordering::Relaxed) {
                match to.receive()? {
                    Some(arrival) => {
                        last = arrival.1;
                        arrivals.push(arrival);
                    }
                    None if monotonic_ns() - last >= silence.0 => {
                        return Ok::<_, io::Error>(arrivals);
                    }
                    None => {}
                }
            }
            Err(io::ErrorKind::Interrupted.into())
        })?;
        let mut sent = Vec::new();
        for number in 0..DELAYS {
            // The threads may not run yet, and the packets must not queue.
            sleep_until(monotonic_ns() + BETWEEN_NS);
            sent.push(monotonic_ns());
            from.send(to.side, number, probe)?;
        }
        sleep_until(monotonic_ns() + BETWEEN_NS);
        let began = monotonic_ns();
        let mut train_ns = 0;
        if let Some(train) = train {
            // More than fit the buffer.
            let more = train.room * 3 / 2;
            for number in (DELAYS..).take(MAX_SENT * more as usize) {
                if f64::from(number - DELAYS) - train.left(train_ns) >= more as f64 {
                    break;
                }
                from.send(to.side, number, train.largest.0 as usize)?;
                train_ns = monotonic_ns() - began;
            }
        }
        let arrivals = receiver.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        Ok::<_, io::Error>((sent, train_ns, arrivals))
    })?;
    let mut delays: Vec<f64> = arrivals
        .iter()
        .filter_map(|&(number, at)| Some((at - sent.get(number as usize)?) as f64))
        .collect();
    delays.sort_by(f64::total_cmp);
    let delay_ns = delays.get(delays.len() / 2).copied().unwrap_or(f64::INFINITY);
    let passed: Vec<u64> = arrivals.iter().filter(|(n, _)| *n >= DELAYS).map(|a| a.1).collect();
    let train = train.map(|train| {
        let bits = train.largest.0 as f64 * 8.0;
        // One packet is on the line, and those that left during transmission made room for others.
        (bits / gap_ns(&passed) * 1e9, passed.len() as f64 - train.left(train_ns))
    });
    Ok(Measured { delay_ns, train })
}

/// Returns the time between packets of a train, ns: the median over pairs half a train apart, which
/// a few late readings do not affect.
fn gap_ns(arrivals: &[u64]) -> f64 {
    let half = (arrivals.len() / 2).max(1).min(arrivals.len());
    let mut gaps: Vec<f64> = arrivals
        .iter()
        .zip(&arrivals[half..])
        .map(|(early, late)| late.saturating_sub(*early) as f64 / half as f64)
        .collect();
    gaps.sort_by(f64::total_cmp);
    gaps.get(gaps.len() / 2).copied().unwrap_or(f64::INFINITY)
}

/// UDP port of probes.
const PORT: u16 = 5002;
/// Length of IPv4 and UDP headers, bytes.
const HEADERS: usize = 28;
/// Size of a small packet on the wire, bytes.
const PROBE: usize = 100;
/// Number of small packets, sent one by one.
const DELAYS: u32 = 9;
/// Size of the tested buffer, in packets of `FULL` bytes; the tolerance is one of them.
const BUFFER: u64 = 40;
const FULL: u64 = 1500;
/// Limit of packets sent, as a multiple of those needed, if packets leave about as fast as they are
/// sent.
const MAX_SENT: usize = 4;
/// Longest time between checks of `stopped`.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Time without packets, beyond the delay and three packets on the line, after which no more are
/// expected.
const SILENCE: Duration = Duration::from_millis(150);
/// Time between small packets.
const BETWEEN_NS: u64 = 5_000_000;
/// Tolerance for delays, caused by clock and scheduler, ms.
const DELAY_TOLERANCE_MS: f64 = 1.0;
/// Tolerance for rates, as a fraction.
const RATE_TOLERANCE: f64 = 0.01;

#[cfg(test)]
mod tests {
    use cwnd_quantity::Time;

    use super::*;

    #[test]
    fn packets_that_are_noticed_late_do_not_change_the_rate() {
        let mut arrivals: Vec<u64> = (0..40).map(|i| i * 1_200_000).collect();
        arrivals[0] += 900_000;
        arrivals[17] += 700_000;
        arrivals[39] += 400_000;
        assert_eq!(gap_ns(&arrivals), 1_200_000.0);
    }

    #[test]
    fn the_buffer_takes_as_long_whatever_the_size_of_packets() {
        assert_eq!(packets_of(Bytes(1500)), 40);
        assert_eq!(packets_of(Bytes(576)), 105);
        assert_eq!(packets_of(Bytes(140)), 429);
    }

    #[test]
    fn steps_become_the_highest_rate_for_good() {
        let (outage, rate) = (Rate(1), Rate(8_000_000));
        let mut steps = LinkRate::Steps {
            initial: outage,
            changes: vec![(Time(1_000_000_000), rate), (Time(2_000_000_000), Rate(1_000_000))],
            period: Some(Duration::from_secs(3)),
        };
        assert_eq!(hold_highest(&mut steps), Some(rate));
        assert_eq!(steps, LinkRate::constant(rate));
        let trace = LinkRate::Trace(vec![1, 2]);
        for other in [LinkRate::Unlimited, trace] {
            let mut kept = other.clone();
            assert_eq!(hold_highest(&mut kept), None);
            assert_eq!(kept, other);
        }
    }

    #[test]
    fn a_train_that_did_not_arrive_has_no_rate() {
        assert_eq!(gap_ns(&[]), f64::INFINITY);
    }
}
