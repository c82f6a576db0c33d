//! The truth about timeouts, which no sender knows: what had become of the segment that a timer expired for.

use core::ops::AddAssign;

/// What had become of it. RTO < RTT, the implicit packet conservation principle broken (Mondal & Kuzmanovic 2008, § 2.3), is
/// [`Fate::UnderWay`] and [`Fate::AckLate`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// All that was sent of it was lost.
    Lost,
    /// It had not arrived, and not all of it was lost: a copy was on its way or waited in a queue.
    UnderWay,
    /// It had arrived. No ACK of it was lost: one was on its way, or not sent yet.
    AckLate,
    /// It had arrived, and an ACK of it was lost.
    AckLost,
}

/// How often each but the first was so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fates {
    /// [`Fate::UnderWay`].
    pub under_way: u64,
    /// [`Fate::AckLate`].
    pub ack_late: u64,
    /// [`Fate::AckLost`].
    pub ack_lost: u64,
}

/// The same over the whole run, and what it was when the warm-up ended.
#[derive(Clone, Copy, Debug, Default)]
pub struct Told {
    /// Until now.
    pub total: Fates,
    /// Until the warm-up ended.
    pub before: Fates,
}

impl AddAssign<&Self> for Fates {
    fn add_assign(&mut self, other: &Self) {
        self.under_way += other.under_way;
        self.ack_late += other.ack_late;
        self.ack_lost += other.ack_lost;
    }
}

impl Told {
    /// Adds those of another half of the connection.
    pub fn add_all(&mut self, other: &Self) {
        self.total += &other.total;
        self.before += &other.before;
    }

    /// One more.
    pub const fn add(&mut self, fate: Fate) {
        let Fates { under_way, ack_late, ack_lost } = &mut self.total;
        match fate {
            Fate::Lost => {}
            Fate::UnderWay => *under_way += 1,
            Fate::AckLate => *ack_late += 1,
            Fate::AckLost => *ack_lost += 1,
        }
    }

    /// What came after the warm-up.
    pub const fn counted(&self) -> Fates {
        let Self { total, before } = self;
        Fates {
            under_way: total.under_way - before.under_way,
            ack_late: total.ack_late - before.ack_late,
            ack_lost: total.ack_lost - before.ack_lost,
        }
    }
}
