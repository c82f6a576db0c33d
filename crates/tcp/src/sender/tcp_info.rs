//! State of a connection as Linux shows it (`tcp_get_info`), where it counts otherwise than the
//! RFCs.

use super::Sender;
use crate::params::Recovery;

/// Fields of Linux's `struct tcp_info`, in segments. The endpoint counts bytes: what is less than a
/// segment counts as one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpInfo {
    /// `tcpi_snd_cwnd`. While a reduction is spread over a round trip that is what is in flight and
    /// what may follow (`tcp_cwnd_reduction`); none where the endpoint reduces in another way.
    pub cwnd: Option<u64>,
    /// `tcpi_sacked`: what SACK, or without it duplicate ACKs, told of.
    pub sacked: u64,
    /// `tcpi_lost`: what is taken for lost, whether it went again or not; none without SACK but
    /// after a timeout that marks it.
    pub lost: Option<u64>,
    /// `tcpi_retrans`: what went again, and is neither acknowledged nor lost again; none where
    /// `lost` is none.
    pub retrans: Option<u64>,
}

impl Sender {
    /// The state as Linux would show it.
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
                // Without SACK what waits to go again counts above.
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
