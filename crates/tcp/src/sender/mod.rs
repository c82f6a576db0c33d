//! The sending end of a connection, composed of parts that own their state.

mod ack;
pub(crate) mod cwr;
mod loss_detector;
mod loss_recovery;
pub(crate) mod pacer;
mod rack;
mod recovery;
mod rtt_source;
mod sackless;
mod sequence_space;
mod timeout;
mod transmit;
mod tso;
mod undo;

use std::sync::Arc;

use cwnd_cc::{AnyController, Controller as _, Path, Phase, Window};
use cwnd_packet::Range;
use cwnd_quantity::{Duration, Time};

use crate::config::Config;
use crate::counters::SenderCounters;
use crate::cwnd_validation::CwndValidation;
use crate::params::{FlightSize, Recovery};
use crate::sent_segments::SentSegments;
use cwr::{EcnSender, Quenches};
use loss_detector::LossDetector;
use loss_recovery::LossRecovery;
use pacer::Pacer;
use rtt_source::RttSource;
use sequence_space::SequenceSpace;
pub use timeout::GaveUp;
use timeout::{PersistTimer, RtoTimer};
use tso::Tso;
use undo::Undo;

/// The sending end of a connection.
///
/// Call [`Sender::open`] (a server: [`Sender::accept`]) once, [`Sender::write`] when the
/// application has data, [`Sender::on_segment`] for each arriving segment, [`Sender::on_timer`] at
/// or after [`Sender::next_timer`] (an early or spurious call is harmless). After each of these
/// call [`Sender::poll_transmit`] until it returns `None`, then read `next_timer` again.
// Fields are in order of use, by cache lines: with many flows no near cache holds what their
// packets read.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Sender {
    // Beside the fields of the flow that each event reads.
    config: Arc<Config>,
    /// State for the undo of a reduction for a loss or a timeout.
    undo: Undo,
    seq: SequenceSpace,
    connection: Connection,
    ecn: EcnSender,
    persist: PersistTimer,
    pacer: Pacer,
    rto: RtoTimer,
    validation: CwndValidation,
    cc: AnyController,
    quenches: Quenches,
    recovery: LossRecovery,
    loss: LossDetector,
    counters: SenderCounters,
    /// Data sent and not acknowledged.
    sent: SentSegments,
    rtt: RttSource,
    tso: Tso,
}

impl Sender {
    /// Offset at which a cache line should begin, in bytes.
    pub const READ_FROM: usize = core::mem::offset_of!(Self, seq);
}

// A cache line is 64 bytes. What sending, an ACK or the timers read starts at a line, so that it
// takes no more lines than it must. A new field that packets read belongs into one of these lines,
// any other behind `counters` or at the end; then count these numbers again.
const _: () = if cfg!(target_pointer_width = "64") {
    use core::mem::offset_of;
    let from = Sender::READ_FROM;
    assert!(offset_of!(Sender, pacer) == from + 64);
    assert!(offset_of!(Sender, cc) == from + 128);
    assert!(offset_of!(Sender, recovery) + LossRecovery::READ_FROM == from + 256);
    assert!(offset_of!(Sender, counters) == from + 256 + 48);
    assert!(offset_of!(Sender, sent) + SentSegments::COUNTS == from + 512);
    assert!(offset_of!(Sender, sent) + SentSegments::READ_FROM == from + 640);
    assert!(offset_of!(Sender, rtt) + RttSource::READ_FROM == from + 704);
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Connection {
    Closed,
    /// A SYN is due (not `sent`) or on its way; `tries` counts those sent.
    SynSent {
        sent: bool,
        tries: u32,
    },
    Established,
    /// Given up at this stage.
    Failed(GaveUp),
}

/// Facts about a handshake that a server has when the first segment after it arrives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Handshake {
    /// Number of SYN-ACKs sent; zero if the connection began without a handshake.
    pub syn_acks: u32,
    /// Time of the last SYN-ACK.
    pub last: Time,
}

/// State of a connection in the terms of Linux `tcp_get_info`, whose counts differ from those of
/// the RFCs: fields of `struct tcp_info`, in segments. The endpoint counts bytes: a part of a
/// segment counts as one, except in a window without proportional rate reduction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpInfo {
    /// `tcpi_snd_cwnd`. During proportional rate reduction it is what is in flight plus the quota
    /// (`tcp_cwnd_reduction`); `None` in a fast recovery without that.
    pub cwnd: Option<u64>,
    /// `tcpi_sacked`: segments reported by SACK, or without SACK by duplicate ACKs.
    pub sacked: u64,
    /// `tcpi_lost`: segments marked lost, retransmitted or not. Without SACK `None`, except while
    /// the marks of a timeout are repaired.
    pub lost: Option<u64>,
    /// `tcpi_retrans`: segments retransmitted, and neither acknowledged nor lost again; `None` if
    /// `lost` is `None`.
    pub retrans: Option<u64>,
}

