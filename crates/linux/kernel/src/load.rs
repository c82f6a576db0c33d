//! Loads controllers into the kernel, pins them, and unloads them.

use std::fs;
use std::ops::Range;
use std::os::fd::AsFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use libbpf_rs::query::MapInfoIter;
use libbpf_rs::{
    AsRawLibbpf as _, Link, Map, MapCore as _, MapFlags, MapHandle, MapType, Object, ObjectBuilder,
    OpenMapMut, OpenObject, libbpf_sys,
};

use crate::attach::{self, Attached};
use crate::error::Error;
use crate::family::{ADDRESS, COUNTER_WORDS, Controller, NAMESPACE, Setting, Words};
use crate::info_map::{self, ControllerInfo};
use crate::log;
use crate::machine::{self, FIRST_TRANSMISSION, Kernel};
use crate::name::NAME_BYTES;
use crate::own::{Fixed, Own};

/// Request to load a controller.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Controller to load.
    pub controller: Controller,
    /// Object file of the controller, if it is a user's.
    pub own: Option<Own>,
    /// Name under which sockets will select it.
    pub name: String,
    /// Settings, in the order of its family.
    pub settings: Words,
    /// `true` if its sockets negotiate ECN regardless of the sysctl (`TCP_CONG_NEEDS_ECN`).
    pub request_ecn: bool,
    /// `true` if unprivileged users may select it (`TCP_CONG_NON_RESTRICTED`).
    pub any_user: bool,
    /// Interfaces at which its programs are attached.
    pub interfaces: Vec<String>,
    /// Control group at which its programs are attached; `None` for all processes.
    pub group: Option<PathBuf>,
    /// `true` if it may affect every connection of the host.
    pub whole_host: bool,
    /// `true` to register it, and to attach its programs at interfaces, without links, as kernels
    /// before 6.4 and 6.6 do.
    pub without_link: bool,
    /// Features of this kernel.
    pub kernel: Kernel,
}

/// A controller loaded by this process; dropping it unloads it.
#[derive(Debug)]
pub struct Loaded {
    /// Link that registers its table, if it has one.
    link: Option<Link>,
    /// Programs outside its table.
    attached: Vec<Attached>,
    /// Info map.
    card: MapHandle,
    _object: Object,
    /// `true` if the kernel unloads it when this process ends, even if it is killed (tables since
    /// 6.4); programs at interfaces before 6.6 stay if this process is killed.
    pub by_link: bool,
}

