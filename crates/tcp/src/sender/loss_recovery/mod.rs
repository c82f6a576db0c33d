//! State of loss recovery: fast recovery (RFC 5681 § 3.2, RFC 6582 § 3.2, RFC 6675 § 5), the repair
//! of a timeout, duplicate ACKs, and proportional rate reduction.

mod sackless;

use cwnd_cc::Phase;

use crate::params::{self, Params};
use crate::prr::Prr;
use crate::spurious_timeout::Frto;

/// State of loss recovery, and of reductions without losses.
// Each ACK reads from the tag of `state` on; that lies in one cache line of the sender.
#[derive(Clone, Debug)]
#[repr(C)]
pub(super) struct LossRecovery {
    /// One past the recovery point of the last recovery that [`LossRecovery::end`] ended, for RFC
    /// 6582's "covers more than recover"; zero before the first.
    recovered: u64,
    state: State,
    /// Duplicate ACKs in a row.
    dupacks: u32,
    /// Without SACK: the last measured reordering in segments, at most 255; 0 before the first.
    reordering: u8,
    /// Proportional rate reduction after a reduction without losses, until more than
    /// `reduced_until` is acknowledged or a recovery begins.
    cwr: Option<Box<Prr>>,
    /// SND.MAX at the last reduction without losses.
    reduced_until: u64,
}

#[derive(Clone, Debug)]
enum State {
    Open,
    Fast(FastRecovery),
    /// Repair after a timeout, or after a fast retransmit under Tahoe, until what was outstanding
    /// then is acknowledged, the timeout is undone, or further losses start fast recovery.
    Loss {
        recover: u64,
        /// F-RTO, while it is under way.
        frto: Option<Box<Frto>>,
    },
}

#[derive(Clone, Debug)]
struct FastRecovery {
    /// Recovery point: an ACK of less is a partial ACK.
    recover: u64,
    /// RFC 5681's inflation of cwnd by segments that have left the network, less NewReno's
    /// deflation, bytes. With SACK and `pipe_rule = "sack1"` the counted pipe.
    inflation: i64,
    /// `true` if the segment at SND.UNA is to be retransmitted now, whatever the window; after a
    /// partial ACK as proportional rate reduction allows.
    retransmit_now: bool,
    /// `true` after the first partial ACK (RFC 6582: only that restarts the timer).
    partial_seen: bool,
    /// RescueRxt (RFC 6675 § 2), exclusive: a rescue needs an ACK of more than this.
    rescue_rxt: u64,
    prr: Option<Box<Prr>>,
}

/// Facts about the fast recovery that starts.
pub(super) struct Entry {
    /// `true` if the window is reduced.
    pub reduces: bool,
    /// Recovery point.
    pub recover: u64,
    /// Proportional rate reduction: at first the one under way, which continues.
    pub prr: Option<Box<Prr>>,
}

/// Facts of an ACK of new data.
pub(super) struct NewAck {
    pub una: u64,
    pub acked: u64,
    pub mss: u64,
    /// Bytes above the recovery point that must be acknowledged before recovery ends.
    pub above: u64,
    /// `true` if proportional rate reduction is used without SACK.
    pub spread: bool,
}

/// Effect of an ACK of new data on loss recovery.
pub(super) enum Progress {
    /// The repair of a timeout continues or ends; at its recovery point so many duplicate ACKs are
    /// left.
    Loss(u32),
    /// Fast recovery is over.
    Over,
    /// No change, or fast recovery is held at its recovery point (RFC 6582 § 3.2 (2)).
    Held,
    /// A partial ACK; `true` if it is the first.
    Partial(bool),
}

impl LossRecovery {
    /// Offset in bytes at which a cache line should begin: the tag of `state` lies in the eight
    /// bytes before `dupacks`.
    pub const READ_FROM: usize = core::mem::offset_of!(Self, dupacks) - 8;

    /// First field of that cache line, for a prefetch.
    #[inline]
    pub const fn line(&self) -> &impl Sized {
        &self.dupacks
    }

    pub const fn new() -> Self {
        let state = State::Open;
        Self { recovered: 0, state, dupacks: 0, reordering: 0, cwr: None, reduced_until: 0 }
    }

    /// `true` if no recovery is under way.
    #[inline]
    pub const fn is_open(&self) -> bool {
        matches!(self.state, State::Open)
    }

    /// `true` in fast recovery.
    #[inline]
    pub const fn is_fast(&self) -> bool {
        matches!(self.state, State::Fast(_))
    }

