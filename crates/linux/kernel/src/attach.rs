//! Programs beside a controller's table, or without one: at interfaces, and at a group of processes. Links hold them, so they go when the
//! last process that has the link does, or its file.

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

use crate::card;
use crate::error::Error;

/// A program where it runs, for as long as this lives.
#[derive(Debug)]
pub enum Attached {
    /// The kernel takes it away with the last who holds the link.
    Link(Link),
    /// Of kernels before 6.6 at an interface: it is taken away when this is dropped, and stays when this process is killed.
    Hook(TcHook),
}

impl Attached {
    /// Leaves it in the kernel.
    ///
    /// # Errors
    /// Where the kernel has no link to be left.
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
            // The interface may be gone.
            let _ = hook.detach();
        }
    }
}

/// Leaves what a link holds in the kernel, by a file.
///
/// # Errors
/// Where the kernel refuses.
pub fn pin(link: &mut Link, path: &Path) -> Result<(), Error> {
    link.pin(path).map_err(|e| Error::Refused {
        what: format!("to pin {}", path.display()),
        why: e.to_string(),
    })
}

/// Attaches what of an object belongs at interfaces and at a group of processes.
///
/// # Errors
/// Where there is no such place, and where the kernel refuses.
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
                    let place =
                        if links { at_interface(&program, index) } else { hook(&program, index) };
                    attached.push(place.map_err(|why| Error::Refused {
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

/// Before other programs of the interface, by a link (since 6.6).
#[expect(unsafe_code, reason = "libbpf-rs has no function for it")]
fn at_interface(program: &ProgramMut<'_>, index: i32) -> Result<Attached, String> {
    // SAFETY: the program lives as long as its object, which the borrow holds; no options is a null pointer.
    let link = unsafe {
        libbpf_sys::bpf_program__attach_tcx(program.as_libbpf_object().as_ptr(), index, ptr::null())
    };
    let link = NonNull::new(link).ok_or_else(|| std::io::Error::last_os_error().to_string())?;
    // SAFETY: libbpf made this link, and nobody else has it.
    Ok(Attached::Link(unsafe { Link::from_ptr(link) }))
}

/// As a classifier, where there are no links for interfaces: one of a few of the same priority, each of which passes packets on. What
/// killed loaders left there goes first.
fn hook(program: &ProgramMut<'_>, index: i32) -> Result<Attached, String> {
    let mut hook = TcHook::new(program.as_fd());
    let point = if program.section() == EGRESS { TC_EGRESS } else { TC_INGRESS };
    hook.ifindex(index).attach_point(point).priority(PRIORITY);
    hook.create().map_err(|e| e.to_string())?;
    for handle in HANDLES {
        let there = hook.handle(handle).query();
        if there.is_ok_and(card::is_left_behind) {
            // Another loader may have done it.
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

/// Of our classifiers: a number that nobody else has chosen, we hope; those that the kernel chooses begin with 49152 and go down.
const PRIORITY: u32 = 52_617;
/// So many loaders at an interface.
const HANDLES: RangeInclusive<u32> = 1..=32;

/// The number of an interface of this namespace.
fn index_of(interface: &str) -> Result<i32, Error> {
    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)
        .map_err(std::io::Error::from)?;
    let index = name_to_index(&socket, interface).ok().and_then(|index| index.try_into().ok());
    index.ok_or_else(|| Error::NoInterface(interface.to_owned()))
}

/// All processes: the root of version 2 of control groups, wherever it is mounted.
fn root_group() -> Result<PathBuf, Error> {
    let mounts = fs::read_to_string("/proc/self/mounts")?;
    let path = mounts.lines().find_map(|line| {
        let mut words = line.split(' ').skip(1);
        let path = words.next()?;
        (words.next()? == "cgroup2").then(|| PathBuf::from(path))
    });
    path.ok_or(Error::NoGroups)
}

/// Of programs for packets that leave; all others are for those that arrive.
const EGRESS: &str = "tc/egress";
