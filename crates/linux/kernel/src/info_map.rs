//! The info map of a loaded controller: its identity, settings and counters. It is a kernel map, so
//! that any privileged process finds it, whichever process loaded the controller.

use std::os::fd::{AsFd as _, AsRawFd as _};
use std::time::Duration;
use std::{fs, ptr};

use libbpf_rs::query::{MapInfoIter, ProgInfoIter, ProgInfoQueryOptions};
use libbpf_rs::{AsRawLibbpf as _, MapCore as _, MapFlags, MapHandle, MapType, Object, libbpf_sys};
use serde_json::{Map, Value, json};

use crate::error::Error;
use crate::family::{COUNTER_WORDS, Controller, SETTING_WORDS, Words};
use crate::name::{self, NAME_BYTES};
use crate::settings;

/// Name of the info map in the kernel (bpf/info_map.h).
pub const MAP: &str = "cwnd_card";
/// Version of the layout below; maps of other versions are not read.
const VERSION: u32 = 4;
/// Size of `struct controller_info` of bpf/info_map.h, bytes.
pub const BYTES: usize = AFTER_SETTINGS + 4 * 4 + 8 * COUNTER_WORDS;
const AFTER_SETTINGS: usize = 2 * NAME_BYTES + 4 * SETTING_WORDS;

/// Contents of an info map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControllerInfo {
    /// Name under which sockets select the controller.
    pub name: String,
    /// Algorithm of the controller.
    pub controller: Controller,
    /// Settings, in the order of its family; the text of a user's ([`words`]).
    pub settings: Words,
    /// Flags in the kernel's table (`TCP_CONG_…`).
    pub flags: u32,
    /// Process that loaded the controller.
    pub pid: u32,
    /// Id of the map that is its table of operations; 0 if it has none.
    pub table: u32,
    /// Counters, in the order of its family.
    pub counters: [u64; COUNTER_WORDS],
}

impl ControllerInfo {
    /// Returns the bytes of the map.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(BYTES);
        for text in [&self.name, self.controller.name()] {
            let mut padded = text.as_bytes().to_vec();
            padded.resize(NAME_BYTES, 0);
            bytes.extend(padded);
        }
        let rest = [self.flags, self.pid, self.table, VERSION];
        bytes.extend(self.settings.iter().chain(&rest).flat_map(|word| word.to_ne_bytes()));
        bytes.extend(self.counters.iter().flat_map(|count| count.to_ne_bytes()));
        bytes
    }

    /// Reads the bytes of a map; `None` if they are not of this version, or name no controller of
    /// it.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<Self> {
        if bytes.len() != BYTES {
            return None;
        }
        let text = |at: usize| {
            let field = &bytes[at..at + NAME_BYTES];
            let end = field.iter().position(|b| *b == 0)?;
            String::from_utf8(field[..end].to_vec()).ok()
        };
        let word = |at: usize| bytes[at..at + 4].try_into().map_or(0, u32::from_ne_bytes);
        let count = |at: usize| bytes[at..at + 8].try_into().map_or(0, u64::from_ne_bytes);
        let [flags, pid, table, version] = [0, 4, 8, 12].map(|at| word(AFTER_SETTINGS + at));
        (version == VERSION).then_some(())?;
        Some(Self {
            name: text(0)?,
            controller: Controller::of(&text(NAME_BYTES)?)?,
            settings: std::array::from_fn(|i| word(2 * NAME_BYTES + 4 * i)),
            flags,
            pid,
            table,
            counters: std::array::from_fn(|i| count(AFTER_SETTINGS + 16 + 8 * i)),
        })
    }

    /// Returns a counter by name; 0 if the family does not have it.
    #[must_use]
    pub fn count(&self, counter: &str) -> u64 {
        let names = self.controller.family().counters;
        names.iter().position(|name| *name == counter).map_or(0, |place| self.counters[place])
    }

    /// Returns the variables set in a user's controller; `None` for other controllers.
    #[must_use]
    pub fn variables(&self) -> Option<String> {
        let bytes: Vec<u8> = self.settings.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let text = String::from_utf8_lossy(&bytes).trim_end_matches('\0').to_owned();
        (self.controller == Controller::Own).then_some(text)
    }

    /// Returns the number of sockets that use the controller now; `None` if it does not count them.
    #[must_use]
    pub fn sockets(&self) -> Option<u64> {
        let counts = self.controller.family().counters.contains(&"opened");
        counts.then(|| self.count("opened").saturating_sub(self.count("closed")))
    }

    /// `true` if the process that loaded the controller still runs.
    #[must_use]
    pub fn is_held(&self) -> bool {
        let comm = fs::read_to_string(format!("/proc/{}/comm", self.pid));
        // Another process may have the same id by now.
        comm.is_ok_and(|comm| comm.trim() == "cwnd-kernel")
    }

    /// Returns the information as JSON, for programs.
    #[must_use]
    pub fn json(&self) -> Value {
        let family = self.controller.family();
        let mut value = json!({
            "name": self.name,
            "controller": self.controller.name(),
            "pid": self.pid,
            "sockets": self.sockets(),
        });
        for (setting, word) in family.settings.iter().zip(self.settings) {
            value[setting.name] = settings::to_json(setting, word);
        }
        if let Some(variables) = self.variables() {
            value["set"] = json!(variables);
        }
        let counters = family.counters.iter().zip(self.counters);
        let counters: Map<String, Value> =
            counters.map(|(name, count)| ((*name).to_owned(), json!(count))).collect();
        value["counters"] = Value::Object(counters);
        value
    }
}

