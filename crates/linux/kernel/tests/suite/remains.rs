//! Objects in the kernel of a loaded controller, and those left after it.

use std::collections::BTreeSet;
use std::thread::sleep;
use std::time::Duration;

use libbpf_rs::query::{
    LinkInfoIter, LinkTypeInfo, MapInfoIter, ProgInfoIter, ProgInfoQueryOptions, ProgramInfo,
};
use libbpf_rs::{MapCore as _, MapFlags};

use crate::machine;

/// By their numbers, which the kernel does not give again for long.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Remains {
    programs: BTreeSet<u32>,
    maps: BTreeSet<u32>,
    /// What calls the programs: links of tables, interfaces and groups.
    links: BTreeSet<u32>,
}

impl Remains {
    /// All that belongs to the controller of that name: the maps of the programs that count on its card, and those programs.
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

    /// Whether nothing calls it any more, after a moment: then only sockets that have it do.
    pub fn are_called_by_nobody(&self) -> bool {
        soon(|| LinkInfoIter::default().all(|link| !self.links.contains(&link.id)))
    }

    /// Whether none of it is there, after a moment.
    pub fn are_gone(&self) -> bool {
        soon(|| {
            ProgInfoIter::default().all(|info| !self.programs.contains(&info.id))
                && MapInfoIter::default().all(|info| !self.maps.contains(&info.id))
                && LinkInfoIter::default().all(|link| !self.links.contains(&link.id))
        })
    }
}

/// Whether something becomes so within some seconds: the kernel takes its time.
pub fn soon(mut so: impl FnMut() -> bool) -> bool {
    (0..250).any(|_| {
        let now = so();
        if !now {
            sleep(Duration::from_millis(20));
        }
        now
    })
}

/// Where a card has the number of the table's map, and its version (bpf/card.h).
fn table_at() -> usize {
    16 + 16 + 4 * setting_words() + 4 + 4
}

/// See there.
pub fn version_at() -> usize {
    table_at() + 4
}

fn setting_words() -> usize {
    let card = include_str!("../../bpf/card.h");
    let words = card.lines().find_map(|line| line.strip_prefix("#define SETTING_WORDS "));
    words.unwrap().trim().parse().unwrap()
}
