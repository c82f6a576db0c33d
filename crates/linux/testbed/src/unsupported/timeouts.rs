//! Timeouts that Linux lacks, and the limits within which a program can provide them.

use cwnd_cc::Backoff;
use cwnd_scenario::{FlowGroup, Refusal};

use super::of;

/// Timeouts of a group that differ from the kernel's: a program of `cwnd-kernel` bounds them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// Consecutive timeouts before the RTO doubles, the n of TCP*(n).
    pub after: u32,
    /// Consecutive timeouts of SYNs before the RTO doubles.
    pub syn_after: u32,
    /// `true` for TCP*(n) itself, `false` for the bounds that the kernel allows a program to set.
    pub exactly: bool,
}

impl Timeouts {
    /// Returns the timeouts of an endpoint; `None` if each timeout doubles the RTO.
    pub fn of(endpoint: &cwnd_tcp::Params) -> Option<Self> {
        let exactly = match endpoint.rto.rto_backoff {
            Backoff::After => true,
            Backoff::Bounded => false,
            Backoff::Off => return Some(Self { after: MOST, syn_after: MOST, exactly: true }),
            Backoff::Exponential => return None,
        };
        let after = endpoint.rto.rto_backoff_after;
        let syn_after = endpoint.rto.syn_backoff_after.unwrap_or(after);
        (after > 0).then_some(Self { after, syn_after, exactly })
    }

    /// Returns refusals of values that the kernel does not allow.
    pub(super) fn refusals(self, group: &FlowGroup) -> Vec<Refusal> {
        let mut found = Vec::new();
        if self.after > MOST {
            let message = format!("on Linux n is {MOST} at most");
            let help = Some("write `rto_backoff = \"off\"`");
            found.push(of(group, &["endpoint", "rto_backoff_after"], &message, help));
        }
        if self.syn_after < LINEAR_SYNS || self.syn_after > MOST {
            let message = format!(
                "Linux repeats SYNs {LINEAR_SYNS} times without backoff by itself \
                 (tcp_syn_linear_timeouts): n of SYNs is {LINEAR_SYNS} to {MOST}"
            );
            let help = format!("write `syn_backoff_after = {}`", self.after.max(LINEAR_SYNS));
            found.push(of(group, &["endpoint", "syn_backoff_after"], &message, Some(&help)));
        }
        found
    }
}

/// Maximum n in `cwnd-kernel`: with 1 s or more each, no run sees the next timeout.
const MOST: u32 = 255;
/// Kernel's default of `net.ipv4.tcp_syn_linear_timeouts`.
const LINEAR_SYNS: u32 = 4;
