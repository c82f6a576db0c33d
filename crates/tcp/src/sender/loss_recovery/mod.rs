//! State of loss recovery: fast recovery (RFC 5681 § 3.2, RFC 6582 § 3.2, RFC 6675 § 5), the repair
//! of a timeout, duplicate ACKs, and proportional rate reduction.

mod sackless;

use cwnd_cc::Phase;

use crate::frto::Frto;
use crate::params::{self, Params};
use crate::prr::Prr;

/// State of loss recovery, and of reductions that leave nothing to repair.
// What each ACK reads, from the tag of `state` on, lies in one cache line of the sender.
#[derive(Clone, Debug)]
#[repr(C)]
pub(super) struct LossRecovery {
    /// Recovery point of the last recovery, for RFC 6582's "covers more than recover"; one past it,
    /// and zero before the first.
    recovered: u64,
    state: State,
    /// Duplicate ACKs in a row.
    dupacks: u32,
    /// Without SACK: the most segments by which anything was late, if that is more than duplicates
    /// mean a loss; otherwise 0.
    most_late: u8,
    /// Spreads a reduction that left nothing to repair over the round trip, until more than
    /// `reduced_until` is acknowledged.
    cwr: Option<Box<Prr>>,
    /// Data below this was outstanding at the last reduction that left nothing to repair; until it
    /// is acknowledged there is no other (RFC 3168 § 6.1.2).
    reduced_until: u64,
}

#[derive(Clone, Debug)]
enum State {
    Open,
    Fast(FastRecovery),
    /// After a timeout, until what was outstanding then is acknowledged.
    Loss {
        recover: u64,
        /// Detection of a spurious timeout while it goes on.
        frto: Option<Box<Frto>>,
    },
}

#[derive(Clone, Debug)]
struct FastRecovery {
    /// Ends when everything below this is acknowledged.
    recover: u64,
    /// RFC 5681's inflation of cwnd by what has left the network, less NewReno's deflation. With
    /// SACK and `pipe_rule = "sack1"` that pipe.
    inflation: i64,
    /// The segment at SND.UNA must be retransmitted now, whatever the window.
    retransmit_now: bool,
    /// A partial ACK was seen (RFC 6582: only the first restarts the timer).
    partial_seen: bool,
    /// RescueRxt (RFC 6675 § 2), exclusive: no rescue before more than this is acknowledged.
    rescue_rxt: u64,
    prr: Option<Box<Prr>>,
}

/// Beginning of fast recovery.
pub(super) struct Entry {
    /// `true` if the window is reduced.
    pub reduces: bool,
    /// Recovery point.
    pub recover: u64,
    /// Proportional rate reduction; first that of a reduction under way, which goes on.
    pub prr: Option<Box<Prr>>,
}

/// Facts of an ACK of new data.
pub(super) struct NewAck {
    pub una: u64,
    pub acked: u64,
    pub mss: u64,
    /// Bytes above the recovery point that must be acknowledged, too.
    pub above: u64,
    /// `true` if a reduction is spread though there is no SACK.
    pub spread: bool,
}

/// Effect of an ACK of new data on loss recovery.
pub(super) enum Progress {
    /// A timeout is, or was, being repaired; its end leaves so many duplicate ACKs.
    Loss(u32),
    /// Fast recovery is over.
    Over,
    /// Nothing changes, or fast recovery is held at its recovery point (RFC 6582 § 3.2 (2)).
    Held,
    /// A partial ACK; `true` if it is the first.
    Partial(bool),
}

impl LossRecovery {
    /// Offset at which a cache line should begin, in bytes: the tag of `state` lies in its last
    /// eight.
    pub const READ_FROM: usize = core::mem::offset_of!(Self, dupacks) - 8;

    /// A field of that line.
    #[inline]
    pub const fn line(&self) -> &impl Sized {
        &self.dupacks
    }

    pub const fn new() -> Self {
        let state = State::Open;
        Self { recovered: 0, state, dupacks: 0, most_late: 0, cwr: None, reduced_until: 0 }
    }

    /// `true` if nothing is repaired.
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

