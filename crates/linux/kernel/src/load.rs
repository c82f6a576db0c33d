//! Objects to tables in the kernel.

use std::fs;
use std::ops::Range;
use std::os::fd::AsFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use libbpf_rs::query::MapInfoIter;
use libbpf_rs::{
    AsRawLibbpf as _, Link, MapCore as _, MapFlags, MapHandle, MapType, Object, ObjectBuilder,
    OpenMapMut, libbpf_sys,
};

use crate::attach::{self, Attached};
use crate::card::{self, Card};
use crate::error::Error;
use crate::family::{ADDRESS, COUNTER_WORDS, Controller, NAMESPACE, Setting, Words};
use crate::machine::{self, Kernel};
use crate::name::NAME_BYTES;

/// What to load, and how.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Which controller.
    pub controller: Controller,
    /// What sockets will ask for.
    pub name: String,
    /// What it is told.
    pub settings: Words,
    /// Whether its sockets negotiate ECN whatever the sysctl says (`TCP_CONG_NEEDS_ECN`).
    pub request_ecn: bool,
    /// Whether any user may choose it (`TCP_CONG_NON_RESTRICTED`).
    pub any_user: bool,
    /// Interfaces at which its programs are attached.
    pub interfaces: Vec<String>,
    /// The control group at which they are; none is all processes.
    pub group: Option<PathBuf>,
    /// Whether it may be for every connection of the host.
    pub whole_host: bool,
    /// Whether to do as kernels before 6.4 need.
    pub without_link: bool,
    /// Where.
    pub kernel: Kernel,
}

/// A controller in the kernel, for as long as this lives.
#[derive(Debug)]
pub struct Loaded {
    /// What registers its table, if it has one.
    link: Option<Link>,
    /// Its other programs.
    attached: Vec<Attached>,
    object: Object,
    /// Whether the kernel itself unloads it when this process ends, however it ends (since 6.4).
    pub by_link: bool,
}

impl Loaded {
    /// Puts a controller into the kernel.
    ///
    /// # Errors
    /// Where the kernel refuses; the name may be taken.
    pub fn new(plan: &Plan) -> Result<Self, Error> {
        let place = plan.controller.family().place;
        let has_table = place.has_table();
        if is_taken(&plan.name)? {
            return Err(Error::NameTaken(plan.name.clone()));
        }
        if place.needs_interface() && plan.interfaces.is_empty() {
            return Err(Error::Deaf(plan.controller));
        }
        if place.needs_bounds() && !plan.whole_host && !plan.has_bounds() {
            return Err(Error::WholeHost(plan.controller));
        }
        let mut object = plan.programs()?;
        let table = match object.maps().find(|map| map.map_type() == MapType::StructOps) {
            Some(table) => table.info().map_err(|e| plan.refused("to describe", &e))?.info.id,
            None if has_table => return Err(Error::NoStructOps(machine::release())),
            None => 0,
        };
        let card = Card {
            name: plan.name.clone(),
            controller: plan.controller,
            settings: plan.settings,
            flags: plan.flags(),
            pid: std::process::id(),
            table,
            counters: [0; COUNTER_WORDS],
        };
        for map in object.maps_mut() {
            if map.name() == card::MAP {
                map.update(&0_u32.to_ne_bytes(), &card.bytes(), MapFlags::ANY)
                    .map_err(|e| plan.refused("the card of", &e))?;
            }
        }
        let mut link = None;
        for mut map in object.maps_mut() {
            if map.map_type() == MapType::StructOps {
                link = Some(map.attach_struct_ops().map_err(|error| {
                    if error.kind() == libbpf_rs::ErrorKind::AlreadyExists {
                        return Error::NameTaken(plan.name.clone());
                    }
                    plan.refused("to register", &error)
                })?);
            }
        }
        let links = plan.kernel.interface_links && !plan.without_link;
        let attached = attach::all(&mut object, &plan.interfaces, plan.group.as_deref(), links)?;
        Ok(Self { link, attached, object, by_link: !has_table || plan.by_link() })
    }

    /// Its card as it stands.
    ///
    /// # Errors
    /// Where the kernel does not let us read it.
    pub fn card(&self) -> Result<Option<Card>, Error> {
        let Some(map) = self.object.maps().find(|map| map.name() == card::MAP) else {
            return Ok(None);
        };
        let handle = MapHandle::try_from(&map).map_err(|e| Error::Refused {
            what: "to read a card".to_owned(),
            why: e.to_string(),
        })?;
        card::of(&handle)
    }

