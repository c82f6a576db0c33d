use cwnd_units::Time;

use crate::qdisc::{Observer, Packet, Reason};

/// The one place where "congested" becomes a mark or a drop (RFC 3168 § 5: a router that would drop an ECN-capable
/// packet may set CE instead). Returns whether the packet survives; a packet that does not was reported as dropped.
#[inline]
pub fn congested<P: Packet>(
    now: Time,
    packet: &mut P,
    ecn_enabled: bool,
    reason: Reason,
    observer: &mut impl Observer<P>,
) -> bool {
    if ecn_enabled && packet.ecn().is_ect() {
        packet.set_ce();
        observer.marked(now, packet, reason);
        true
    } else {
        observer.dropped(now, packet, reason);
        false
    }
}
