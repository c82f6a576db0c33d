//! Suggestions for misspelt names: "did you mean …?"

/// Returns the candidate that `wrong` was probably meant to be.
pub fn closest<'a>(wrong: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wrong: Vec<char> = folded(wrong).collect();
    // A third of a word may be wrong, as in rustc's suggestions; in a short word, one letter.
    let max_distance = (wrong.len() / 3).max(1);
    let mut distance = EditDistance::default();
    candidates
        .into_iter()
        .take(MAX_CANDIDATES)
        // The difference in length is a lower bound of the distance, and cheap to compute.
        .filter(|c| c.chars().count().abs_diff(wrong.len()) <= max_distance)
        .map(|c| (distance.between(&wrong, c), c))
        .filter(|&(distance, _)| distance <= max_distance)
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, c)| c)
}

/// Iterates over the letters in folded form: neither case nor the kind of dash counts as an error.
fn folded(word: &str) -> impl Iterator<Item = char> {
    word.chars().flat_map(char::to_lowercase).map(|c| if c == '-' { '_' } else { c })
}

/// Formats names as a list in prose, at most `MAX_LISTED` of them.
pub fn list<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let mut names = names.into_iter();
    let mut quoted: Vec<String> =
        names.by_ref().take(MAX_LISTED).map(|n| format!("`{n}`")).collect();
    let more = names.count();
    if more > 0 {
        quoted.push(format!("and {more} more"));
    }
    quoted.join(", ")
}

/// Limit on the names of a list.
const MAX_LISTED: usize = 40;
/// Limit on the candidates that are compared.
const MAX_CANDIDATES: usize = 1000;

/// Edit distance of two words: insertions, deletions, substitutions and transpositions of
/// neighbours (optimal string alignment).
#[derive(Default)]
struct EditDistance {
    other: Vec<char>,
    /// The last three rows of the distance table; the last of them is being filled.
    rows: [Vec<usize>; 3],
}

impl EditDistance {
    fn between(&mut self, a: &[char], b: &str) -> usize {
        self.other.clear();
        self.other.extend(folded(b));
        let (b, [before, above, row]) = (&self.other, &mut self.rows);
        above.clear();
        above.extend(0..=b.len());
        for i in 1..=a.len() {
            row.clear();
            row.push(i);
            for j in 1..=b.len() {
                let substituted = above[j - 1] + usize::from(a[i - 1] != b[j - 1]);
                let mut best = substituted.min(above[j] + 1).min(row[j - 1] + 1);
                if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                    best = best.min(before[j - 2] + 1);
                }
                row.push(best);
            }
            core::mem::swap(before, above);
            core::mem::swap(above, row);
        }
        above[b.len()]
    }
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
        let mut distance = EditDistance::default();
        let mut distance = |a: &str, b: &str| distance.between(&a.chars().collect::<Vec<_>>(), b);
        assert_eq!(distance("enc", "ecn"), 1);
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
    }
}
