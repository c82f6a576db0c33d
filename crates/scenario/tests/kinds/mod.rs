//! Lists of kinds in messages, which grow with each kind that is added.

/// The text with each list of all kinds of a part replaced by `all of PART`.
pub fn named(text: &str) -> String {
    let lists = cwnd_scenario::kinds().into_iter().map(|(part, kinds)| {
        let names: Vec<_> = kinds.iter().map(|(name, ..)| format!("`{name}`")).collect();
        (part, format!("there are {}", names.join(", ")))
    });
    let lists: Vec<_> = lists.collect();
    let lines = text.split('\n').map(|line| {
        let list = lists.iter().find(|(_, list)| line.ends_with(list));
        list.map_or(line.to_owned(), |(part, list)| {
            line.replace(list, &format!("there are (every {part})"))
        })
    });
    lines.collect::<Vec<_>>().join("\n")
}