    /// `true` while a timeout is repaired.
    #[inline]
    pub const fn is_loss(&self) -> bool {
        matches!(self.state, State::Loss { .. })
    }

    /// Phase that the controller sees, with SND.UNA at `una`.
    #[inline]
    pub const fn phase(&self, una: u64) -> Phase {
        match self.state {
            State::Fast(_) => Phase::Recovery,
            State::Loss { .. } => Phase::Loss,
            State::Open if una < self.reduced_until || self.cwr.is_some() => Phase::Cwr,
            State::Open => Phase::Open,
        }
    }

    /// Recovery point of the recovery under way.
    #[inline]
    pub const fn recover(&self) -> Option<u64> {
        match self.state {
            State::Open => None,
            State::Fast(FastRecovery { recover, .. }) | State::Loss { recover, .. } => {
                Some(recover)
            }
        }
    }

    /// `true` in fast recovery if `una` is below the recovery point.
    pub const fn is_partial(&self, una: u64) -> bool {
        matches!(&self.state, State::Fast(r) if una < r.recover)
    }

    /// SND.MAX at the last reduction without losses.
    #[inline]
    pub const fn reduced_until(&self) -> u64 {
        self.reduced_until
    }

    /// SND.MAX at the last reduction without losses, or the recovery point of the last recovery
    /// that ended, whichever is higher. There is one response per window of data, whatever the
    /// cause (RFC 3168 § 6.1.2).
    pub fn last_reduction(&self) -> u64 {
        self.reduced_until.max(self.recovered.saturating_sub(1))
    }

    /// `true` if the window was reduced for the data outstanding from `una` on; `false` while a
    /// timeout is repaired.
    pub const fn was_reduced(&self, una: u64) -> bool {
        match &self.state {
            State::Fast(r) => una < r.recover,
            State::Open => una < self.reduced_until,
            State::Loss { .. } => false,
        }
    }

    /// Notes a reduction without losses, with SND.MAX at `high`.
    pub const fn on_reduction(&mut self, high: u64) {
        self.reduced_until = high;
    }

    /// Starts CWR with proportional rate reduction: the window was reduced without a loss.
    pub fn begin_cwr(&mut self, prr: Prr) {
        self.cwr = Some(Box::new(prr));
    }

    /// Ends proportional rate reduction without losses once `ack` exceeds the reduction's SND.MAX.
    #[inline]
    pub fn end_cwr(&mut self, ack: u64) {
        if self.cwr.is_some() && ack > self.reduced_until {
            self.cwr = None;
        }
    }

    /// Proportional rate reduction of a reduction without losses.
    #[inline]
    pub fn cwr(&self) -> Option<&Prr> {
        self.cwr.as_deref()
    }

    /// Proportional rate reduction of fast recovery.
    #[inline]
    pub fn fast_prr(&self) -> Option<&Prr> {
        match &self.state {
            State::Fast(r) => r.prr.as_deref(),
            _ => None,
        }
    }

    /// Proportional rate reduction in effect; the repair of a timeout has none.
    #[inline]
    pub fn prr(&self) -> Option<&Prr> {
        match &self.state {
            State::Fast(r) => r.prr.as_deref(),
            State::Open => self.cwr.as_deref(),
            State::Loss { .. } => None,
        }
    }

    #[inline]
    pub fn prr_mut(&mut self) -> Option<&mut Prr> {
        match &mut self.state {
            State::Fast(r) => r.prr.as_deref_mut(),
            State::Open => self.cwr.as_deref_mut(),
            State::Loss { .. } => None,
        }
    }

    /// `true` if duplicate ACKs at `una` may start fast recovery. Those of data outstanding at the
    /// last recovery may not (RFC 6582 § 3.2 (2)); Reno and SACK lack the check.
    pub fn may_enter(&self, una: u64, rule: params::Recovery) -> bool {
        match rule {
            params::Recovery::NewReno | params::Recovery::Tahoe => una >= self.recovered,
            params::Recovery::Reno | params::Recovery::Sack => true,
        }
    }

