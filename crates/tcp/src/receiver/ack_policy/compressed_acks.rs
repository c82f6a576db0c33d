//! Compressed ACKs of Linux's receiver (tcp_input.c, `__tcp_ack_snd_check` and
//! `tcp_sack_new_ofo_skb`): after the first duplicates, one ACK reports the arrivals of up to a
//! millisecond.

use cwnd_quantity::Duration;

/// Counts of duplicate ACKs sent and compressed.
#[derive(Clone, Copy, Debug)]
pub struct CompressedAcks {
    /// Duplicate ACKs that wait to be sent as one (`compressed_ack`).
    waiting: u32,
    /// Duplicate ACKs sent at once (`dup_ack_counter`), and their acknowledgement number.
    sent: u32,
    of: u64,
}

impl CompressedAcks {
    pub const fn new() -> Self {
        Self { waiting: 0, sent: 0, of: 0 }
    }

    /// Counts the ACK of a segment behind a hole at `rcv_nxt`. Returns `true` if it is sent at
    /// once; else it waits.
    pub const fn sends_at_once(&mut self, rcv_nxt: u64) -> bool {
        if self.waiting >= MAX_WAITING {
            return true;
        }
        if self.of != rcv_nxt {
            self.of = rcv_nxt;
            self.sent = 0;
        }
        if self.sent < FIRST_DUPLICATES {
            self.sent += 1;
            return true;
        }
        self.waiting += 1;
        false
    }

    pub const fn is_waiting(&self) -> bool {
        self.waiting > 0
    }

    pub const fn on_ack_sent(&mut self) {
        self.waiting = 0;
    }
}

/// Time for which the first compressed ACK waits, from the round-trip time.
pub fn delay(rtt: Duration) -> Duration {
    MAX_DELAY.min(Duration(rtt.0 / RTT_DIVISOR)) + SLACK
}

/// Number of first SACK blocks one of which must touch a new segment. Else the waiting ACK is sent
/// first, so that a lost ACK loses little information (`TCP_SACK_BLOCKS_EXPECTED`).
pub const BLOCKS: usize = 2;

// Linux 6.18, net/ipv4/tcp_ipv4.c (tcp_sk_init) and Documentation/networking/ip-sysctl.rst.
/// Duplicate ACKs sent at once, for the sender's fast retransmit (`TCP_FASTRETRANS_THRESH`).
const FIRST_DUPLICATES: u32 = 3;
/// Duplicate ACKs that may wait (`tcp_comp_sack_nr`).
const MAX_WAITING: u32 = 44;
/// Longest wait (`tcp_comp_sack_delay_ns`), and its bound as a fraction of a round trip.
const MAX_DELAY: Duration = Duration::from_millis(1);
const RTT_DIVISOR: u64 = 20;
/// Slack of the timer (`tcp_comp_sack_slack_ns`); it expires that late when nothing else wakes the
/// host.
const SLACK: Duration = Duration::from_micros(100);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_duplicates_go_then_44_wait_and_each_advance_begins_anew() {
        let mut acks = CompressedAcks::new();
        let sent_at_once = (0..50).filter(|_| acks.sends_at_once(1000)).count();
        assert_eq!(sent_at_once, 3 + (50 - 3 - 44));
        acks.on_ack_sent();
        assert!(!acks.is_waiting());
        assert!(!acks.sends_at_once(1000), "the same hole: it waits again");
        assert!(acks.sends_at_once(2000), "another hole");
    }

    #[test]
    fn a_twentieth_of_the_round_trip_and_no_more_than_a_millisecond() {
        assert_eq!(delay(Duration::from_millis(10)), Duration::from_micros(500 + 100));
        assert_eq!(delay(Duration::from_millis(100)), Duration::from_micros(1000 + 100));
    }
}