    /// Phase that a controller sees, with all below `una` acknowledged.
    #[inline]
    pub const fn phase(&self, una: u64) -> Phase {
        match self.state {
            State::Fast(_) => Phase::Recovery,
            State::Loss { .. } => Phase::Loss,
            State::Open if una < self.reduced_until || self.cwr.is_some() => Phase::Cwr,
            State::Open => Phase::Open,
        }
    }

    /// Recovery point of what is repaired.
    #[inline]
    pub const fn recover(&self) -> Option<u64> {
        match self.state {
            State::Open => None,
            State::Fast(FastRecovery { recover, .. }) | State::Loss { recover, .. } => {
                Some(recover)
            }
        }
    }

    /// `true` in fast recovery if more is to be repaired above `una`.
    pub const fn is_partial(&self, una: u64) -> bool {
        matches!(&self.state, State::Fast(r) if una < r.recover)
    }

    /// Highest byte sent at the last reduction that left nothing to repair, exclusive.
    #[inline]
    pub const fn reduced_until(&self) -> u64 {
        self.reduced_until
    }

    /// Highest byte sent at the last reduction or recovery, exclusive. There is one reaction a
    /// window of data, whatever its cause (RFC 3168 § 6.1.2).
    pub fn last_reduction(&self) -> u64 {
        self.reduced_until.max(self.recovered.saturating_sub(1))
    }

    /// `true` if the window was reduced for what is outstanding from `una` on.
    pub const fn was_reduced(&self, una: u64) -> bool {
        match &self.state {
            State::Fast(r) => una < r.recover,
            State::Open => una < self.reduced_until,
            State::Loss { .. } => false,
        }
    }

    /// The window was reduced, with all up to `high` sent, and nothing is to be repaired.
    pub const fn on_reduction(&mut self, high: u64) {
        self.reduced_until = high;
    }

    /// Spreads that reduction over a round trip.
    pub fn begin_cwr(&mut self, prr: Prr) {
        self.cwr = Some(Box::new(prr));
    }

    /// Ends it if an ACK of all below `ack` comes.
    #[inline]
    pub fn end_cwr(&mut self, ack: u64) {
        if self.cwr.is_some() && ack > self.reduced_until {
            self.cwr = None;
        }
    }

    /// Proportional rate reduction of a reduction that left nothing to repair.
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

    /// Proportional rate reduction that holds now: a timeout's repair has none.
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

    /// RFC 6582 § 3.2 (2): duplicates of what was outstanding at the last recovery say nothing new.
    /// Reno lacks the check.
    pub fn may_enter(&self, una: u64, rule: params::Recovery) -> bool {
        match rule {
            params::Recovery::NewReno | params::Recovery::Tahoe => una >= self.recovered,
            params::Recovery::Reno | params::Recovery::Sack => true,
        }
    }

    /// Losses were found, with all from `una` to `high` outstanding; [`LossRecovery::begin`]
    /// follows, or slow start.
    pub fn enter(&mut self, una: u64, high: u64, params: &Params) -> Entry {
        let cwr = self.cwr.take();
        // One reaction a window, whatever made it smaller before (RFC 3168 § 6.1.2).
        let was_reduced = una < self.reduced_until || cwr.is_some();
        let reduces = self.is_loss() || !was_reduced || params.recovery.loss_reduces_again;
        // What a controller does by itself, at once, is no reduction to Linux, which spreads its
        // own: the recovery ends as others do.
        let known = cwr.is_some() || !params.prr.prr_on_ecn;
        let ends_early = !reduces && known && params.recovery.reduced_window_ends_recovery;
        let recover = if ends_early { self.reduced_until } else { high };
        // A reduction that is under way goes on, unless there is another.
        Entry { reduces, recover, prr: cwr.filter(|_| !reduces) }
    }

    /// Fast recovery begins. The first segment goes again now if it `retransmits`, and ends at
    /// `first`.
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

    /// The repair of a timeout begins, with all up to `high` sent.
    pub fn begin_loss(&mut self, high: u64) {
        self.state = State::Loss { recover: high, frto: None };
        self.cwr = None;
        self.dupacks = 0;
    }

