//! Kernel objects of a loaded controller, and those left after it.

use std::collections::BTreeSet;
use std::thread::sleep;
use std::time::Duration;

use libbpf_rs::query::{
    LinkInfoIter, LinkTypeInfo, MapInfoIter, ProgInfoIter, ProgInfoQueryOptions, ProgramInfo,
};
use libbpf_rs::{MapCore as _, MapFlags};

use crate::machine;

/// Objects by their ids, which the kernel does not reuse soon.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct KernelObjects {
    programs: BTreeSet<u32>,
    maps: BTreeSet<u32>,
    /// Links of tables, interfaces and groups, which run the programs.
    links: BTreeSet<u32>,
}

impl KernelObjects {
    /// Finds the objects of a controller: the programs with its info map, the maps that only they
    /// use, its table, and the links of both.
    pub fn of(name: &str) -> Self {
        let Some(map) = machine::card_map(name) else { return Self::default() };
        let card = map.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY).unwrap().unwrap();
        let map = map.info().unwrap().info.id;
        let at = table_at();
        let table = u32::from_ne_bytes(card[at..at + 4].try_into().unwrap());
        let with_maps = ProgInfoQueryOptions::default().include_map_ids(true);
        let (ours, others): (Vec<_>, Vec<_>) =
            ProgInfoIter::with_query_opts(with_maps).partition(|info| info.map_ids.contains(&map));
        let maps_of =
            |all: &[ProgramInfo]| all.iter().flat_map(|info| info.map_ids.clone()).collect();
        let (all, shared): (BTreeSet<u32>, BTreeSet<u32>) = (maps_of(&ours), maps_of(&others));
        let programs: BTreeSet<u32> = ours.iter().map(|info| info.id).collect();
        let links = LinkInfoIter::default().filter(|link| match &link.info {
            LinkTypeInfo::StructOps(registers) => registers.map_id == table,
            _ => programs.contains(&link.prog_id),
        });
        let links = links.map(|link| link.id).collect();
        let mut maps = &all - &shared;
        maps.extend((table != 0).then_some(table));
        Self { programs, maps, links }
    }

    pub fn is_some(&self) -> bool {
        !self.programs.is_empty()
    }

    pub fn links(&self) -> usize {
        self.links.len()
    }

    /// `true` if no link runs its programs any more, within a few seconds; then only its sockets
    /// do.
    pub fn are_called_by_nobody(&self) -> bool {
        eventually(|| LinkInfoIter::default().all(|link| !self.links.contains(&link.id)))
    }

    /// `true` if none of its objects is left, within a few seconds.
    pub fn are_gone(&self) -> bool {
        eventually(|| {
            ProgInfoIter::default().all(|info| !self.programs.contains(&info.id))
                && MapInfoIter::default().all(|info| !self.maps.contains(&info.id))
                && LinkInfoIter::default().all(|link| !self.links.contains(&link.id))
        })
    }
}

/// Waits up to five seconds for a condition: the kernel frees objects with a delay.
pub fn eventually(mut so: impl FnMut() -> bool) -> bool {
    (0..250).any(|_| {
        let now = so();
        if !now {
            sleep(Duration::from_millis(20));
        }
        now
    })
}

/// Returns the offset in an info map of the id of the table's map (bpf/info_map.h).
fn table_at() -> usize {
    16 + 16 + 4 * setting_words() + 4 + 4
}

/// Returns the offset of the version, which follows the id of the table's map.
pub fn version_at() -> usize {
    table_at() + 4
}

fn setting_words() -> usize {
    let card = include_str!("../../bpf/info_map.h");
    let words = card.lines().find_map(|line| line.strip_prefix("#define SETTING_WORDS "));
    words.unwrap().trim().parse().unwrap()
}