    /// Leaves it in the kernel when this process ends; gives back the file that keeps it there, if one does.
    ///
    /// # Errors
    /// Where there is no BPF file system, or no link to be left.
    pub fn pin(mut self, name: &str) -> Result<Option<PathBuf>, Error> {
        if !self.by_link && self.attached.is_empty() {
            if let Some(link) = &mut self.link {
                // Such a table stays until it is taken out.
                link.disconnect();
            }
            return Ok(None);
        }
        let path = pin_path(name);
        bpffs()?;
        fs::create_dir_all(PINS)?;
        let mut pinned = Vec::new();
        let kept = self.pin_all(name, &mut pinned);
        if kept.is_err() {
            for path in pinned {
                let _ = fs::remove_file(path);
            }
            leave_no_folder();
        }
        kept.map(|()| Some(path))
    }

    /// Its table, if it has one, has a file of its name; other programs have a number behind it, which no name has.
    fn pin_all(&mut self, name: &str, pinned: &mut Vec<PathBuf>) -> Result<(), Error> {
        let mut next = 0..;
        let mut path = || match next.next() {
            Some(0) | None => pin_path(name),
            Some(number) => pin_path(&format!("{name}+{number}")),
        };
        if let Some(link) = &mut self.link {
            let path = path();
            attach::pin(link, &path)?;
            pinned.push(path);
        }
        for program in &mut self.attached {
            let path = path();
            program.pin(&path)?;
            pinned.push(path);
        }
        Ok(())
    }
}

impl Plan {
    /// Whether a link registers it, and not what kernels before 6.4 need.
    #[must_use]
    pub const fn by_link(&self) -> bool {
        self.kernel.links && !self.without_link
    }

    /// Whether it is for the connections of a group, a namespace or an address only.
    fn has_bounds(&self) -> bool {
        let bounds =
            |setting: &Setting| setting.name == ADDRESS || NAMESPACE.contains(&setting.name);
        let mut told = self.controller.family().settings.iter().zip(self.settings);
        self.group.is_some() || told.any(|(setting, word)| bounds(setting) && word != 0)
    }

    /// Its programs, past the kernel's verifier; nothing is registered.
    ///
    /// # Errors
    /// Where the kernel refuses them.
    pub fn programs(&self) -> Result<Object, Error> {
        // A copy is aligned as libelf wants it.
        let object = self.controller.object().to_vec();
        let mut open = ObjectBuilder::default()
            .open_memory(&object)
            .map_err(|e| self.refused("to open", &e))?;
        for mut map in open.maps_mut() {
            if self.controller.shared().is_some_and(|shared| map.name() == shared) {
                if let Some(there) = same_map(&map) {
                    map.reuse_fd(there.as_fd()).map_err(|e| self.refused("the maps of", &e))?;
                }
            } else if map.map_type() == MapType::StructOps {
                if !self.by_link() {
                    let without = map.map_flags() & !F_LINK;
                    map.set_map_flags(without).map_err(|e| self.refused("the flags of", &e))?;
                }
                if let Some(table) = map.initial_value_mut() {
                    self.fill_in(table);
                }
            } else if map.name().to_string_lossy().ends_with(SETTINGS)
                && let Some(value) = map.initial_value_mut()
            {
                let words = self.settings.iter().flat_map(|word| word.to_ne_bytes());
                value.iter_mut().zip(words).for_each(|(to, from)| *to = from);
            }
        }
        open.load().map_err(|error| {
            let release = machine::release();
            if machine::too_old(&release) {
                return Error::TooOld(release);
            }
            self.refused("to load", &error)
        })
    }

    /// The first members of `struct tcp_congestion_ops` of bpf/kernel.h.
    fn fill_in(&self, table: &mut [u8]) {
        table[..NAME_BYTES].fill(0);
        table[..self.name.len()].copy_from_slice(self.name.as_bytes());
        table[FLAGS].copy_from_slice(&self.flags().to_ne_bytes());
        // What is zero is left out, with its program.
        let unheard = if self.kernel.first_transmission { CWND_EVENT } else { TX_START };
        table[unheard].fill(0);
    }

    fn refused(&self, what: &str, error: &libbpf_rs::Error) -> Error {
        Error::Refused { what: format!("{what} {}", self.controller), why: error.to_string() }
    }

    fn flags(&self) -> u32 {
        let mut flags = 0;
        if self.any_user {
            flags |= NON_RESTRICTED;
        }
        if self.request_ecn {
            flags |= NEEDS_ECN;
        }
        flags
    }
}

