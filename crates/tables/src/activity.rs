use std::borrow::Cow;

/// How often each mechanism acted, over the whole run: names that the mechanisms themselves gave, in the order in which they
/// were first heard.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Activity(Vec<(Cow<'static, str>, u64)>);

impl Activity {
    /// So often more. A name that is told with zero is known from then on.
    pub fn add(&mut self, name: impl Into<Cow<'static, str>>, count: u64) {
        let name = name.into();
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, sum)) => *sum += count,
            None => self.0.push((name, count)),
        }
    }

    /// What `others` tell, too, apart from what never happened.
    pub fn extend_with(&mut self, others: &Self) {
        for (name, count) in others.iter().filter(|&(_, count)| count > 0) {
            self.add(name.to_owned(), count);
        }
    }

    /// How often the mechanism of this name acted; `None` if nobody told of it.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<u64> {
        self.0.iter().find(|(known, _)| known == name).map(|&(_, count)| count)
    }

    /// All of them.
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
