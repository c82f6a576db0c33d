//! Probes: recorded inputs and reactions of Linux 6.18 (scripts/record_probes.py), compared with
//! the endpoint, preset `linux`.
//!
//! `cargo test -p cwnd-tcp --test probes -- --nocapture` prints the table. The page
//! crates/tcp/tests/packetdrill/README.md says what is compared.

#[cfg(test)]
mod player;
#[cfg(test)]
mod recording;

#[cfg(test)]
mod suite {
    use std::collections::BTreeMap;
    use std::fmt::Write as _;

    use crate::player::{Difference, play};
    use crate::recording::read;

    /// Number of probes that are equal; it must not fall.
    const EQUAL: usize = 380;

    const LINUX: &str = include_str!("linux-6.18.txt");

    /// Formats the number of equal probes by family, then each probe that differs.
    fn table(rows: &[(String, Vec<Difference>)]) -> String {
        let mut families: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
        for (name, differences) in rows {
            let family = name.split('/').next().unwrap_or(name);
            let (equal, all) = families.entry(family).or_default();
            *equal += usize::from(differences.is_empty());
            *all += 1;
        }
        let mut table = String::new();
        for (family, (equal, all)) in families {
            let _ = writeln!(table, "{family}: {equal} of {all}");
        }
        let equal = rows.iter().filter(|(_, differences)| differences.is_empty()).count();
        let _ = writeln!(table, "equal: {equal} of {}", rows.len());
        let mut by_cause: BTreeMap<&str, String> = BTreeMap::new();
        for (name, differences) in rows.iter().filter(|(_, differences)| !differences.is_empty()) {
            let cause = cause(name);
            let cause =
                cause.unwrap_or_else(|| panic!("causes.txt does not say why {name} differs"));
            let told = by_cause.entry(cause).or_default();
            for Difference { event, told: happened, of, kernel, endpoint } in differences {
                let _ = writeln!(
                    told,
                    "  {name}: event {event}, {happened}: {of}: Linux {kernel}, here {endpoint}"
                );
            }
        }
        for (cause, told) in by_cause {
            let _ = write!(table, "{cause}\n{told}");
        }
        table
    }

    const CAUSES: &str = include_str!("causes.txt");

    /// Returns the known cause of a probe's difference.
    fn cause(name: &str) -> Option<&'static str> {
        let lines = CAUSES.lines().filter(|line| !line.starts_with('#'));
        let mut causes = lines.filter_map(|line| line.split_once(": "));
        causes.find(|(beginning, _)| name.starts_with(beginning)).map(|(_, cause)| cause)
    }

    const GOLDEN: &str = include_str!("differences.txt");

    /// Compares the table with the golden file; `UPDATE=1` rewrites it.
    #[test]
    fn what_the_endpoint_does_about_the_probes_is_known() {
        let probes = read(LINUX).unwrap();
        let rows: Vec<_> = probes.iter().map(|probe| (probe.name.clone(), play(probe))).collect();
        let table = table(&rows);
        if std::env::var_os("UPDATE").is_some() {
            let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/probes/differences.txt");
            std::fs::write(golden, &table).unwrap();
        } else {
            assert_eq!(
                table, GOLDEN,
                "UPDATE=1 writes crates/tcp/tests/probes/differences.txt anew"
            );
        }
        assert!(probes.len() >= 170, "only {} probes", probes.len());
        let equal = rows.iter().filter(|(_, differences)| differences.is_empty()).count();
        assert!(equal >= EQUAL, "only {equal} of {} are equal", probes.len());
    }
}