impl Sender {
    /// New sender, not yet open.
    #[must_use]
    pub fn new(config: Arc<Config>) -> Self {
        let cc = config.new_controller();
        let rwnd = u64::from(config.receive_window);
        let rtt = RttSource::new(&config);
        let loss = LossDetector::new(config.plan.detection.is_rack());
        let sent = SentSegments::new(&config.params, rtt.notes());
        let validation = CwndValidation::new(config.params.validation.cwnd_limited);
        let tso = Tso::new(&config.params.tso);
        Self {
            config,
            cc,
            connection: Connection::Closed,
            recovery: LossRecovery::new(),
            seq: SequenceSpace::new(rwnd),
            persist: PersistTimer::OFF,
            sent,
            ecn: EcnSender::NEW,
            rtt,
            rto: RtoTimer::OFF,
            loss,
            undo: Undo::default(),
            pacer: Pacer::OFF,
            quenches: Quenches::default(),
            tso,
            validation,
            counters: SenderCounters::default(),
        }
    }

    /// Prefetches the cache lines that are read whenever the sender may send.
    #[inline]
    pub fn prefetch_lines(&self) {
        cwnd_memory::prefetch_line(&self.seq);
        cwnd_memory::prefetch_line(&self.pacer);
        cwnd_memory::prefetch_line(self.recovery.line());
    }

    /// Prefetches the further cache lines that an ACK reads.
    #[inline]
    pub fn prefetch_rest(&self) {
        cwnd_memory::prefetch_line(&self.cc);
        self.sent.prefetch_lines();
        cwnd_memory::prefetch_line(self.rtt.estimator());
    }

    /// Prefetches what the next ACK reads outside the sender itself: a hint, for speed alone.
    #[inline]
    pub fn prefetch(&self) {
        self.sent.prefetch();
    }

    /// Opens the connection: with a handshake by a SYN, otherwise data may be sent at once.
    pub fn open(&mut self) {
        self.connection = if self.config.params.connection.handshake {
            Connection::SynSent { sent: false, tries: 0 }
        } else {
            Connection::Established
        };
    }

    /// Establishes a connection that the other end opened, at its first segment after the
    /// handshake.
    pub fn accept(&mut self, now: Time, handshake: Handshake) {
        self.connection = Connection::Established;
        match handshake.syn_acks {
            0 => {}
            1 => {
                // RFC 6298 § 2.2: the SYN-ACK and its answer give the first RTT sample.
                let seen = self.rtt.controller_view();
                let measured = self.add_rtt_sample(now, handshake.last);
                self.rtt.on_handshake(now, (handshake.last, true), seen, Some(measured));
            }
            // Karn's algorithm: it is ambiguous which SYN-ACK was answered. RFC 5681 § 3.1: after a
            // lost SYN or SYN-ACK the initial window is one segment.
            _ => self.cc = self.config.controller_after_syn_loss(),
        }
    }

    /// Adds `bytes` that the application has written. A bulk sender writes once, more than a run
    /// can carry.
    pub const fn write(&mut self, bytes: u64) {
        self.seq.write(bytes);
    }

    /// Ends the application data: unsent data is discarded.
    pub fn stop_writing(&mut self) {
        self.seq.stop_writing();
    }

    /// Time of the next call of [`Sender::on_timer`]; `Time::NEVER` if none is needed.
    #[inline]
    #[must_use]
    pub fn next_timer(&self) -> Time {
        let deadline = self.rto.deadline().min(self.loss.deadline());
        if self.pacer.holds() { deadline.min(self.held_until()) } else { deadline }
    }

    /// `true` if a timer has expired at `now`; otherwise [`Sender::on_timer`] does nothing.
    #[inline]
    #[must_use]
    pub fn may_expire(&self, now: Time) -> bool {
        now >= self.rto.deadline().min(self.loss.deadline())
    }

    /// Processes the timers that have expired at `now`.
    pub fn on_timer(&mut self, now: Time) {
        if now >= self.loss.deadline() {
            self.on_loss_timer(now);
        }
        if now < self.rto.deadline() {
            return;
        }
        match self.connection {
            Connection::SynSent { tries, .. } => self.on_syn_timeout(tries),
            Connection::Established if !self.persist.is_off() => self.on_persist_timeout(),
            Connection::Established if self.seq.high() > self.seq.una() => self.on_timeout(now),
            _ => self.rto.stop(),
        }
    }

    /// State of the path as the controller sees it.
    #[must_use]
    pub fn path(&self, now: Time) -> Path {
        self.path_of(now, self.flight_size(), self.phase())
    }

    #[inline]
    fn path_of(&self, now: Time, flight_size: u64, phase: Phase) -> Path {
        Path {
            now,
            mss: self.config.mss as u32,
            srtt: self.rtt.srtt(),
            min_rtt: self.rtt.min(),
            rtt: self.rtt.last(),
            flight_size,
            delivered: self.seq.una(),
            sent: self.seq.high(),
            phase,
            cwnd_limited: self.validation.is_limited(),
            round: self.rtt.round(),
        }
    }

