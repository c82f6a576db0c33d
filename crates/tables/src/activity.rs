use std::borrow::Cow;

/// Counters of all mechanisms over the whole run, in order of first appearance. The mechanisms
/// choose the names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Activity(Vec<(Cow<'static, str>, u64)>);

impl Activity {
    /// Adds to the counter with this name; a new name is kept even with count 0.
    pub fn add(&mut self, name: impl Into<Cow<'static, str>>, count: u64) {
        let name = name.into();
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, sum)) => *sum += count,
            None => self.0.push((name, count)),
        }
    }

    /// Adds the counters of `others` that are not zero.
    pub fn extend_with(&mut self, others: &Self) {
        for (name, count) in others.iter().filter(|&(_, count)| count > 0) {
            self.add(name.to_owned(), count);
        }
    }

    /// Value of the counter with this name; `None` if no mechanism has named it.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<u64> {
        self.0.iter().find(|(known, _)| known == name).map(|&(_, count)| count)
    }

    /// Names and values of all counters.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        self.0.iter().map(|(name, count)| (&**name, *count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_one_name_add_up_wherever_they_come_from() {
        let mut activity = Activity::default();
        for (name, count) in [("marks", 2), ("drops", 0), ("marks", 3), ("drops", 1)] {
            activity.add(name, count);
        }
        let mut others = Activity::default();
        others.add("quenches", 0);
        others.add(format!("drops_{}", "tail"), 4);
        activity.extend_with(&others);
        let all: Vec<_> = activity.iter().collect();
        assert_eq!(all, [("marks", 5), ("drops", 1), ("drops_tail", 4)]);
        assert_eq!((activity.get("drops"), activity.get("quenches")), (Some(1), None));
    }
}
