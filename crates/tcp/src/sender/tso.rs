//! Segmentation offload: chunks of segments that wait to be full (McCullagh 2008 § 5.3;
//! `tcp_tso_should_defer`). Linux hands a burst down as one and ends it with PSH, which its
//! receivers acknowledge at once (tcp_output.c).

use cwnd_quantity::{Duration, Time};

use crate::tso::{Params, TsoSizing};

/// State of segmentation offload.
#[derive(Clone, Debug)]
pub(super) struct Tso {
    burst: Burst,
    /// The current chunk; `None` without TSO.
    chunks: Option<Box<Chunks>>,
}

/// The chunk that is being sent or deferred.
#[derive(Clone, Debug)]
struct Chunks {
    most: u64,
    defer: Option<Duration>,
    part: u64,
    sizing: TsoSizing,
    /// Segments of the chunk that are still to be sent at this instant.
    left: u64,
    at: Time,
    /// Wire bytes of the chunk sent so far.
    size: u64,
    /// Time since which a chunk is deferred; `Time::NEVER` if none is.
    since: Time,
}

impl Chunks {
    fn new(params: &Params) -> Option<Box<Self>> {
        let most = params.tso?;
        Some(Box::new(Self {
            most: most.0,
            defer: params.tso_defer,
            part: u64::from(params.tso_win_divisor),
            sizing: params.tso_sizing,
            left: 0,
            at: Time::NEVER,
            size: 0,
            since: Time::NEVER,
        }))
    }

    /// Time at which a deferred chunk is sent in any case.
    fn until(&self) -> Time {
        match self.defer {
            Some(bound) if self.since != Time::NEVER => self.since + bound,
            _ => Time::NEVER,
        }
    }
}

/// The burst that is being sent.
#[derive(Clone, Copy, Debug, Default)]
struct Burst {
    /// Segments of the burst that are still to be sent.
    left: u32,
    /// `true` if the burst has more than one segment.
    several: bool,
}

/// Room for new data, in bytes.
pub(super) struct Room {
    pub mss: u64,
    pub cwnd: u64,
    /// Room that the congestion and the receive window leave.
    pub windows: u64,
    pub unsent: u64,
    /// Maximum chunk by the pacing rate.
    pub largest: u64,
    /// `true` if nothing is outstanding.
    pub idle: bool,
    /// `true` if the sender may defer the chunk until it is full.
    pub may_defer: bool,
    /// Wire bytes of a full segment.
    pub wire: u64,
}

/// Decision about a segment that the windows allow.
pub(super) enum Chunk {
    Send,
    /// The segment is sent, and ends a paced chunk of so many wire bytes.
    SendLast(u64),
    /// The segment is deferred until its chunk is full, at most until this time.
    Defer(Time),
}

impl Tso {
    pub fn new(params: &Params) -> Self {
        Self { burst: Burst::default(), chunks: Chunks::new(params) }
    }

    /// Decides about a new segment: it is sent in the current chunk, or in a new one that is full
    /// or waits no longer (`tcp_tso_should_defer`).
    pub fn take(&mut self, now: Time, room: &Room) -> Chunk {
        let Some(chunks) = &mut self.chunks else { return Chunk::Send };
        let mss = room.mss;
        if chunks.left == 0 || chunks.at != now {
            let most = match chunks.sizing {
                TsoSizing::Full => chunks.most,
                TsoSizing::Rate | TsoSizing::Unpaced => chunks.most.min(room.largest),
            };
            let most = (most / mss).max(1) * mss;
            let full = most.min(room.cwnd / chunks.part).max(mss);
            // Waiting would not fill it: no ACK is due, or it takes all unsent data.
            let alone = room.idle || room.unsent <= room.windows;
            if room.windows < full && !alone && room.may_defer {
                chunks.since = chunks.since.min(now);
                if now < chunks.until() {
                    return Chunk::Defer(chunks.until());
                }
            }
            let size = most.min(room.windows).min(room.unsent).max(1);
            (chunks.left, chunks.at, chunks.size) = (size.div_ceil(mss), now, 0);
            // A chunk that is not the last has whole segments only.
            if size < room.unsent {
                chunks.left = (size / mss).max(1);
            }
            chunks.since = Time::NEVER;
        }
        chunks.left -= 1;
        chunks.size += room.wire;
        let ends = chunks.sizing == TsoSizing::Rate && chunks.left == 0;
        if ends { Chunk::SendLast(chunks.size) } else { Chunk::Send }
    }

    /// `true` if a chunk is deferred.
    pub fn waits(&self) -> bool {
        self.chunks.as_ref().is_some_and(|chunks| chunks.since != Time::NEVER)
    }

    /// Time at which a deferred chunk is sent in any case.
    pub fn deferred_until(&self) -> Time {
        self.chunks.as_ref().map_or(Time::NEVER, |chunks| chunks.until())
    }

    /// `true` if the next segment starts a burst; `anew` if nothing was sent at this instant.
    #[inline]
    pub const fn begins_burst(&self, anew: bool) -> bool {
        self.burst.left == 0 || anew
    }

    /// Starts a burst of `segments`.
    #[inline]
    pub const fn begin_burst(&mut self, segments: u32) {
        self.burst = Burst { left: segments, several: segments > 1 };
    }

    /// Counts a segment that is sent. Returns `true` if it ends a burst of several.
    #[inline]
    pub const fn ends_burst(&mut self) -> bool {
        self.burst.left -= 1;
        self.burst.left == 0 && self.burst.several
    }
}
