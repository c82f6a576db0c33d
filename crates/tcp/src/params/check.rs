//! Checks of parameters against each other.

use cwnd_quantity::Duration;
use cwnd_schema::{Invalid, key};

use super::{Params, Recovery};

impl Params {
    /// Checks values together; returns the first contradiction with its key.
    pub(super) fn consistent(&self) -> Result<(), Invalid> {
        let invalid = |key, message: &str| Err(Invalid { key, message: message.to_owned() });
        if self.packets.header.0 + self.packets.mss.0 > 65_535 {
            return invalid(
                key!(Self: packets.mss),
                "a packet takes at most 65535 bytes on the wire: `mss` + `header` is more",
            );
        }
        if self.windows.receive_window.0 < self.packets.mss.0 {
            return invalid(
                key!(Self: windows.receive_window),
                "the receive window must hold at least one segment (`mss`)",
            );
        }
        if self.windows.max_window.is_some_and(|w| w.0 < self.packets.mss.0) {
            return invalid(
                key!(Self: windows.max_window),
                "the largest window must hold at least one segment (`mss`)",
            );
        }
        if self.prr.prr && !matches!(self.recovery.recovery, Recovery::Sack | Recovery::NewReno) {
            return invalid(
                key!(Self: recovery.recovery),
                "`recovery = \"tahoe\"` and `\"reno\"` need a stack without the part `prr`",
            );
        }
        if self.signature.timestamp_signature > 0 && !self.rtt.timestamps {
            return invalid(
                key!(Self: signature.timestamp_signature),
                "there is nothing to sign without `timestamps`",
            );
        }
        if self.rto.rto_min > self.rto.rto_max || self.rto.rto_initial > self.rto.rto_max {
            return invalid(
                key!(Self: rto.rto_max),
                "the largest timeout is below the smallest or the initial one",
            );
        }
        if self.rto.rto_min == Duration::ZERO && self.rto.rto_granularity == Duration::ZERO {
            return invalid(
                key!(Self: rto.rto_min),
                "a timeout of zero expires for ever; give `rto_min` or `rto_granularity`",
            );
        }
        Ok(())
    }
}
