//! The sending end.

mod ack;
mod bursts;
mod controller_rtt;
mod cwnd_validation;
mod cwr;
mod ecn_sender;
mod loss_detector;
mod loss_recovery;
mod old_acks;
pub(crate) mod pacer;
mod passive_open;
mod persist;
mod persist_timer;
mod quench;
mod quenches;
mod rack;
mod recovery;
mod rounds;
mod rto_timer;
mod rtt_source;
mod sackless;
mod sequence_space;
mod spurious_timeout;
mod sub_mss_pacing;
mod tail_loss_probe;
mod tcp_info;
mod timed_segment;
mod timeout;
mod transmit;
mod tso;
mod undo;
mod undo_reduction;

use std::sync::Arc;

use cwnd_cc::{AnyController, Controller as _, Path, Phase, Window};
use cwnd_quantity::{Duration, Time};

use crate::config::Config;
use crate::counters::SenderCounters;
use crate::params::{FlightSize, Recovery};
use crate::sent_segments::SentSegments;
use cwnd_validation::CwndValidation;
use ecn_sender::EcnSender;
use loss_detector::LossDetector;
use loss_recovery::LossRecovery;
use pacer::Pacer;
pub use passive_open::Handshake;
use persist_timer::PersistTimer;
use quenches::Quenches;
use rto_timer::RtoTimer;
use rtt_source::RttSource;
use sequence_space::SequenceSpace;
pub use tcp_info::TcpInfo;
pub use timeout::GaveUp;
use tso::Tso;
use undo::Undo;

/// The sending end of a connection.
///
/// Drive it so: [`Sender::open`] once, [`Sender::write`] when the application has data,
/// [`Sender::on_segment`] for each arriving segment, [`Sender::on_timer`] at or after
/// [`Sender::next_timer`] (an early or spurious call is harmless). After each of these call
/// [`Sender::poll_transmit`] until it returns `None`, then look at `next_timer` again.
// In order of use, by cache lines: what packets of many flows read is in no near cache.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Sender {
    // With what its flow is asked at each event.
    config: Arc<Config>,
    /// State that a reduction for a loss may be taken back to.
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

// A cache line is 64 bytes. What sending, an ACK or its timers read begins where a line does, so
// that it takes no line more. A new field that packets read goes into one of these lines, any other
// behind `counters` or at the end; then these numbers are to be counted again.
const _: () = {
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
    /// Given up: SYN after SYN, or the same data again and again.
    Failed(GaveUp),
}

impl Sender {
    /// A sender that is not yet open.
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

    /// Asks for what is read of the sender whenever it may send.
    #[inline]
    pub fn lines_soon(&self) {
        cwnd_memory::line_soon(&self.seq);
        cwnd_memory::line_soon(&self.pacer);
        cwnd_memory::line_soon(self.recovery.line());
    }

    /// Asks for what an ACK reads beside that.
    #[inline]
    pub fn rest_soon(&self) {
        cwnd_memory::line_soon(&self.cc);
        self.sent.lines_soon();
        cwnd_memory::line_soon(self.rtt.estimator());
    }

    /// Asks for the memory that the next ACK needs beyond the sender itself: a hint, for speed
    /// alone.
    #[inline]
    pub fn soon(&self) {
        self.sent.soon();
    }

    /// Opens the connection: with a handshake a SYN is sent first, without one data may flow at
    /// once.
    pub fn open(&mut self) {
        self.connection = if self.config.params.connection.handshake {
            Connection::SynSent { sent: false, tries: 0 }
        } else {
            Connection::Established
        };
    }

    /// The application wrote `bytes` more. A bulk sender writes once, more than a run can carry.
    pub const fn write(&mut self, bytes: u64) {
        self.seq.write(bytes);
    }

    /// The application writes nothing more: what was not sent yet never will be.
    pub fn stop_writing(&mut self) {
        self.seq.stop_writing();
    }

    /// Time at which [`Sender::on_timer`] wants to be called; `Time::NEVER` if not at all.
    #[inline]
    #[must_use]
    pub fn next_timer(&self) -> Time {
        let deadline = self.rto.deadline().min(self.loss.deadline());
        if self.pacer.holds() { deadline.min(self.held_until()) } else { deadline }
    }

    /// `true` if [`Sender::on_timer`] may find more than that pacing is over.
    #[inline]
    #[must_use]
    pub fn may_expire(&self, now: Time) -> bool {
        now >= self.rto.deadline().min(self.loss.deadline())
    }

    /// A timer may have expired.
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

    fn path(&self, now: Time) -> Path {
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

    /// RFC 5681's FlightSize, or what stands for it.
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

    /// The phase of the sender's answer to losses and marks.
    #[inline]
    #[must_use]
    pub const fn phase(&self) -> Phase {
        self.recovery.phase(self.seq.una())
    }

    /// The congestion window and slow-start threshold, as the controller has them.
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
            // Each duplicate ACK that inflated the window says that a segment has left the network.
            self.seq.flight().saturating_sub(self.recovery.inflated())
        }
    }

    /// `true` if all that was written is acknowledged.
    #[inline]
    #[must_use]
    pub const fn is_drained(&self) -> bool {
        self.seq.una() >= self.seq.app_end()
    }

    /// `true` if data may flow.
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

    /// The point at which the connection was given up, if it was.
    #[must_use]
    pub const fn gave_up(&self) -> Option<GaveUp> {
        match self.connection {
            Connection::Failed(at) => Some(at),
            _ => None,
        }
    }

    /// Number of times that the first byte not acknowledged was sent; nothing outstanding is sent
    /// zero times.
    #[must_use]
    pub fn copies_of_first(&self) -> u64 {
        if self.seq.high() > self.seq.una() { 1 + self.sent.times_again(self.seq.una()) } else { 0 }
    }

    /// Payload bytes acknowledged cumulatively.
    #[must_use]
    pub const fn acknowledged(&self) -> u64 {
        self.seq.una()
    }

    /// SRTT and RTTVAR, before the first sample `None`.
    #[must_use]
    pub const fn rtt_estimate(&self) -> Option<(Duration, Duration)> {
        self.rtt.estimate()
    }

    /// The retransmission timeout that would be armed now.
    #[must_use]
    pub fn current_rto(&self) -> Duration {
        if self.is_established() { self.rto() } else { self.syn_rto() }
    }

    /// Its counters.
    #[inline]
    #[must_use]
    pub const fn counters(&self) -> &SenderCounters {
        &self.counters
    }

    /// Its congestion controller.
    #[must_use]
    pub const fn controller(&self) -> &AnyController {
        &self.cc
    }

    /// From now on its controller writes down what it is told.
    #[cfg(feature = "record")]
    pub fn record(&mut self) {
        self.cc = self.cc.clone().recorded();
    }
}