/// Returns the settings of a user's controller: the text of its variables, as far as there is room.
#[must_use]
pub fn words(variables: &[String]) -> Words {
    let mut text = variables.join(", ");
    if text.len() > 4 * SETTING_WORDS {
        let room = 0..=4 * SETTING_WORDS - MORE.len();
        let end = room.rev().find(|&end| text.is_char_boundary(end));
        text.truncate(end.unwrap_or_default());
        text.push_str(MORE);
    }
    let mut bytes = text.into_bytes();
    bytes.resize(4 * SETTING_WORDS, 0);
    let (words, _) = bytes.as_chunks();
    std::array::from_fn(|i| u32::from_ne_bytes(words[i]))
}

/// End of a text that has no room.
const MORE: &str = "…";

/// Creates the info map of an object that has none, bound to its programs: it lives as long as they
/// do (since 5.10).
///
/// # Errors
/// Fails if the kernel refuses.
#[expect(unsafe_code, reason = "libbpf-rs has no function for it")]
pub fn create(object: &Object) -> libbpf_rs::Result<MapHandle> {
    let options = libbpf_sys::bpf_map_create_opts {
        sz: size_of::<libbpf_sys::bpf_map_create_opts>() as _,
        ..Default::default()
    };
    let map = MapHandle::create(MapType::Array, Some(MAP), 4, BYTES as u32, 1, &options)?;
    for program in object.progs() {
        // SAFETY: the program lives as long as its object, which the borrow holds; a null pointer
        // means no options.
        let refused = unsafe {
            let program = libbpf_sys::bpf_program__fd(program.as_libbpf_object().as_ptr());
            // One that no table uses is not loaded.
            program >= 0
                && libbpf_sys::bpf_prog_bind_map(program, map.as_fd().as_raw_fd(), ptr::null()) != 0
        };
        if refused {
            return Err(std::io::Error::last_os_error().into());
        }
    }
    Ok(map)
}

/// Reads an info map.
///
/// # Errors
/// Fails if the map cannot be read. `None` stands for a map of another version.
pub fn of(map: &MapHandle) -> Result<Option<ControllerInfo>, Error> {
    let value = map
        .lookup(&0_u32.to_ne_bytes(), MapFlags::ANY)
        .map_err(|e| Error::Refused { what: "to read a card".to_owned(), why: e.to_string() })?;
    Ok(value.as_deref().and_then(ControllerInfo::read))
}

/// Returns the information on all controllers of this version that are loaded or still used by
/// sockets, sorted by name.
///
/// # Errors
/// Fails if the kernel denies access.
pub fn all() -> Result<Vec<ControllerInfo>, Error> {
    let mut infos = Vec::new();
    for map in maps() {
        infos.extend(of(&map)?);
    }
    infos.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(infos)
}

/// Returns the names of controllers loaded by other versions of this program, whose maps are not
/// read. The name comes first in every version.
#[must_use]
pub fn of_other_versions() -> Vec<String> {
    let infos = maps().filter_map(|map| map.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY).ok()?);
    let names = infos
        .filter(|controller_info| ControllerInfo::read(controller_info).is_none())
        .filter_map(|controller_info| {
            let text = controller_info.get(..NAME_BYTES)?.split(|byte| *byte == 0).next()?;
            String::from_utf8(text.to_vec()).ok().filter(|name| name::fits(name))
        });
    names.collect()
}

