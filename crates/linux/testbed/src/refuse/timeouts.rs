//! Timeouts that Linux does not have by itself, and how far a program may have it have them.

use cwnd_cc::Backoff;
use cwnd_scenario::{FlowGroup, Refusal};

use super::of;

/// The timeouts that a group asks for, where the kernel's own are others: `cwnd-kernel` has a program that bounds them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// Expiries in a row after which the timeout doubles.
    pub after: u32,
    /// The same of SYNs.
    pub syn_after: u32,
    /// Whether what is asked for is TCP*(n) itself, and not what the kernel lets a program do of it.
    pub exactly: bool,
}

impl Timeouts {
    /// Those of an endpoint; `None` if each timeout doubles.
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

    /// What of it the kernel does not let a program do.
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

/// Of `cwnd-kernel`; 1 s each or more, so that nobody sees the next.
const MOST: u32 = 255;
/// `net.ipv4.tcp_syn_linear_timeouts`.
const LINEAR_SYNS: u32 = 4;
