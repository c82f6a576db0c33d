use cwnd_packet::Ecn;
use cwnd_quantity::Time;

use crate::qdisc::{Context, Packet, Reason};

/// Marks or drops a packet that meets congestion. All disciplines choose between both here
/// (RFC 3168 § 5: a router that would drop an ECN-capable packet may set CE instead). Returns
/// `true` if the packet survives; otherwise it was reported as dropped.
#[inline]
pub fn congested<P: Packet>(
    now: Time,
    packet: &mut P,
    ecn_enabled: bool,
    reason: Reason,
    context: &mut impl Context<P>,
) -> bool {
    if ecn_enabled && mark(now, packet, reason, context) {
        true
    } else {
        context.dropped(now, packet, reason);
        false
    }
}

/// Sets CE in an ECN-capable packet and reports it; leaves other packets alone. Returns `true` if
/// it was ECN-capable.
#[inline]
pub fn mark<P, C: Context<P> + ?Sized>(
    now: Time,
    packet: &mut P,
    reason: Reason,
    context: &mut C,
) -> bool {
    let before = context.ecn(packet);
    let capable = before.is_ect();
    if capable {
        context.set_ecn(packet, Ecn::Ce);
        context.marked(now, packet, reason, before == Ecn::Ce);
    }
    capable
}
