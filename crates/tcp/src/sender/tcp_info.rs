//! State of a connection in the terms of Linux `tcp_get_info`, whose counts differ from those of
//! the RFCs.

use super::Sender;
use crate::params::Recovery;

/// Fields of Linux's `struct tcp_info`, in segments. The endpoint counts bytes: a part of a segment
/// counts as one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpInfo {
    /// `tcpi_snd_cwnd`. During proportional rate reduction it is what is in flight plus the quota
    /// (`tcp_cwnd_reduction`); `None` in a fast recovery without that.
    pub cwnd: Option<u64>,
    /// `tcpi_sacked`: segments reported by SACK, or without SACK by duplicate ACKs.
    pub sacked: u64,
    /// `tcpi_lost`: segments marked lost, retransmitted or not. Without SACK `None`, except after a
    /// timeout that marks them.
    pub lost: Option<u64>,
    /// `tcpi_retrans`: segments retransmitted, and neither acknowledged nor lost again; `None` if
    /// `lost` is `None`.
    pub retrans: Option<u64>,
}

impl Sender {
    /// Returns the state as `tcp_get_info` would report it.
    #[must_use]
    pub fn tcp_info(&self) -> TcpInfo {
        let mss = self.config.mss;
        let board = &self.sent;
        let sack = self.config.params.recovery.recovery == Recovery::Sack;
        let marks = sack || self.has_marked_without_sack();
        let sacked = match sack {
            true => board.sacked_bytes(),
            false => self.recovery.reported_by_duplicates(mss),
        };
        let cwnd = match self.recovery.prr() {
            Some(prr) => {
                // Without SACK the hole that waits for its retransmission is included above.
                let lost = if !sack && self.recovery.hole_waits() { mss } else { 0 };
                Some((self.in_flight() + prr.quota()).saturating_sub(lost).div_ceil(mss))
            }
            None if self.recovery.is_fast() => None,
            None => Some(self.window().cwnd / mss),
        };
        TcpInfo {
            cwnd,
            sacked: sacked.div_ceil(mss),
            lost: marks.then(|| board.lost_bytes(self.seq.una()).div_ceil(mss)),
            retrans: marks.then(|| board.retransmitted_bytes(self.seq.una()).div_ceil(mss)),
        }
    }
}
