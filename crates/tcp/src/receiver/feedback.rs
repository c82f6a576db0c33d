//! Contents of ACKs beside the acknowledgement number: ECE (RFC 3168 § 6.1.3), timestamps (RFC 7323
//! § 4.3), D-SACK (RFC 2883), and echoes of marks and of header fields that routers wrote.

use cwnd_packet::{Ecn, Header, Ranges};
use cwnd_quantity::Time;

use super::dsack::Dsack;
use super::misbehaviour::Misbehaviour;
use crate::config::Config;
use crate::delays::Delays;
use crate::echo::DynEcho;
use crate::params::Recovery;
use crate::segment::{Body, Flags, Segment};
use crate::signed::Signer;

/// Reads feedback from data, and writes it into ACKs.
#[derive(Clone, Debug)]
#[repr(C)]
pub(super) struct Feedback {
    /// TS.Recent, the timestamp to echo (RFC 7323 § 4.3).
    ts_recent: Time,
    /// `true` if ACKs carry ECE: from a CE mark until CWR (RFC 3168 § 6.1.3).
    ece: bool,
    /// `true` if there are `extras` that read each segment.
    reads_each: bool,
    /// `true` if the receiver misbehaves.
    misbehaves: bool,
    extras: Option<Box<Extras>>,
}

/// Feedback that most receivers do without.
#[derive(Clone, Debug)]
struct Extras {
    /// Policy of echoes in place of ECE.
    echo: Option<Box<dyn DynEcho>>,
    dsack: Option<Dsack>,
    misbehaviour: Option<Box<Misbehaviour>>,
    delays: Option<Box<OneWayDelays>>,
}

/// One-way delays of data, for results: no algorithm reads them.
#[derive(Clone, Debug)]
struct OneWayDelays {
    delays: Delays,
    /// Reads signed timestamps.
    signer: Signer,
}

