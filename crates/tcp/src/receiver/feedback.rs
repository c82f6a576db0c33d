//! Feedback in ACKs beside the acknowledgement number: ECE (RFC 3168 § 6.1.3), timestamps (RFC 7323
//! § 4.3), D-SACK (RFC 2883), echoes of marks, and echoes of header fields that routers wrote.

use cwnd_packet::{CongestionHeader, Ecn, Range, Ranges};
use cwnd_quantity::Time;

use super::misbehaviour::Misbehaviour;
use crate::config::Config;
use crate::counters::Delays;
use crate::echo::DynEcho;
use crate::params::Recovery;
use crate::segment::{Body, Flags, SackBlock, SackBlocks, Segment};
use crate::signed_timestamps::Signer;

/// Feedback state of a receiver: reads marks, timestamps and headers of data, and writes them into
/// ACKs.
#[derive(Clone, Debug)]
#[repr(C)]
pub(super) struct Feedback {
    /// TS.Recent, the timestamp to echo (RFC 7323 § 4.3).
    ts_recent: Time,
    /// `true` if ACKs carry ECE: from a CE mark until CWR (RFC 3168 § 6.1.3).
    ece: bool,
    /// `true` if `extras` read each segment (an echo policy or one-way delays).
    reads_each: bool,
    /// `true` if the receiver misbehaves.
    misbehaves: bool,
    extras: Option<Box<Extras>>,
}

/// Feedback that most receivers lack; boxed to keep [`Feedback`] small.
#[derive(Clone, Debug)]
struct Extras {
    /// Echo policy in place of ECE; `None` for classic ECE (RFC 3168).
    echo: Option<Box<dyn DynEcho>>,
    dsack: Option<Dsack>,
    misbehaviour: Option<Box<Misbehaviour>>,
    delays: Option<Box<OneWayDelays>>,
}

/// One-way delays of data, for results only: no algorithm reads them.
#[derive(Clone, Debug)]
struct OneWayDelays {
    delays: Delays,
    /// Recovers the send time from signed timestamps.
    signer: Signer,
}

impl Feedback {
    pub fn new(config: &Config) -> Self {
        let params = &config.params;
        let sack = params.recovery.recovery == Recovery::Sack;
        let signer = config.signer();
        let notes = params.timing.record_delays;
        let extras = Extras {
            echo: config.new_echo(),
            dsack: (params.acks.dsack && sack).then(Dsack::default),
            misbehaviour: Misbehaviour::new(&params.cheat).map(Box::new),
            delays: notes.then(|| Box::new(OneWayDelays { delays: Delays::default(), signer })),
        };
        let misbehaves = extras.misbehaviour.is_some();
        let reads_each = extras.echo.is_some() || extras.delays.is_some();
        let any = reads_each || misbehaves || extras.dsack.is_some();
        let extras = any.then(|| Box::new(extras));
        Self { ts_recent: Time::ZERO, ece: false, reads_each, misbehaves, extras }
    }

    /// Timestamp that an ACK echoes (RFC 7323 § 4.3, TSecr).
    #[inline]
    pub const fn ts_recent(&self) -> Time {
        self.ts_recent
    }

    /// Flags of an ACK: ECE or none.
    #[inline]
    pub const fn flags(&self) -> Flags {
        // RFC 3168 § 6.1.3: in every ACK until a segment with CWR arrives.
        if self.ece { Flags::ECE } else { Flags(0) }
    }

    /// `true` if ACKs carry ECE.
    #[inline]
    pub const fn has_ece(&self) -> bool {
        self.ece
    }

    /// `true` if ACKs must pass through [`Feedback::complete`].
    #[inline]
    pub const fn has_extras(&self) -> bool {
        self.extras.is_some()
    }

    /// `true` if the receiver misbehaves.
    #[inline]
    pub const fn misbehaves(&self) -> bool {
        self.misbehaves
    }

