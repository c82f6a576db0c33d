//! Times at which a receiver acknowledges.

mod ack_timer;
pub(super) mod compressed_acks;
pub(super) mod quick_acks;