impl Loaded {
    /// Loads a controller into the kernel.
    ///
    /// # Errors
    /// Fails if the name is taken, if the plan lacks an interface or bounds that the controller
    /// needs, or if the kernel refuses.
    pub fn new(plan: &Plan) -> Result<Self, Error> {
        let attachment = plan.controller.family().attachment;
        let has_table = attachment.has_table();
        if is_taken(&plan.name)? {
            return Err(Error::NameTaken(plan.name.clone()));
        }
        if attachment.needs_interface() && plan.interfaces.is_empty() {
            return Err(Error::NoInterfaceGiven(plan.controller));
        }
        if attachment.needs_bounds() && !plan.whole_host && !plan.has_bounds() {
            return Err(Error::WholeHost(plan.controller));
        }
        let mut object = plan.programs()?;
        // Tables that are left out have a descriptor, too.
        let is_table = |map: &Map<'_>| map.map_type() == MapType::StructOps && map.autocreate();
        let table = match object.maps().find(is_table) {
            Some(table) => table.info().map_err(|e| plan.refused("to describe", &e))?.info.id,
            None if has_table => return Err(Error::NoStructOps(machine::release())),
            None => 0,
        };
        let controller_info = ControllerInfo {
            name: plan.name.clone(),
            controller: plan.controller,
            settings: plan
                .own
                .as_ref()
                .map_or(plan.settings, |own| info_map::words(own.variables())),
            flags: plan.flags(),
            pid: std::process::id(),
            table,
            counters: [0; COUNTER_WORDS],
        };
        let card = match object.maps().find(|map| map.name() == info_map::MAP) {
            Some(map) => MapHandle::try_from(&map),
            None => info_map::create(&object),
        };
        let card = card
            .and_then(|card| {
                card.update(&0_u32.to_ne_bytes(), &controller_info.bytes(), MapFlags::ANY)?;
                Ok(card)
            })
            .map_err(|e| plan.refused("the card of", &e))?;
        let mut link = None;
        for mut map in object.maps_mut() {
            if is_table(&map) {
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
        Ok(Self { link, attached, card, _object: object, by_link: !has_table || plan.by_link() })
    }

    /// Reads its info map with the current counters; `None` if it has none of this version.
    ///
    /// # Errors
    /// Fails if the kernel denies access.
    pub fn controller_info(&self) -> Result<Option<ControllerInfo>, Error> {
        info_map::of(&self.card)
    }

    /// Keeps it loaded beyond this process. Returns the pinned file that keeps it, or `None` if the
    /// kernel needs none.
    ///
    /// # Errors
    /// Fails if there is no BPF file system, if a program at an interface has no link to pin, or if
    /// the kernel refuses.
    pub fn pin(mut self, name: &str) -> Result<Option<PathBuf>, Error> {
        if !self.by_link && self.attached.is_empty() {
            if let Some(link) = &mut self.link {
                // A table without a link stays until it is unregistered.
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
            remove_empty_pins();
        }
        kept.map(|()| Some(path))
    }

    /// Pins the table under the controller's name, and other programs under the name with a number,
    /// which no valid name has.
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
    /// `true` if a link registers it, which kernels before 6.4 cannot.
    #[must_use]
    pub const fn by_link(&self) -> bool {
        self.kernel.links && !self.without_link
    }

    /// `true` if it is restricted to the connections of a group, a namespace or an address.
    fn has_bounds(&self) -> bool {
        let bounds =
            |setting: &Setting| setting.name == ADDRESS || NAMESPACE.contains(&setting.name);
        let mut settings = self.controller.family().settings.iter().zip(self.settings);
        self.group.is_some() || settings.any(|(setting, word)| bounds(setting) && word != 0)
    }

    /// Loads its programs, which the kernel verifies, without registering them.
    ///
    /// # Errors
    /// Fails if the kernel refuses them.
    pub fn programs(&self) -> Result<Object, Error> {
        let open = match &self.own {
            Some(own) => own.prepare(Fixed {
                name: &self.name,
                flags: self.flags(),
                map_flags: if self.by_link() { F_LINK } else { 0 },
                unknown: (!self.kernel.first_transmission).then_some(FIRST_TRANSMISSION),
            })?,
            None => self.open()?,
        };
        open.load().map_err(|error| {
            let release = machine::release();
            if let Some(name) = log::missing_function() {
                return Error::NoFunction { release, name };
            }
            if machine::is_too_old(&release) {
                return Error::TooOld(release);
            }
            self.refused("to load", &error)
        })
    }

    /// Opens the object of a controller of this program, with its settings.
    fn open(&self) -> Result<OpenObject, Error> {
        // libelf needs an aligned buffer, which a copy is.
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
        Ok(open)
    }

    /// Fills in the first members of `struct tcp_congestion_ops` of bpf/kernel.h.
    fn fill_in(&self, table: &mut [u8]) {
        table[..NAME_BYTES].fill(0);
        table[..self.name.len()].copy_from_slice(self.name.as_bytes());
        table[FLAGS].copy_from_slice(&self.flags().to_ne_bytes());
        // libbpf leaves out members that are zero, and their programs.
        let unused_member = if self.kernel.first_transmission { CWND_EVENT } else { TX_START };
        table[unused_member].fill(0);
    }

    fn refused(&self, what: &str, error: &libbpf_rs::Error) -> Error {
        let name = if self.own.is_some() { self.name.as_str() } else { self.controller.name() };
        Error::Refused { what: format!("{what} {name}"), why: format!("{error:#}") }
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

/// Unloads a controller. Sockets that use it keep it until they close; its information is returned
/// while there are some.
///
/// # Errors
/// Fails if no controller of that name is loaded, if a process holds it, or if another version of
/// this program loaded it without a pin.
pub fn unload(name: &str) -> Result<Option<ControllerInfo>, Error> {
    let find = || -> Result<Option<ControllerInfo>, Error> {
        Ok(info_map::all()?.into_iter().find(|controller_info| controller_info.name == name))
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
        remove_empty_pins();
        wait_until_gone(name)?;
        return find();
    }
    let registered = machine::controllers()?.iter().any(|one| one == name);
    let controller_info =
        find()?.filter(|controller_info| registered || controller_info.table == 0);
    let controller_info = controller_info.ok_or_else(|| {
        let other = info_map::of_other_versions().iter().any(|one| one == name);
        if other { Error::OtherVersion(name.to_owned()) } else { Error::Unknown(name.to_owned()) }
    })?;
    if controller_info.table == 0 {
        return Err(Error::Held { name: name.to_owned(), pid: controller_info.pid });
    }
    let refused = |e: libbpf_rs::Error| Error::Refused {
        what: format!("to unload {name}"),
        why: e.to_string(),
    };
    let table = MapHandle::from_map_id(controller_info.table).map_err(refused)?;
    let by_link = table.info().map_err(refused)?.info.map_flags & F_LINK != 0;
    if by_link || controller_info.is_held() {
        return Err(Error::Held { name: name.to_owned(), pid: controller_info.pid });
    }
    table.delete(&0_u32.to_ne_bytes()).map_err(refused)?;
    find()
}

/// Removes the directory of pins if it is empty.
fn remove_empty_pins() {
    // It is not empty while other controllers are pinned.
    let _ = fs::remove_dir(PINS);
}

/// Returns a loaded map of this name, type and value size.
#[expect(unsafe_code, reason = "libbpf-rs has no function for it")]
fn same_map(map: &OpenMapMut<'_>) -> Option<MapHandle> {
    // SAFETY: the map lives as long as its object, which the borrow holds.
    let bytes = unsafe { libbpf_sys::bpf_map__value_size(map.as_libbpf_object().as_ptr()) };
    MapInfoIter::default()
        .filter(|info| info.name == map.name() && info.ty == map.map_type())
        .filter(|info| info.value_size == bytes)
        .find_map(|info| MapHandle::from_map_id(info.id).ok())
}

/// `true` if the name is taken, also by a controller of another version of this program.
fn is_taken(name: &str) -> Result<bool, Error> {
    Ok(is_loaded(name)? || info_map::of_other_versions().iter().any(|one| one == name))
}

/// `true` if a table of that name is registered by any program, or programs without a table have
/// the name.
fn is_loaded(name: &str) -> Result<bool, Error> {
    let registered = machine::controllers()?.iter().any(|one| one == name);
    Ok(registered
        || info_map::all()?
            .iter()
            .any(|controller_info| controller_info.name == name && controller_info.table == 0))
}

/// Waits up to 2 s for the kernel, which drops a controller shortly after the last reference to its
/// link.
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

/// Returns the path at which a controller's first link is pinned, whether or not it is.
#[must_use]
pub fn pin_path(name: &str) -> PathBuf {
    Path::new(PINS).join(name)
}

/// Checks that a BPF file system is mounted at its usual place.
///
/// # Errors
/// Fails if it is not.
pub fn bpffs() -> Result<(), Error> {
    let device = |path: &str| fs::metadata(path).map(|m| m.dev()).ok();
    let mounted = fs::read_to_string("/proc/self/mounts")?
        .lines()
        .any(|line| line.split(' ').nth(1) == Some(BPFFS) && line.split(' ').nth(2) == Some("bpf"));
    if mounted && device(BPFFS).is_some() { Ok(()) } else { Err(Error::NoBpffs(BPFFS.to_owned())) }
}

/// Mount point of the BPF file system.
const BPFFS: &str = "/sys/fs/bpf";
/// Directory of pinned links.
const PINS: &str = "/sys/fs/bpf/cwnd";
/// Suffix of the section that holds the settings, which the loader fills in.
const SETTINGS: &str = "rodata.settings";
/// Byte ranges of members of the table.
const FLAGS: Range<usize> = NAME_BYTES..NAME_BYTES + 4;
const CWND_EVENT: Range<usize> = 24..32;
const TX_START: Range<usize> = 32..40;
/// Flag of a table that a link registers: `BPF_F_LINK` (Linux 6.4).
const F_LINK: u32 = 1 << 13;
/// Flag `TCP_CONG_NON_RESTRICTED`.
const NON_RESTRICTED: u32 = 1;
/// Flag `TCP_CONG_NEEDS_ECN`.
const NEEDS_ECN: u32 = 2;
