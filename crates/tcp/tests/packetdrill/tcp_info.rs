//! Fields of Linux's `struct tcp_info` that the endpoint knows.

use std::ops::Range;

use cwnd_cc::Phase;
use cwnd_quantity::Duration;
use cwnd_tcp::{Receiver, Sender};

pub struct TcpInfoFields<'a> {
    pub sender: &'a Sender,
    pub receiver: &'a Receiver,
    pub written: u64,
    /// Byte range of each segment of new data.
    pub segments: &'a [Range<u64>],
}

impl TcpInfoFields<'_> {
    /// Bytes written and not sent.
    pub fn not_sent(&self) -> u64 {
        let sent = self.segments.last().map_or(0, |bytes| bytes.end - 1);
        self.written - sent
    }

    pub fn of(&self, name: &str) -> Option<f64> {
        let (mss, sender) = (self.sender.mss(), self.sender);
        let micros = |span: Duration| (span.0 / 1000) as f64;
        Some(match name {
            "tcpi_snd_cwnd" => sender.tcp_info().cwnd? as f64,
            "tcpi_sacked" => sender.tcp_info().sacked as f64,
            "tcpi_lost" => sender.tcp_info().lost? as f64,
            "tcpi_retrans" => sender.tcp_info().retrans? as f64,
            "tcpi_snd_ssthresh" => match sender.window().ssthresh {
                // TCP_INFINITE_SSTHRESH
                u64::MAX => f64::from(i32::MAX),
                bytes => (bytes / mss) as f64,
            },
            "tcpi_ca_state" => match sender.phase() {
                Phase::Open => 0.0,
                Phase::Cwr => 2.0,
                Phase::Recovery => 3.0,
                Phase::Loss => 4.0,
            },
            "tcpi_unacked" => {
                let acked = sender.acknowledged() + 1;
                self.segments.iter().filter(|bytes| bytes.end > acked).count() as f64
            }
            "tcpi_rtt" => micros(sender.rtt_estimate()?.0),
            "tcpi_rttvar" => micros(sender.rtt_estimate()?.1),
            "tcpi_min_rtt" => micros(sender.min_rtt_seen()?),
            "tcpi_rto" => micros(sender.current_rto()),
            "tcpi_snd_mss" => mss as f64,
            "tcpi_total_retrans" => sender.counters().retransmissions as f64,
            "tcpi_bytes_acked" => sender.acknowledged() as f64,
            "tcpi_bytes_received" => self.receiver.piggyback_ack(u64::MAX).seq as f64,
            "tcpi_notsent_bytes" => self.not_sent() as f64,
            _ => return None,
        })
    }
}