    /// Returns the reduction and the end of a fast recovery from losses of the data from `una` to
    /// `high`. The caller begins it by [`LossRecovery::begin`], or slow start under Tahoe.
    pub fn enter(&mut self, una: u64, high: u64, params: &Params) -> Entry {
        let cwr = self.cwr.take();
        // One response per window, whatever reduced it before (RFC 3168 § 6.1.2).
        let was_reduced = una < self.reduced_until || cwr.is_some();
        let reduces = self.is_loss() || !was_reduced || params.recovery.loss_reduces_again;
        // A reduction that a controller makes itself, at once, is none to Linux, which uses PRR for
        // its own: the recovery ends as others do.
        let known = cwr.is_some() || !params.prr.prr_on_ecn;
        let ends_early = !reduces && known && params.recovery.reduced_window_ends_recovery;
        let recover = if ends_early { self.reduced_until } else { high };
        // A reduction under way continues, unless this is another.
        Entry { reduces, recover, prr: cwr.filter(|_| !reduces) }
    }

    /// Starts fast recovery. The first segment, which ends at `first`, is retransmitted now if
    /// `retransmits`.
    pub fn begin(&mut self, entry: Entry, inflation: i64, retransmits: bool, first: u64) {
        self.state = State::Fast(FastRecovery {
            recover: entry.recover,
            inflation,
            retransmit_now: retransmits,
            partial_seen: false,
            // RFC 6675 § 5 (4.3): no rescue before the fast retransmit has arrived.
            rescue_rxt: first,
            prr: entry.prr,
        });
    }

    /// Starts the repair of a timeout, with SND.MAX at `high`.
    pub fn begin_loss(&mut self, high: u64) {
        self.state = State::Loss { recover: high, frto: None };
        self.cwr = None;
        self.dupacks = 0;
    }

    /// Ends the recovery under way, if any, and keeps its recovery point.
    pub fn end(&mut self) {
        if let Some(recover) = self.recover() {
            self.recovered = recover + 1;
            self.state = State::Open;
        }
    }

    /// Ends fast recovery, and resets the count of duplicate ACKs.
    pub fn end_fast(&mut self) {
        self.end();
        self.dupacks = 0;
    }

    /// Ends a recovery that is undone; `dupacks` duplicate ACKs stay counted.
    pub fn undo(&mut self, dupacks: u32) {
        self.state = State::Open;
        self.dupacks = dupacks;
    }

    /// Updates fast recovery after retransmissions were lost, with SND.MAX at `high` and SACKed
    /// data up to `top`; `first` if the first outstanding segment is one of them. Returns `true` if
    /// it is the first such loss of this round trip, for which the caller reduces the window.
    pub fn on_lost_retransmission(&mut self, top: u64, high: u64, first: bool) -> bool {
        match &mut self.state {
            State::Fast(r) if top > r.recover => {
                r.recover = high;
                // RFC 6675 § 5 (4.3): the first is retransmitted whatever the smaller window.
                r.retransmit_now |= first && r.prr.is_none();
                true
            }
            _ => false,
        }
    }

    /// Resets the count of duplicate ACKs.
    #[inline]
    pub const fn forget_duplicates(&mut self) {
        self.dupacks = 0;
    }

    /// Processes an ACK of new data under this rule; Reno ends fast recovery with the first.
    #[inline]
    pub fn on_new_ack(&mut self, ack: NewAck, rule: params::Recovery) -> Progress {
        match &mut self.state {
            State::Open => Progress::Held,
            State::Loss { recover, .. } => {
                let recover = *recover;
                let left = if ack.una >= recover { self.dupacks } else { 0 };
                self.dupacks = 0;
                if ack.una >= recover + ack.above {
                    self.end();
                }
                Progress::Loss(left)
            }
            State::Fast(r) => {
                if ack.una >= r.recover + ack.above || rule == params::Recovery::Reno {
                    self.end_fast();
                    Progress::Over
                } else if ack.una == r.recover {
                    r.inflation = 0;
                    r.retransmit_now = false;
                    Progress::Held
                } else {
                    let first = !core::mem::replace(&mut r.partial_seen, true);
                    if rule == params::Recovery::NewReno {
                        r.deflate(&ack);
                    }
                    Progress::Partial(first)
                }
            }
        }
    }

    /// Counts a duplicate ACK. Returns the number in a row if it may start fast recovery. During
    /// fast recovery it inflates the window by `inflates` bytes.
    #[inline]
    pub const fn on_duplicate(&mut self, inflates: u64) -> Option<u32> {
        match &mut self.state {
            State::Open => {
                self.dupacks += 1;
                Some(self.dupacks)
            }
            State::Fast(r) => {
                r.inflation += inflates as i64;
                None
            }
            State::Loss { .. } => None,
        }
    }