fn maps() -> impl Iterator<Item = MapHandle> {
    MapInfoIter::default()
        .filter(|info| info.name == MAP && info.ty == MapType::Array && info.key_size == 4)
        // The map may be gone by now.
        .filter_map(|info| MapHandle::from_map_id(info.id).ok())
}

/// `true` if a program is one of ours whose loader no longer runs.
#[must_use]
pub fn is_orphaned(program: u32) -> bool {
    let with_maps = ProgInfoQueryOptions::default().include_map_ids(true);
    let mut programs = ProgInfoIter::with_query_opts(with_maps);
    let Some(info) = programs.find(|info| info.id == program) else { return false };
    let maps = info.map_ids.iter().filter_map(|id| MapHandle::from_map_id(*id).ok());
    let controller_info =
        maps.filter(|map| map.name() == MAP).find_map(|map| of(&map).ok().flatten());
    controller_info.is_some_and(|controller_info| {
        let start_time = start_time(controller_info.pid);
        // The id may belong to a later process by now. Start times are exact to one tick.
        start_time.is_none_or(|start_time| start_time > info.load_time + TICK)
    })
}

/// Returns the start time of a process since boot (proc(5)); `None` if there is no such process.
fn start_time(pid: u32) -> Option<Duration> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The fields behind the program's name, which may contain anything, begin with the third.
    let (_, fields) = stat.rsplit_once(')')?;
    let ticks: u32 = fields.split_whitespace().nth(22 - 3)?.parse().ok()?;
    Some(TICK * ticks)
}

/// Tick in which the kernel shows process times (`USER_HZ`): 10 ms on all machines whose kernel
/// compiles eBPF.
const TICK: Duration = Duration::from_millis(10);

#[cfg(test)]
mod tests {
    use super::*;

    fn controller_info() -> ControllerInfo {
        let mut settings = [0; SETTING_WORDS];
        settings[..4].copy_from_slice(&[850_000_000, 1, 0, 250]);
        let mut counters = [0; COUNTER_WORDS];
        counters[..8].copy_from_slice(&[1, 2, 0, 0, 0, 9, 4, 0]);
        ControllerInfo {
            name: "abe_c_1234".to_owned(),
            controller: Controller::AbeCubic,
            settings,
            flags: 2,
            pid: 17,
            table: 4,
            counters,
        }
    }

    #[test]
    fn a_map_comes_back_as_it_was_written() {
        let bytes = controller_info().bytes();
        assert_eq!(bytes.len(), BYTES);
        assert_eq!(ControllerInfo::read(&bytes), Some(controller_info()));
        assert_eq!(controller_info().sockets(), Some(5));
        let json = controller_info().json();
        assert_eq!((&json["beta_ecn"], &json["mode"]), (&json!(0.85), &json!("always")));
        assert_eq!(json["counters"]["loss"], 2);
    }

    #[test]
    fn variables_of_a_users_controller_are_kept_as_far_as_there_is_room() {
        let many: Vec<String> = (0..20).map(|i| format!("parameter={i}")).collect();
        for (variables, kept) in
            [(&[][..], ""), (&many[..2], "parameter=0, parameter=1"), (&many[..], MORE)]
        {
            let controller = Controller::Own;
            let info =
                ControllerInfo { controller, settings: words(variables), ..controller_info() };
            let info = ControllerInfo::read(&info.bytes()).unwrap();
            assert!(info.variables().unwrap().ends_with(kept), "{info:?}");
        }
        assert_eq!(controller_info().variables(), None);
    }

    #[test]
    fn a_process_has_begun_or_is_none() {
        let own = start_time(std::process::id());
        assert!(own > start_time(1) && start_time(1).is_some(), "{own:?}");
        assert_eq!(start_time(u32::MAX), None);
    }

    #[test]
    fn a_map_of_another_version_or_size_is_not_read() {
        let mut bytes = controller_info().bytes();
        bytes[AFTER_SETTINGS + 12] = 1;
        assert_eq!(ControllerInfo::read(&bytes), None);
        assert_eq!(ControllerInfo::read(&controller_info().bytes()[1..]), None);
    }
}
