use cwnd_units::{Ecn, Time};

use crate::qdisc::{Context, Packet, Reason};

/// The one place where "congested" becomes a mark or a drop (RFC 3168 § 5: a router that would drop an ECN-capable
/// packet may set CE instead). Returns whether the packet survives; a packet that does not was reported as dropped.
#[inline]
pub fn congested<P: Packet>(
    now: Time,
    packet: &mut P,
    ecn_enabled: bool,
    reason: Reason,
    context: &mut impl Context<P>,
) -> bool {
    let before = context.ecn(packet);
    if ecn_enabled && before.is_ect() {
        context.set_ecn(packet, Ecn::Ce);
        context.marked(now, packet, reason, before == Ecn::Ce);
        true
    } else {
        context.dropped(now, packet, reason);
        false
    }
}
