//! Packets to and from an address over time, of any protocol.

use std::net::IpAddr;

use cwnd_quantity::{Duration, Time};
use cwnd_tables::Table;

use crate::capture::More;
use crate::headers::ip_packet;
use crate::merge::{ASKED_EVERY, Error, Input};
use crate::rows::ThroughputRows;

/// Part of a capture that is counted, in intervals.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// Start of the first interval.
    pub from: Time,
    /// Width of an interval, above zero.
    pub width: Duration,
    /// Time from the start of the first interval to the end of the last, which may be shorter.
    pub length: Duration,
}

/// Counts the packets of a capture to and from these addresses. The table has a row for each
/// interval in which there were any, and each direction: `uplink` from the addresses, `downlink` to
/// them. Bytes are those of IP packets. If the file ends within a packet, the second value is the
/// time of the one before.
///
/// # Errors
/// If the file cannot be read, is no capture or is damaged; [`Error::Cancelled`] if `go_on`
/// returned `false`.
pub fn throughput(
    input: &Input<'_>,
    addresses: &[IpAddr],
    window: Window,
    mut go_on: impl FnMut() -> bool,
) -> Result<(Table, Option<Time>), Error> {
    let failed = |error| Error::Capture { name: input.name.clone(), error };
    let mut capture = input.capture().map_err(failed)?;
    let count = usize::try_from(window.length.0.div_ceil(window.width.0)).unwrap_or(0);
    let mut intervals = vec![[(0_u64, 0_u64); 2]; count];
    let (mut last, mut cut_off) = (window.from, false);
    for block in 0_u64.. {
        if block % ASKED_EVERY == 0 && !go_on() {
            return Err(Error::Cancelled);
        }
        let more = capture.next(|frame| {
            last = frame.at;
            let after = frame.at.0.checked_sub(window.from.0);
            let Some(after) = after.filter(|&after| after < window.length.0) else { return };
            let interval = usize::try_from(after / window.width.0).unwrap_or(usize::MAX);
            let Some(interval) = intervals.get_mut(interval) else { return };
            let Ok((ip, _, length)) = ip_packet(&frame) else { return };
            let ends = [ip.destination, ip.source];
            for (end, (packets, bytes)) in ends.iter().zip(interval) {
                if addresses.contains(end) {
                    *packets += 1;
                    *bytes += length as u64;
                }
            }
        });
        let more = more.map_err(failed)?;
        cut_off = more == More::CutOff;
        if cut_off || more == More::End {
            break;
        }
    }
    let mut rows = ThroughputRows::default();
    for (n, interval) in intervals.into_iter().enumerate() {
        let time_s = (window.width.0 * n as u64) as f64 / 1e9;
        for (from_address, (packets, bytes)) in interval.into_iter().enumerate() {
            if packets > 0 {
                rows.push(from_address == 1, time_s, packets, bytes);
            }
        }
    }
    Ok((rows.into_table(), cut_off.then_some(last)))
}
