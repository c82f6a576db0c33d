//! "Did you mean …?"

/// The candidate that `wrong` was probably meant to be.
pub(crate) fn closest<'a>(
    wrong: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    // A third of a word may be wrong, as in rustc's own suggestions; of a short one, one letter.
    let length = wrong.chars().count();
    let most = (length / 3).max(1);
    let lower = wrong.to_lowercase().replace('-', "_");
    candidates
        .into_iter()
        .take(MOST_CANDIDATES)
        // Each letter more or less is a slip, and to count those of a long word takes long.
        .filter(|c| c.chars().count().abs_diff(length) <= most)
        .map(|c| (distance(&lower, &c.to_lowercase().replace('-', "_")), c))
        .filter(|&(d, _)| d <= most)
        .min_by_key(|&(d, _)| d)
        .map(|(_, c)| c)
}

/// The names as a list in prose, [`MOST_LISTED`] at most.
pub(crate) fn list<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let mut names = names.into_iter();
    let mut quoted: Vec<String> =
        names.by_ref().take(MOST_LISTED).map(|n| format!("`{n}`")).collect();
    let more = names.count();
    if more > 0 {
        quoted.push(format!("and {more} more"));
    }
    quoted.join(", ")
}

/// Of more names nobody finds the one that was meant.
const MOST_LISTED: usize = 40;
/// So many candidates are looked at.
const MOST_CANDIDATES: usize = 1000;

/// Insertions, deletions, substitutions and swaps of neighbours that turn one word into the other (optimal string
/// alignment).
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let substituted = above[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = substituted.min(above[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(before[j - 2] + 1);
            }
            row.push(best);
        }
        before = core::mem::replace(&mut above, row);
    }
    above[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_finger_finds_its_word() {
        assert_eq!(closest("beta_enc", ["beta", "beta_ecn"]), Some("beta_ecn"));
        assert_eq!(closest("Cubic", ["newreno", "cubic"]), Some("cubic"));
        assert_eq!(closest("fq_codel", ["codel", "fq-codel"]), Some("fq-codel"));
        assert_eq!(closest("rt", ["rtt", "count"]), Some("rtt"));
        assert_eq!(closest("bandwidth", ["rate", "delay"]), None);
    }

    #[test]
    fn a_long_list_is_counted() {
        let names: Vec<String> = (0..45).map(|i| format!("n{i}")).collect();
        let listed = list(names.iter().map(String::as_str));
        assert!(listed.starts_with("`n0`, `n1`") && listed.ends_with("`n39`, and 5 more"));
    }

    #[test]
    fn a_swap_of_neighbours_is_one_slip() {
        assert_eq!(distance("enc", "ecn"), 1);
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
    }
}