    /// Inflation of the window in fast recovery, bytes, or the counted pipe with `pipe_rule =
    /// "sack1"`.
    #[inline]
    pub const fn inflation(&self) -> i64 {
        match &self.state {
            State::Fast(r) => r.inflation,
            _ => 0,
        }
    }

    /// Inflation of the window, at least zero.
    #[inline]
    pub fn inflated(&self) -> u64 {
        self.inflation().max(0).unsigned_abs()
    }

    /// Removes `bytes` that left the network from the counted pipe.
    pub const fn leave_pipe(&mut self, bytes: u64) {
        if let State::Fast(r) = &mut self.state {
            r.inflation -= bytes as i64;
        }
    }

    /// Duplicate ACKs in a row.
    #[inline]
    pub const fn dupacks(&self) -> u32 {
        self.dupacks
    }

    /// Takes the pending fast retransmit: `Some(true)` if it is sent now, `Some(false)` if
    /// proportional rate reduction holds it back, `None` if none is pending.
    #[inline]
    pub fn take_fast_retransmit(&mut self, mss: u64) -> Option<bool> {
        let State::Fast(r) = &mut self.state else { return None };
        if !r.retransmit_now {
            return None;
        }
        // After a partial ACK without SACK, PRR limits the next hole like other data.
        let waits = r.partial_seen && r.prr.as_ref().is_some_and(|prr| !prr.allows(mss));
        r.retransmit_now = waits;
        Some(!waits)
    }

    /// `true` if the first outstanding segment waits for its retransmission.
    pub const fn hole_waits(&self) -> bool {
        matches!(&self.state, State::Fast(r) if r.retransmit_now)
    }

    /// `true` if the highest data may be retransmitted, to rescue a lost tail (RFC 6675 § 4, rule
    /// 4).
    pub const fn may_rescue(&self, una: u64) -> bool {
        matches!(&self.state, State::Fast(r) if una > r.rescue_rxt)
    }

    /// Counts `len` bytes sent, as a rescue or not. They are added to the pipe if recovery `counts`
    /// it.
    #[inline(always)]
    pub fn on_sent(&mut self, len: u64, rescue: bool, counts: impl Fn() -> bool) {
        // A tail loss probe that retransmits does not count in a reduction without losses
        // (`tcp_send_loss_probe`).
        if let Some(prr) = self.cwr.as_mut().filter(|_| !rescue) {
            prr.on_sent(len);
        }
        if let State::Fast(r) = &mut self.state {
            if rescue {
                r.rescue_rxt = r.recover;
            }
            if counts() {
                r.inflation += len as i64;
            }
            if let Some(prr) = &mut r.prr {
                prr.on_sent(len);
            }
        }
    }

    /// Starts F-RTO in the repair of a timeout.
    pub fn begin_frto(&mut self, new: Frto) {
        if let State::Loss { frto, .. } = &mut self.state {
            *frto = Some(Box::new(new));
        }
    }

    /// F-RTO under way, with the recovery point.
    #[inline]
    pub fn frto_mut(&mut self) -> Option<(&mut Frto, u64)> {
        match &mut self.state {
            State::Loss { frto: Some(frto), recover } => Some((frto, *recover)),
            _ => None,
        }
    }

    #[inline]
    pub const fn is_in_frto(&self) -> bool {
        matches!(self.state, State::Loss { frto: Some(_), .. })
    }

    /// `true` if F-RTO sends new data next.
    pub fn sends_new_in_frto(&self) -> bool {
        matches!(&self.state, State::Loss { frto: Some(frto), .. } if frto.sends_new())
    }

    /// Ends F-RTO; the repair of the timeout goes on.
    pub fn end_frto(&mut self) {
        if let State::Loss { frto, .. } = &mut self.state {
            *frto = None;
        }
    }
}

impl FastRecovery {
    /// Deflates the window by the bytes acknowledged, adds back one segment if at least as much was
    /// acknowledged, and makes the next hole pending (RFC 6582 § 3.2 (3)).
    const fn deflate(&mut self, ack: &NewAck) {
        self.retransmit_now = true;
        self.inflation -= ack.acked as i64;
        if ack.acked >= ack.mss {
            self.inflation += ack.mss as i64;
        }
        if ack.spread && self.inflation < 0 {
            // `tcp_remove_reno_sacks`
            self.inflation = 0;
        }
    }
}
