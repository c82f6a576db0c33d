//! Attachment of programs outside a controller's table: at interfaces and at a control group. Links
//! hold them: they are detached when the last process with the link ends and its pin, if any, is
//! removed. Kernels before 6.6 have no links for interfaces.

use std::fs;
use std::ops::RangeInclusive;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::path::{Path, PathBuf};
use std::ptr::{self, NonNull};

use libbpf_rs::{
    AsRawLibbpf as _, ErrorKind, Link, Object, ProgramMut, ProgramType, TC_EGRESS, TC_INGRESS,
    TcHook, libbpf_sys,
};
use rustix::net::netdevice::name_to_index;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use crate::error::Error;
use crate::info_map;

/// An attached program; dropping it detaches it.
#[derive(Debug)]
pub enum Attached {
    /// Link; the kernel detaches the program with the last reference to it.
    Link(Link),
    /// Classifier of kernels before 6.6 at an interface. Dropping this detaches it, but it stays if
    /// this process is killed.
    Hook(TcHook),
}

impl Attached {
    /// Pins the program, so that it stays attached.
    ///
    /// # Errors
    /// Fails if the program is held without a link, or the kernel refuses.
    pub fn pin(&mut self, path: &Path) -> Result<(), Error> {
        match self {
            Self::Link(link) => pin(link, path),
            Self::Hook(_) => Err(Error::NoInterfaceLinks(crate::machine::release())),
        }
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        if let Self::Hook(hook) = self {
            // The interface may be gone already.
            let _ = hook.detach();
        }
    }
}

/// Pins a link to a file, so that its program or table stays.
///
/// # Errors
/// Fails if the kernel refuses.
pub fn pin(link: &mut Link, path: &Path) -> Result<(), Error> {
    link.pin(path).map_err(|e| Error::Refused {
        what: format!("to pin {}", path.display()),
        why: e.to_string(),
    })
}

/// Attaches the programs of an object that belong at interfaces or at a control group. `links`
/// selects links for interfaces instead of classifiers.
///
/// # Errors
/// Fails if an interface, the group or a mounted hierarchy of groups does not exist, or the kernel
/// refuses.
pub fn all(
    object: &mut Object,
    interfaces: &[String],
    group: Option<&Path>,
    links: bool,
) -> Result<Vec<Attached>, Error> {
    let mut attached = Vec::new();
    for program in object.progs_mut() {
        let name = program.name().to_string_lossy().into_owned();
        match program.prog_type() {
            ProgramType::SchedCls => {
                for interface in interfaces {
                    let index = index_of(interface)?;
                    let attachment =
                        if links { at_interface(&program, index) } else { hook(&program, index) };
                    attached.push(attachment.map_err(|why| Error::Refused {
                        what: format!("{name} at {interface}"),
                        why,
                    })?);
                }
            }
            ProgramType::SockOps | ProgramType::CgroupSkb => {
                let path = match group {
                    Some(path) => path.to_owned(),
                    None => root_group()?,
                };
                let what = || format!("{name} at {}", path.display());
                let folder = fs::File::open(&path)
                    .map_err(|e| Error::Refused { what: what(), why: e.to_string() })?;
                let link = program
                    .attach_cgroup(folder.as_raw_fd())
                    .map_err(|e| Error::Refused { what: what(), why: e.to_string() })?;
                attached.push(Attached::Link(link));
            }
            _ => {}
        }
    }
    Ok(attached)
}

/// Attaches a program at an interface by a link (since 6.6): behind other links that are there, and
/// before all classifiers.
#[expect(unsafe_code, reason = "libbpf-rs has no function for it")]
fn at_interface(program: &ProgramMut<'_>, index: i32) -> Result<Attached, String> {
    // SAFETY: the program lives as long as its object, which the borrow holds; a null pointer means
    // no options.
    let link = unsafe {
        libbpf_sys::bpf_program__attach_tcx(program.as_libbpf_object().as_ptr(), index, ptr::null())
    };
    let link = NonNull::new(link).ok_or_else(|| std::io::Error::last_os_error().to_string())?;
    // SAFETY: libbpf made this link, and nothing else owns it.
    Ok(Attached::Link(unsafe { Link::from_ptr(link) }))
}

/// Attaches a program as a classifier, for kernels without links for interfaces. Up to 32 of them
/// share one priority, and each passes packets on. Those that killed loaders left behind are
/// removed first.
fn hook(program: &ProgramMut<'_>, index: i32) -> Result<Attached, String> {
    let mut hook = TcHook::new(program.as_fd());
    let point = if program.section() == EGRESS { TC_EGRESS } else { TC_INGRESS };
    hook.ifindex(index).attach_point(point).priority(PRIORITY);
    hook.create().map_err(|e| e.to_string())?;
    for handle in HANDLES {
        let there = hook.handle(handle).query();
        if there.is_ok_and(info_map::is_orphaned) {
            // Another loader may have removed it already.
            let _ = hook.detach();
        }
    }
    let mut refused = String::new();
    for handle in HANDLES {
        match hook.handle(handle).attach() {
            Ok(_) => return Ok(Attached::Hook(hook)),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => refused = error.to_string(),
            Err(error) => return Err(error.to_string()),
        }
    }
    Err(refused)
}

/// Priority of our classifiers. It should be unique at an interface; priorities that the kernel
/// chooses start at 49152 and descend.
const PRIORITY: u32 = 52_617;
/// Handles of our classifiers: one per loader at an interface.
const HANDLES: RangeInclusive<u32> = 1..=32;

/// Returns the index of an interface in this network namespace.
fn index_of(interface: &str) -> Result<i32, Error> {
    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)
        .map_err(std::io::Error::from)?;
    let index = name_to_index(&socket, interface).ok().and_then(|index| index.try_into().ok());
    index.ok_or_else(|| Error::NoInterface(interface.to_owned()))
}

/// Returns the root of the cgroup v2 hierarchy, which contains all processes, wherever it is
/// mounted.
fn root_group() -> Result<PathBuf, Error> {
    let mounts = fs::read_to_string("/proc/self/mounts")?;
    let path = mounts.lines().find_map(|line| {
        let mut words = line.split(' ').skip(1);
        let path = words.next()?;
        (words.next()? == "cgroup2").then(|| PathBuf::from(path))
    });
    path.ok_or(Error::NoGroups)
}

/// Section of programs for egress packets; all other sections are for ingress.
const EGRESS: &str = "tc/egress";