    /// `true` if ACKs acknowledge data before it arrives (optimistic ACKs).
    pub fn conceals(&self) -> bool {
        let misbehaviour = self.extras.as_ref().and_then(|extras| extras.misbehaviour.as_ref());
        misbehaviour.is_some_and(|misbehaviour| misbehaviour.conceals())
    }

    /// One-way delays of data; `None` without `record_delays`.
    pub fn delays(&self) -> Option<&Delays> {
        Some(&self.extras.as_ref()?.delays.as_ref()?.delays)
    }

    /// Begins the counting period of the one-way delays.
    pub fn begin_counting(&mut self) {
        let delays = self.extras.as_mut().and_then(|extras| extras.delays.as_mut());
        if let Some(one_way) = delays {
            one_way.delays.begin_counting();
        }
    }

    /// Echoes in the SYN-ACK `reply` the header that routers wrote into the SYN, if it carried one,
    /// and adds misreports.
    pub fn on_syn(&mut self, now: Time, segment: &Segment, reply: &mut Segment) {
        let Some(extras) = &mut self.extras else { return };
        if segment.header().is_some_and(|header| header != CongestionHeader::None) {
            if let Some(policy) = &mut extras.echo {
                policy.on_data(now, segment);
            }
            extras.echo(reply);
        }
        if let Some(misbehaviour) = &mut extras.misbehaviour {
            misbehaviour.on_arrival(now, segment, true);
            misbehaviour.forge(reply);
        }
    }

    /// Reads CWR, the ECN field and the timestamp of a data segment; `new` if it ends above the
    /// next byte expected. Returns `true` if ACKs already carried ECE when this segment's mark was
    /// read.
    #[inline(always)]
    pub fn on_header(&mut self, segment: &Segment, new: bool, last_ack_sent: u64) -> bool {
        // RFC 7323 § 4.3 (2), § 5.3 R2: echo the segment that the next ACK acknowledges first, no
        // duplicate, and never an older timestamp.
        if new && segment.seq <= last_ack_sent && segment.ts >= self.ts_recent {
            self.ts_recent = segment.ts;
        }
        if segment.flags.has(Flags::CWR) {
            self.ece = false;
        }
        let echoed = self.ece;
        if segment.ecn == Ecn::Ce {
            // CE is read after CWR: a segment with both begins a new episode (RFC 3168 § 6.1.3). A
            // mark below the next byte expected is ignored (§ 6.1.5).
            self.ece |= new && self.is_classic();
        }
        echoed
    }

    /// `true` if marks are echoed by ECE (RFC 3168 § 6.1.3).
    fn is_classic(&self) -> bool {
        self.extras.as_ref().is_none_or(|extras| extras.echo.is_none())
    }

    /// Shows a segment to a misbehaving receiver before it is accepted.
    pub fn on_arrival(&mut self, now: Time, segment: &Segment, rcv_nxt: u64) {
        let misbehaviour = self.extras.as_mut().and_then(|extras| extras.misbehaviour.as_mut());
        if let Some(misbehaviour) = misbehaviour {
            misbehaviour.on_arrival(now, segment, segment.end() > rcv_nxt);
        }
    }

    /// Records the duplicate part of a segment before it is accepted (RFC 2883 § 4).
    pub fn note_duplicate(&mut self, segment: &Segment, rcv_nxt: u64, out_of_order: &Ranges) {
        if let Some(dsack) = self.extras.as_mut().and_then(|extras| extras.dsack.as_mut()) {
            dsack.on_segment(segment, rcv_nxt, out_of_order);
        }
    }

    /// Passes an accepted segment to the echo policy and the delay statistics. Returns `true` if
    /// its echo must not wait.
    #[inline]
    pub fn on_data(&mut self, now: Time, segment: &Segment) -> bool {
        self.reads_each && self.extras.as_mut().is_some_and(|extras| extras.on_data(now, segment))
    }

    /// Adds echo, D-SACK and misreports to an ACK; the ACK before acknowledged all below `from`.
    /// Returns `true` if the ACK was divided into pieces ([`Feedback::next_piece`]).
    pub fn complete(&mut self, ack: &mut Segment, from: u64) -> bool {
        self.extras.as_mut().is_some_and(|extras| extras.complete(ack, from))
    }