/// Takes a controller out of the kernel. Its sockets keep it until they close.
///
/// # Errors
/// Where nothing of that name is loaded, or a process holds it.
pub fn unload(name: &str) -> Result<Option<Card>, Error> {
    let find = || -> Result<Option<Card>, Error> {
        Ok(card::all()?.into_iter().find(|card| card.name == name))
    };
    let path = pin_path(name);
    if path.exists() {
        for number in 1.. {
            match fs::remove_file(pin_path(&format!("{name}+{number}"))) {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => break,
                removed => removed?,
            }
        }
        fs::remove_file(&path)?;
        leave_no_folder();
        wait_until_gone(name)?;
        return find();
    }
    let registered = machine::controllers()?.iter().any(|one| one == name);
    let card = find()?.filter(|card| registered || card.table == 0);
    let card = card.ok_or_else(|| {
        let other = card::of_other_versions().iter().any(|one| one == name);
        if other { Error::OtherVersion(name.to_owned()) } else { Error::Unknown(name.to_owned()) }
    })?;
    if card.table == 0 {
        return Err(Error::Held { name: name.to_owned(), pid: card.pid });
    }
    let refused = |e: libbpf_rs::Error| Error::Refused {
        what: format!("to unload {name}"),
        why: e.to_string(),
    };
    let table = MapHandle::from_map_id(card.table).map_err(refused)?;
    let by_link = table.info().map_err(refused)?.info.map_flags & F_LINK != 0;
    if by_link || card.is_held() {
        return Err(Error::Held { name: name.to_owned(), pid: card.pid });
    }
    table.delete(&0_u32.to_ne_bytes()).map_err(refused)?;
    find()
}

/// Removes the folder of pins after the last one.
fn leave_no_folder() {
    // It is not empty as long as others are loaded.
    let _ = fs::remove_dir(PINS);
}

/// A map of this name and size that is loaded already.
#[expect(unsafe_code, reason = "libbpf-rs has no function for it")]
fn same_map(map: &OpenMapMut<'_>) -> Option<MapHandle> {
    // SAFETY: the map lives as long as its object, which the borrow holds.
    let bytes = unsafe { libbpf_sys::bpf_map__value_size(map.as_libbpf_object().as_ptr()) };
    MapInfoIter::default()
        .filter(|info| info.name == map.name() && info.ty == map.map_type())
        .filter(|info| info.value_size == bytes)
        .find_map(|info| MapHandle::from_map_id(info.id).ok())
}

/// Whether something has that name, be it of another version.
fn is_taken(name: &str) -> Result<bool, Error> {
    Ok(is_loaded(name)? || card::of_other_versions().iter().any(|one| one == name))
}

/// Whether a table of that name is registered, whoever brought it, or programs without one have it.
fn is_loaded(name: &str) -> Result<bool, Error> {
    let registered = machine::controllers()?.iter().any(|one| one == name);
    Ok(registered || card::all()?.iter().any(|card| card.name == name && card.table == 0))
}

/// The kernel drops the table, or programs without one, a moment after the last reference to its link.
fn wait_until_gone(name: &str) -> Result<(), Error> {
    for _ in 0..100 {
        if !is_loaded(name)? {
            return Ok(());
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    Err(Error::Refused {
        what: format!("to unload {name}"),
        why: "its file is removed, but something else holds its link".to_owned(),
    })
}

/// The file that keeps a controller loaded.
#[must_use]
pub fn pin_path(name: &str) -> PathBuf {
    Path::new(PINS).join(name)
}

/// Whether a BPF file system is where it belongs.
///
/// # Errors
/// If not.
pub fn bpffs() -> Result<(), Error> {
    let device = |path: &str| fs::metadata(path).map(|m| m.dev()).ok();
    let mounted = fs::read_to_string("/proc/self/mounts")?
        .lines()
        .any(|line| line.split(' ').nth(1) == Some(BPFFS) && line.split(' ').nth(2) == Some("bpf"));
    if mounted && device(BPFFS).is_some() { Ok(()) } else { Err(Error::NoBpffs(BPFFS.to_owned())) }
}

/// Where the BPF file system is mounted.
const BPFFS: &str = "/sys/fs/bpf";
/// Where links are pinned.
const PINS: &str = "/sys/fs/bpf/cwnd";
/// The section of the settings, which the loader fills in.
const SETTINGS: &str = "rodata.settings";
/// Members of the table, bytes.
const FLAGS: Range<usize> = NAME_BYTES..NAME_BYTES + 4;
const CWND_EVENT: Range<usize> = 24..32;
const TX_START: Range<usize> = 32..40;
/// `BPF_F_LINK`: a table that is registered by a link (Linux 6.4).
const F_LINK: u32 = 1 << 13;
/// `TCP_CONG_NON_RESTRICTED`.
const NON_RESTRICTED: u32 = 1;
/// `TCP_CONG_NEEDS_ECN`.
const NEEDS_ECN: u32 = 2;
