//! Segmentation offload: chunks of segments that wait for each other (McCullagh 2008 § 5.3;
//! `tcp_tso_should_defer`), and bursts that Linux hands down as one and ends with PSH, which its
//! receivers acknowledge at once (tcp_output.c).

use cwnd_quantity::{Duration, Time};

use crate::tso::{Params, TsoSizing};

/// State of segmentation offload.
#[derive(Clone, Debug)]
pub(super) struct Tso {
    burst: Burst,
    /// The chunk that is sent or waited for.
    chunks: Option<Box<Chunks>>,
}

/// The chunk that is being sent, or waited for.
#[derive(Clone, Debug)]
struct Chunks {
    most: u64,
    defer: Option<Duration>,
    part: u64,
    sizing: TsoSizing,
    /// Segments of the chunk that are still to go, at this instant.
    left: u64,
    at: Time,
    /// Bytes of it.
    size: u64,
    /// Since when data waits that may go; `Time::NEVER` if none does.
    since: Time,
}

impl Chunks {
    fn new(params: &Params) -> Option<Box<Self>> {
        let most = params.tso?;
        Some(Box::new(Self {
            most: most.0,
            defer: params.tso_defer,
            part: u64::from(params.tso_window_part),
            sizing: params.tso_sizing,
            left: 0,
            at: Time::NEVER,
            size: 0,
            since: Time::NEVER,
        }))
    }

    /// Time when what waits goes in any case.
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
    /// Segments of it that are still to go.
    left: u32,
    /// `true` if it is more than one segment.
    several: bool,
}

/// Room for new data, bytes.
pub(super) struct Room {
    pub mss: u64,
    pub cwnd: u64,
    /// Room that both windows leave.
    pub windows: u64,
    pub unsent: u64,
    /// Size of a chunk by the rate.
    pub largest: u64,
    /// `true` if nothing is outstanding.
    pub idle: bool,
    /// `true` if the sender may wait for a chunk to be full.
    pub patient: bool,
    /// Wire bytes of a segment.
    pub wire: u64,
}

/// Decision about a segment that the windows let go.
pub(super) enum Chunk {
    Goes,
    /// It goes, and ends a chunk of so many bytes that is paced.
    Ends(u64),
    /// It waits for its chunk to be full, at most until then.
    Waits(Time),
}

impl Tso {
    pub fn new(params: &Params) -> Self {
        Self { burst: Burst::default(), chunks: Chunks::new(params) }
    }

    /// A new segment may go: as part of a chunk that is under way, or of one that is full
    /// (`tcp_tso_should_defer`).
    pub fn take(&mut self, now: Time, room: &Room) -> Chunk {
        let Some(chunks) = &mut self.chunks else { return Chunk::Goes };
        let mss = room.mss;
        if chunks.left == 0 || chunks.at != now {
            let most = match chunks.sizing {
                TsoSizing::Full => chunks.most,
                TsoSizing::Rate | TsoSizing::Unpaced => chunks.most.min(room.largest),
            };
            let most = (most / mss).max(1) * mss;
            let full = most.min(room.cwnd / chunks.part).max(mss);
            // Nothing comes that would make it fuller, or it has waited long enough.
            let alone = room.idle || room.unsent <= room.windows;
            if room.windows < full && !alone && room.patient {
                chunks.since = chunks.since.min(now);
                if now < chunks.until() {
                    return Chunk::Waits(chunks.until());
                }
            }
            let size = most.min(room.windows).min(room.unsent).max(1);
            (chunks.left, chunks.at, chunks.size) = (size.div_ceil(mss), now, 0);
            // Of what is not the last a chunk has whole segments.
            if size < room.unsent {
                chunks.left = (size / mss).max(1);
            }
            chunks.since = Time::NEVER;
        }
        chunks.left -= 1;
        chunks.size += room.wire;
        let ends = chunks.sizing == TsoSizing::Rate && chunks.left == 0;
        if ends { Chunk::Ends(chunks.size) } else { Chunk::Goes }
    }

    /// `true` if data that may go waits for its chunk to be full.
    pub fn waits(&self) -> bool {
        self.chunks.as_ref().is_some_and(|chunks| chunks.since != Time::NEVER)
    }

    /// Time when data that waits for a chunk goes in any case.
    pub fn deferred_until(&self) -> Time {
        self.chunks.as_ref().map_or(Time::NEVER, |chunks| chunks.until())
    }

    /// `true` if the next segment begins a burst, `anew` at its instant.
    #[inline]
    pub const fn begins_burst(&self, anew: bool) -> bool {
        self.burst.left == 0 || anew
    }

    /// A burst of so many segments begins.
    #[inline]
    pub const fn begin_burst(&mut self, segments: u32) {
        self.burst = Burst { left: segments, several: segments > 1 };
    }

    /// A segment goes. Returns `true` if it ends a burst of several.
    #[inline]
    pub const fn ends_burst(&mut self) -> bool {
        self.burst.left -= 1;
        self.burst.left == 0 && self.burst.several
    }
}