    /// Returns the next piece of a divided ACK, and `true` if there are more.
    pub fn next_piece(&mut self) -> Option<(Segment, bool)> {
        self.extras.as_mut()?.misbehaviour.as_mut()?.next_piece()
    }

    /// Adds the D-SACK block to an ACK.
    pub fn report_duplicate(&mut self, ack: &mut Segment) {
        if let Some(extras) = &mut self.extras {
            extras.report_duplicate(ack);
        }
    }

    /// Adds echo and misreports to a held ACK, whose D-SACK block was added before the last segment
    /// arrived.
    pub fn complete_held(&mut self, ack: &mut Segment) {
        let Some(extras) = &mut self.extras else { return };
        extras.echo(ack);
        if let Some(misbehaviour) = &mut extras.misbehaviour {
            misbehaviour.forge(ack);
        }
    }
}

impl Extras {
    #[inline(never)]
    fn on_data(&mut self, now: Time, segment: &Segment) -> bool {
        if let Some(one_way) = &mut self.delays {
            let sent = one_way.signer.verify(segment.ts).unwrap_or(segment.ts);
            one_way.delays.add(now.since(sent), segment.wire);
        }
        self.echo.as_mut().is_some_and(|policy| policy.on_data(now, segment))
    }

    fn complete(&mut self, ack: &mut Segment, from: u64) -> bool {
        self.echo(ack);
        self.report_duplicate(ack);
        let Some(misbehaviour) = &mut self.misbehaviour else { return false };
        misbehaviour.forge(ack);
        misbehaviour.divide(from, ack)
    }

    fn report_duplicate(&mut self, ack: &mut Segment) {
        if let (Some(dsack), Body::Ack { sack, .. }) = (&mut self.dsack, &mut ack.body) {
            dsack.report(ack.seq, sack);
        }
    }

    /// Writes the echo into an ACK, and adds the option's bytes to its wire size.
    fn echo(&mut self, ack: &mut Segment) {
        if let (Some(policy), Body::Ack { echo, .. }) = (&mut self.echo, &mut ack.body) {
            *echo = policy.take();
            ack.wire = ack.wire.saturating_add(policy.bytes_of(*echo));
        }
    }
}

/// D-SACK: duplicate data that the next ACK reports (RFC 2883).
#[derive(Clone, Copy, Debug, Default)]
struct Dsack {
    /// The last duplicate range received since the last ACK.
    duplicate: Option<Range>,
}

impl Dsack {
    /// Finds the first part of a segment that was received before; called before the segment is
    /// accepted.
    fn on_segment(&mut self, segment: &Segment, rcv_nxt: u64, out_of_order: &Ranges) {
        let (start, end) = (segment.seq, segment.end());
        let duplicate = if start < rcv_nxt {
            // All below the next byte expected was received (RFC 2883 § 4.1).
            start..end.min(rcv_nxt)
        } else {
            match out_of_order.hole_from(start, end) {
                None => start..end,
                Some(hole) if hole.start > start => start..hole.start,
                // The segment begins with new data: the duplicate part behind it is reported (RFC
                // 2883 § 4.2).
                Some(hole) => {
                    let next = out_of_order.hole_from(hole.end, end);
                    hole.end..next.map_or(end, |next| next.start)
                }
            }
        };
        if duplicate.start < duplicate.end {
            self.duplicate = Some(Range { start: duplicate.start, end: duplicate.end });
        }
    }

    /// Inserts the duplicate range as the first SACK block of an ACK of all below `ack`, once (RFC
    /// 2883 § 4).
    fn report(&mut self, ack: u64, blocks: &mut SackBlocks) {
        if let Some(Range { start, end }) = self.duplicate.take() {
            blocks.rotate_right(1);
            blocks[0] = SackBlock::of(ack, start, end);
        }
    }
}
