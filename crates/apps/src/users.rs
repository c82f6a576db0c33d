//! Users with several connections: one object a connection, several at a time, page after page.

use std::sync::Arc;

use cwnd_quantity::{CountDist, Duration, DurationDist, Rng};

use crate::arrivals::{Arrival, Process};

/// Habits of each user of a group.
#[derive(Clone, Debug, PartialEq)]
pub struct Habits {
    /// Number of pages, drawn for each user; `None` for a user without end.
    pub pages: Option<CountDist>,
    /// Number of objects, drawn for each page.
    pub objects: CountDist,
    /// Maximum number of open connections; `None` for no limit.
    pub parallel: Option<u32>,
    /// Time from when a further connection of a page is possible until it opens.
    pub object_gap: DurationDist,
    /// Time from the end of a page's last connection to the first connection of the next page.
    pub reading: DurationDist,
}

/// A user in progress.
///
/// It is called when one of its connections opens and when one ends. A call that schedules the next
/// one returns the time until then.
#[derive(Clone, Debug)]
pub struct User {
    habits: Arc<Habits>,
    /// Pages to come after this one; `None` without end. Drawn at the first connection.
    pages: Option<u64>,
    /// Objects of this page that have no connection yet.
    objects: u64,
    /// Number of open connections.
    open: u32,
    started: bool,
    /// `true` if the next connection is scheduled.
    due: bool,
}

impl User {
    /// Creates a user whose first connection opens now.
    #[must_use]
    pub const fn new(habits: Arc<Habits>) -> Self {
        Self { habits, pages: None, objects: 0, open: 0, started: false, due: true }
    }

    /// Schedules the next connection, if its time is known now.
    fn schedule_next(&mut self, rng: &mut Rng) -> Option<Arrival> {
        let room = self.habits.parallel.is_none_or(|most| self.open < most);
        let pause = match (self.objects, self.open, self.pages) {
            (1.., _, _) if room => self.habits.object_gap.sample(rng),
            (0, 0, None | Some(1..)) => self.habits.reading.sample(rng),
            _ => return None,
        };
        self.due = true;
        // At least 1 ns, so that a user without end does not open connections forever at one
        // instant.
        let endless = self.habits.pages.is_none();
        Some(Arrival::after(if endless { pause.max(Duration(1)) } else { pause }))
    }
}

impl Process for User {
    /// Handles the opening of a connection.
    fn next(&mut self, rng: &mut Rng) -> Option<Arrival> {
        if !self.started {
            self.started = true;
            // Counts the first page, too, which begins below.
            self.pages = self.habits.pages.as_ref().map(|pages| pages.sample(rng));
        }
        if self.objects == 0 {
            self.pages = self.pages.map(|pages| pages.saturating_sub(1));
            self.objects = self.habits.objects.sample(rng);
        }
        (self.objects, self.open, self.due) = (self.objects - 1, self.open + 1, false);
        self.schedule_next(rng)
    }

    /// Handles the end of a connection, complete or given up.
    fn on_end(&mut self, rng: &mut Rng) -> Option<Arrival> {
        self.open = self.open.saturating_sub(1);
        if self.due { None } else { self.schedule_next(rng) }
    }

    fn awaits_ends(&self) -> bool {
        true
    }

    fn is_done(&self) -> bool {
        !self.due && self.open == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a user whose connections last `each`; returns the times at which they open.
    fn play(habits: Habits, each: u64) -> Vec<u64> {
        let mut rng = Rng::named(1, "user");
        let mut user = User::new(Arc::new(habits));
        let (mut opened, mut open) = (Vec::new(), Vec::<u64>::new());
        let mut due = Some(0_u64);
        while opened.len() < 1000 {
            let ends = open.first().copied();
            let (now, heard) = match (due, ends) {
                (Some(at), end) if end.is_none_or(|end| at <= end) => {
                    opened.push(at);
                    open.push(at + each);
                    due = None;
                    (at, user.next(&mut rng))
                }
                (_, Some(end)) => {
                    open.remove(0);
                    (end, user.on_end(&mut rng))
                }
                (Some(_) | None, None) => break,
            };
            due = heard.map(|next| now + next.gap.0).or(due);
            assert_eq!(user.is_done(), due.is_none() && open.is_empty());
        }
        opened
    }

    fn habits(pages: u64, objects: u64, parallel: Option<u32>) -> Habits {
        Habits {
            pages: Some(CountDist::constant(pages)),
            objects: CountDist::constant(objects),
            parallel,
            object_gap: DurationDist::constant(Duration(3)),
            reading: DurationDist::constant(Duration(100)),
        }
    }

    #[test]
    fn one_at_a_time_the_next_waits_for_the_end_and_the_gap() {
        assert_eq!(play(habits(2, 3, Some(1)), 10), [0, 13, 26, 136, 149, 162]);
    }

    #[test]
    fn without_a_limit_all_objects_of_a_page_open_a_gap_apart() {
        assert_eq!(play(habits(2, 3, None), 10), [0, 3, 6, 116, 119, 122]);
    }

    #[test]
    fn several_at_a_time_leave_room_when_the_first_is_over() {
        assert_eq!(play(habits(1, 4, Some(2)), 10), [0, 3, 13, 16]);
    }

    #[test]
    fn a_user_without_end_goes_on() {
        let endless = Habits { pages: None, ..habits(1, 1, Some(1)) };
        assert_eq!(play(endless, 10)[..3], [0, 110, 220]);
    }
}
