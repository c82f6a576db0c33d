//! Beginning of a connection, and its end when nothing arrives (RFC 9293 § 3.5 and 3.8.3).

use cwnd_quantity::Duration;
use cwnd_schema::Schema;

/// Beginning of a connection, and its end when nothing arrives.
#[derive(Clone, Debug, PartialEq, Schema)]
pub struct Params {
    /// `true` if a connection begins with SYN and SYN-ACK; off, data flows at once. Serves
    /// experiments on closed forms and packet counts, which begin with data.
    #[default(true, "RFC 9293 § 3.5")]
    pub handshake: bool,
    /// Retransmissions of a SYN before the sender gives up the connection. Serves experiments on
    /// users without backoff, none of which gives up.
    #[default(6, "Linux tcp_syn_retries")]
    pub syn_retries: u32,
    /// Consecutive expiries of the timer that retransmit data before the sender gives up the
    /// connection, R2 as a count; none is never. Serves experiments on users without backoff, none
    /// of which gives up.
    #[default(None, "RFC 9293 § 3.8.3, R2; FreeBSD 12 (TCP_MAXRXTSHIFT)")]
    pub data_retries: Option<u32>,
    /// Time since the first of consecutive expiries for data: the connection is given up at the
    /// first expiry that comes so much later, R2 as a time. None is never. Serves experiments on
    /// long outages: how long a connection outlives them.
    #[default(None, "RFC 9293 § 3.8.3, R2: at least 100 s; Linux 924.6 s (tcp_retries2 = 15)")]
    #[bounds(from Duration(1))]
    pub data_retry_time: Option<Duration>,
}
