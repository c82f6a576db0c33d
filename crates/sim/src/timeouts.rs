//! Counts of timeouts by the true fate of the segment, which no sender knows.

use core::ops::AddAssign;

/// True fate of a segment when its retransmission timer expired.
///
/// A timeout with RTO < RTT, which breaks the implicit packet conservation principle (Mondal &
/// Kuzmanovic 2008, § 2.3), has [`Fate::UnderWay`] or [`Fate::AckLate`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Every transmission of the segment was lost.
    Lost,
    /// Not delivered, but not every transmission was lost: one was on its way or in a queue.
    UnderWay,
    /// Delivered, and no ACK of it was lost: the ACK was on its way or not sent yet.
    AckLate,
    /// Delivered, but an ACK of it was lost.
    AckLost,
}

/// Numbers of timeouts with each fate other than [`Fate::Lost`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fates {
    /// Timeouts with [`Fate::UnderWay`].
    pub under_way: u64,
    /// Timeouts with [`Fate::AckLate`].
    pub ack_late: u64,
    /// Timeouts with [`Fate::AckLost`].
    pub ack_lost: u64,
}

/// Fate counts over the whole run, and at the end of the warm-up.
#[derive(Clone, Copy, Debug, Default)]
pub struct FateCounts {
    /// Counts since the start of the run.
    pub total: Fates,
    /// Counts at the end of the warm-up; zero before.
    pub at_warmup_end: Fates,
}

impl AddAssign<&Self> for Fates {
    fn add_assign(&mut self, other: &Self) {
        self.under_way += other.under_way;
        self.ack_late += other.ack_late;
        self.ack_lost += other.ack_lost;
    }
}

impl FateCounts {
    /// Adds the counts of the connection's other direction.
    pub fn add_all(&mut self, other: &Self) {
        self.total += &other.total;
        self.at_warmup_end += &other.at_warmup_end;
    }

    /// Counts one timeout; [`Fate::Lost`] is not counted.
    pub const fn add(&mut self, fate: Fate) {
        let Fates { under_way, ack_late, ack_lost } = &mut self.total;
        match fate {
            Fate::Lost => {}
            Fate::UnderWay => *under_way += 1,
            Fate::AckLate => *ack_late += 1,
            Fate::AckLost => *ack_lost += 1,
        }
    }

    /// Counts since the end of the warm-up.
    pub const fn counted(&self) -> Fates {
        let Self { total, at_warmup_end } = self;
        Fates {
            under_way: total.under_way - at_warmup_end.under_way,
            ack_late: total.ack_late - at_warmup_end.ack_late,
            ack_lost: total.ack_lost - at_warmup_end.ack_lost,
        }
    }
}