    /// Ends what is repaired, as its recovery point is acknowledged.
    pub fn end(&mut self) {
        if let Some(recover) = self.recover() {
            self.recovered = recover + 1;
            self.state = State::Open;
        }
    }

    /// Ends fast recovery, and counts duplicates anew.
    pub fn end_fast(&mut self) {
        self.end();
        self.dupacks = 0;
    }

    /// Nothing was lost, and nothing is repaired any more; so many duplicate ACKs are left.
    pub fn undo(&mut self, dupacks: u32) {
        self.state = State::Open;
        self.dupacks = dupacks;
    }

    /// Retransmissions are lost in turn; all up to `high` was sent, and `top` is the highest byte
    /// SACKed. The `first` segment may be one of them. Returns `true` if that is the first news of
    /// this round trip, and reduces.
    pub fn lose_again(&mut self, top: u64, high: u64, first: bool) -> bool {
        match &mut self.state {
            State::Fast(r) if top > r.recover => {
                r.recover = high;
                // RFC 6675 § 5 (4.3): the first goes whatever the smaller window.
                r.retransmit_now |= first && r.prr.is_none();
                true
            }
            _ => false,
        }
    }

    /// Counts duplicate ACKs anew.
    #[inline]
    pub const fn forget_duplicates(&mut self) {
        self.dupacks = 0;
    }

    /// An ACK of new data while something is repaired, under this rule; Reno ends with the first.
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

    /// A duplicate ACK. Returns their number in a row if it may begin fast recovery; in that the
    /// window grows by `inflates`.
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

    /// Inflation of the window in fast recovery, or pipe by `pipe_rule = "sack1"`.
    #[inline]
    pub const fn inflation(&self) -> i64 {
        match &self.state {
            State::Fast(r) => r.inflation,
            _ => 0,
        }
    }

    /// The same, none below zero.
    #[inline]
    pub fn inflated(&self) -> u64 {
        self.inflation().max(0).unsigned_abs()
    }

    /// So much of the counted pipe left the network.
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

    /// The fast retransmit goes now, if it returns `true`; with `false` proportional rate reduction
    /// holds it back.
    #[inline]
    pub fn take_fast_retransmit(&mut self, mss: u64) -> Option<bool> {
        let State::Fast(r) = &mut self.state else { return None };
        if !r.retransmit_now {
            return None;
        }
        // Without SACK PRR lets the next hole go as it lets everything.
        let waits = r.partial_seen && r.prr.as_ref().is_some_and(|prr| !prr.allows(mss));
        r.retransmit_now = waits;
        Some(!waits)
    }

    /// `true` if the first segment waits to go again.
    pub const fn hole_waits(&self) -> bool {
        matches!(&self.state, State::Fast(r) if r.retransmit_now)
    }

    /// `true` if the highest data may go again, to rescue a lost tail (RFC 6675 § 4, rule 4).
    pub const fn may_rescue(&self, una: u64) -> bool {
        matches!(&self.state, State::Fast(r) if una > r.rescue_rxt)
    }

    /// So many bytes go, as a rescue or not; if recovery `counts` the pipe, they are added to it.
    #[inline(always)]
    pub fn on_sent(&mut self, len: u64, rescue: bool, counts: impl Fn() -> bool) {
        // A probe of the tail that is a retransmission is none of these (`tcp_send_loss_probe`).
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

    /// F-RTO begins.
    pub fn begin_frto(&mut self, new: Frto) {
        if let State::Loss { frto, .. } = &mut self.state {
            *frto = Some(Box::new(new));
        }
    }

    /// F-RTO, while it is under way, and the recovery point.
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

    /// `true` if F-RTO answers with new data.
    pub fn sends_new_in_frto(&self) -> bool {
        matches!(&self.state, State::Loss { frto: Some(frto), .. } if frto.sends_new())
    }

    /// Something was lost: F-RTO is over.
    pub fn end_frto(&mut self) {
        if let State::Loss { frto, .. } = &mut self.state {
            *frto = None;
        }
    }
}

impl FastRecovery {
    /// RFC 6582 § 3.2 (3): retransmit the next hole, deflate by what was acknowledged, add back
    /// one.
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