impl Feedback {
    pub fn new(config: &Config) -> Self {
        let params = &config.params;
        let sack = params.recovery.recovery == Recovery::Sack;
        let signer = config.signer();
        let notes = params.timing.note_delays;
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

    /// Timestamp of an ACK (RFC 7323 § 4.3, TSecr).
    #[inline]
    pub const fn ts_recent(&self) -> Time {
        self.ts_recent
    }

    /// Flags of an ACK.
    #[inline]
    pub const fn flags(&self) -> Flags {
        // RFC 3168 § 6.1.3: in every ACK until a segment with CWR comes.
        if self.ece { Flags::ECE } else { Flags(0) }
    }

    /// `true` if ACKs carry ECE.
    #[inline]
    pub const fn has_ece(&self) -> bool {
        self.ece
    }

    /// `true` if an ACK is to be completed ([`Feedback::complete`]).
    #[inline]
    pub const fn has_extras(&self) -> bool {
        self.extras.is_some()
    }

    /// `true` if the receiver misbehaves.
    #[inline]
    pub const fn misbehaves(&self) -> bool {
        self.misbehaves
    }

    /// `true` if ACKs report data that has not arrived, and perhaps never does.
    pub fn conceals(&self) -> bool {
        let misbehaviour = self.extras.as_ref().and_then(|extras| extras.misbehaviour.as_ref());
        misbehaviour.is_some_and(|misbehaviour| misbehaviour.conceals())
    }

    /// Delays of data, if they are noted.
    pub fn delays(&self) -> Option<&Delays> {
        Some(&self.extras.as_ref()?.delays.as_ref()?.delays)
    }

    /// Counting begins.
    pub fn begin_counting(&mut self) {
        let delays = self.extras.as_mut().and_then(|extras| extras.delays.as_mut());
        if let Some(one_way) = delays {
            one_way.delays.begin_counting();
        }
    }

    /// A SYN arrived, which `reply` answers: echoes what routers wrote into it, if it asked them.
    pub fn on_syn(&mut self, now: Time, segment: &Segment, reply: &mut Segment) {
        let Some(extras) = &mut self.extras else { return };
        if segment.header().is_some_and(|header| header != Header::None) {
            if let Some(policy) = &mut extras.echo {
                policy.on_data(now, segment);
            }
            extras.echo(reply);
        }
        if let Some(misbehaviour) = &mut extras.misbehaviour {
            misbehaviour.arrived(now, segment, true);
            misbehaviour.forge(reply);
        }
    }

    /// Reads CWR, the ECN field and the timestamp of data, `new` if it brings any. Returns `true`
    /// if ACKs carried ECE before a mark of this segment.
    #[inline(always)]
    pub fn on_header(&mut self, segment: &Segment, new: bool, last_ack_sent: u64) -> bool {
        // RFC 7323 § 4.3 (2), § 5.3 R2: echo what will be acknowledged first; no duplicates, and
        // never an older time.
        if new && segment.seq <= last_ack_sent && segment.ts >= self.ts_recent {
            self.ts_recent = segment.ts;
        }
        if segment.flags.has(Flags::CWR) {
            self.ece = false;
        }
        let echoed = self.ece;
        if segment.ecn == Ecn::Ce {
            // After CWR was looked at: a segment with both begins a new episode (RFC 3168
            // § 6.1.3). Not for a duplicate (§ 6.1.5).
            self.ece |= new && self.is_classic();
        }
        echoed
    }

    /// `true` if marks are echoed as RFC 3168 says.
    fn is_classic(&self) -> bool {
        self.extras.as_ref().is_none_or(|extras| extras.echo.is_none())
    }

    /// Data out of order, or any for a receiver that misbehaves, arrived and is not taken in yet.
    pub fn on_arrival(&mut self, now: Time, segment: &Segment, rcv_nxt: u64) {
        let misbehaviour = self.extras.as_mut().and_then(|extras| extras.misbehaviour.as_mut());
        if let Some(misbehaviour) = misbehaviour {
            misbehaviour.arrived(now, segment, segment.end() > rcv_nxt);
        }
    }

    /// Notes what of such data had arrived before (RFC 2883 § 4).
    pub fn note_duplicate(&mut self, segment: &Segment, rcv_nxt: u64, out_of_order: &Ranges) {
        if let Some(dsack) = self.extras.as_mut().and_then(|extras| extras.dsack.as_mut()) {
            dsack.on_segment(segment, rcv_nxt, out_of_order);
        }
    }

    /// Data was taken in. Returns `true` if its echo must not wait.
    #[inline]
    pub fn on_data(&mut self, now: Time, segment: &Segment) -> bool {
        self.reads_each && self.extras.as_mut().is_some_and(|extras| extras.on_data(now, segment))
    }

    /// Completes an ACK that goes after one of all below `from`. Returns `true` if it became
    /// several, which are owed ([`Feedback::owed`]).
    pub fn complete(&mut self, ack: &mut Segment, from: u64) -> bool {
        self.extras.as_mut().is_some_and(|extras| extras.complete(ack, from))
    }

    /// The next ACK that is owed, and `true` if there are more.
    pub fn owed(&mut self) -> Option<(Segment, bool)> {
        self.extras.as_mut()?.misbehaviour.as_mut()?.owes()
    }

    /// Reports in an ACK what arrived twice.
    pub fn report_duplicate(&mut self, ack: &mut Segment) {
        if let Some(extras) = &mut self.extras {
            extras.report_duplicate(ack);
        }
    }

    /// Completes an ACK that reports what had arrived twice before the newest data came.
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

    /// Writes the echo into the ACK that goes now, which its option makes longer.
    fn echo(&mut self, ack: &mut Segment) {
        if let (Some(policy), Body::Ack { echo, .. }) = (&mut self.echo, &mut ack.body) {
            *echo = policy.take();
            ack.wire = ack.wire.saturating_add(policy.bytes_of(*echo));
        }
    }
}