    /// FlightSize (RFC 5681 § 2), or the pipe in its place if `flight_size` says so.
    #[inline]
    fn flight_size(&self) -> u64 {
        match self.config.params.recovery.flight_size {
            FlightSize::Outstanding => self.seq.flight_size(),
            FlightSize::Pipe => self.in_flight(),
        }
    }

    /// Payload bytes of a full segment.
    #[must_use]
    pub fn mss(&self) -> u64 {
        self.config.mss
    }

    /// Phase of the sender's response to losses and marks.
    #[inline]
    #[must_use]
    pub const fn phase(&self) -> Phase {
        self.recovery.phase(self.seq.una())
    }

    /// Congestion window and slow-start threshold of the controller.
    #[inline]
    #[must_use]
    pub fn window(&self) -> Window {
        self.cc.window()
    }

    /// Payload bytes presumed in the network.
    #[inline]
    #[must_use]
    pub fn in_flight(&self) -> u64 {
        if matches!(self.config.params.recovery.recovery, Recovery::Sack) {
            self.sent.pipe(self.seq.una(), self.seq.nxt())
        } else {
            if self.has_marked_without_sack() {
                return self.marked_in_flight();
            }
            // Each duplicate ACK that inflated the window reports a segment that has left the
            // network.
            self.seq.flight().saturating_sub(self.recovery.inflated())
        }
    }

    /// `true` if all written data is acknowledged.
    #[inline]
    #[must_use]
    pub const fn is_drained(&self) -> bool {
        self.seq.una() >= self.seq.app_end()
    }

    /// `true` if the connection is open for data.
    #[inline]
    #[must_use]
    pub const fn is_established(&self) -> bool {
        matches!(self.connection, Connection::Established)
    }

    /// `true` if the connection was given up.
    #[must_use]
    pub const fn has_failed(&self) -> bool {
        matches!(self.connection, Connection::Failed(_))
    }

    /// Stage at which the connection was given up, if it was.
    #[must_use]
    pub const fn gave_up(&self) -> Option<GaveUp> {
        match self.connection {
            Connection::Failed(at) => Some(at),
            _ => None,
        }
    }

    /// Number of transmissions of the first unacknowledged byte; zero if nothing is outstanding.
    #[must_use]
    pub fn transmissions_of_first(&self) -> u64 {
        if self.seq.high() > self.seq.una() {
            1 + self.sent.retransmit_count(self.seq.una())
        } else {
            0
        }
    }

    /// `true` if the sender keeps a scoreboard of SACK.
    #[must_use]
    pub fn has_sack(&self) -> bool {
        self.config.params.recovery.recovery == Recovery::Sack
    }

    /// `true` if losses are found by send times (RACK), not by order.
    #[must_use]
    pub const fn finds_losses_by_time(&self) -> bool {
        self.loss.has_rack()
    }

    /// `true` if byte `at`, sent and not acknowledged, is marked lost, retransmitted or not; always
    /// `true` without SACK, which marks nothing.
    #[must_use]
    pub fn is_lost(&self, at: u64) -> bool {
        !self.has_sack() || self.sent.is_lost(at)
    }

    /// Ranges that are marked lost and not retransmitted since; none without SACK.
    pub fn lost_ranges(&self) -> impl Iterator<Item = Range> {
        self.has_sack().then(|| self.sent.lost_ranges(self.seq.una())).into_iter().flatten()
    }

    /// Expiries of the retransmission timer since the last ACK of new data.
    #[must_use]
    pub const fn timeouts_in_a_row(&self) -> u32 {
        self.rto.expired()
    }

    /// `true` if the application has written data that was never sent.
    #[must_use]
    pub const fn has_unsent_data(&self) -> bool {
        self.seq.app_end() > self.seq.high()
    }

    /// Payload bytes acknowledged cumulatively.
    #[must_use]
    pub const fn acknowledged(&self) -> u64 {
        self.seq.una()
    }

    /// SRTT and RTTVAR; `None` before the first sample.
    #[must_use]
    pub const fn rtt_estimate(&self) -> Option<(Duration, Duration)> {
        self.rtt.estimate()
    }

    /// Retransmission timeout that would be set now, with backoff.
    #[must_use]
    pub fn current_rto(&self) -> Duration {
        if self.is_established() { self.rto() } else { self.syn_rto() }
    }

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

    /// Counters of the sender.
    #[inline]
    #[must_use]
    pub const fn counters(&self) -> &SenderCounters {
        &self.counters
    }

    /// Congestion controller of the sender.
    #[must_use]
    pub const fn controller(&self) -> &AnyController {
        &self.cc
    }

    /// Records the calls of its controller from now on.
    #[cfg(feature = "record")]
    pub fn record(&mut self) {
        self.cc = self.cc.clone().recorded();
    }
}
