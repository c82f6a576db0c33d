//! Users that processes run as, and the dropping of rights.

use std::ffi::CString;
use std::io::{self, ErrorKind};

use nix::unistd::{Gid, Uid};
use rustix::io::Errno;
use rustix::process::{DumpableBehavior, Resource, Rlimit, set_dumpable_behavior, setrlimit};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities, set_keep_capabilities, set_no_new_privs,
};

/// A user with its groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// User ID.
    pub id: u32,
    /// ID of its primary group.
    pub group: u32,
    /// IDs of its groups, at most the first 512.
    pub groups: Vec<u32>,
}

impl User {
    /// Returns the user with this ID, from the system's user database.
    ///
    /// # Errors
    /// If there is no such user.
    pub fn of(id: u32) -> io::Result<Self> {
        let found = nix::unistd::User::from_uid(Uid::from_raw(id))?
            .ok_or_else(|| io::Error::new(ErrorKind::NotFound, format!("there is no user {id}")))?;
        let groups = nix::unistd::getgrouplist(&CString::new(found.name)?, found.gid)?;
        let groups = groups.into_iter().map(Gid::as_raw).take(MOST_GROUPS).collect();
        Ok(Self { id, group: found.gid.as_raw(), groups })
    }

    /// `true` for root.
    #[must_use]
    pub const fn is_root(&self) -> bool {
        self.id == 0
    }
}

/// Changes the process to a user for good: no thread keeps any right, and other processes of the
/// user cannot inspect it. Only the calling thread may exist.
///
/// # Errors
/// Those of the kernel; then the process must end.
pub fn give_up(user: &User) -> io::Result<()> {
    set_no_new_privs(true)?;
    empty_bounds()?;
    change(user)?;
    set_capabilities(None, NONE)?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    Ok(())
}

/// Changes the process to a user, but lets programs that it executes gain rights again.
///
/// # Errors
/// Those of the kernel.
pub fn give_up_for_now(user: &User) -> io::Result<()> {
    clear_ambient_capability_set()?;
    change(user)?;
    set_capabilities(None, NONE)?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    Ok(())
}

/// Changes the process to a user that keeps only these capabilities; executed programs have them,
/// too.
///
/// # Errors
/// Those of the kernel.
pub fn keep_only(user: &User, rights: CapabilitySet) -> io::Result<()> {
    // Root of a container may lack some.
    let rights = rights & capabilities(None)?.permitted;
    set_keep_capabilities(true)?;
    change(user)?;
    let sets = CapabilitySets { effective: rights, permitted: rights, inheritable: rights };
    set_capabilities(None, sets)?;
    set_keep_capabilities(false)?;
    for right in rights {
        rustix::thread::configure_capability_in_ambient_set(right, true)?;
    }
    Ok(())
}

/// Gives up the capabilities of the calling thread for good, also for programs that it executes.
///
/// # Errors
/// Those of the kernel.
pub fn give_up_capabilities() -> io::Result<()> {
    set_no_new_privs(true)?;
    clear_ambient_capability_set()?;
    Ok(set_capabilities(None, NONE)?)
}

/// Changes the user IDs, not the groups, of only the calling thread, until it ends.
///
/// # Errors
/// Those of the kernel.
pub fn become_on_this_thread(user: &User) -> io::Result<()> {
    let id = rustix::process::Uid::from_raw(user.id);
    Ok(rustix::thread::set_thread_res_uid(id, id, id)?)
}

fn change(user: &User) -> io::Result<()> {
    let groups: Vec<Gid> = user.groups.iter().copied().map(Gid::from_raw).collect();
    let (uid, gid) = (Uid::from_raw(user.id), Gid::from_raw(user.group));
    nix::unistd::setgroups(&groups)?;
    nix::unistd::setresgid(gid, gid, gid)?;
    nix::unistd::setresuid(uid, uid, uid)?;
    Ok(())
}

/// Removes the capabilities that executing a file could grant.
fn empty_bounds() -> io::Result<()> {
    clear_ambient_capability_set()?;
    for number in 0..u64::BITS {
        match remove_capability_from_bounding_set(CapabilitySet::from_bits_retain(1 << number)) {
            Ok(()) => {}
            // There are no more capabilities in this kernel.
            Err(Errno::INVAL) => break,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Returns the resource limits of this process, soft and hard, in the order of the resources'
/// numbers; `u64::MAX` is no limit.
#[must_use]
pub fn limits() -> Vec<[u64; 2]> {
    let number = |limit: Option<u64>| limit.unwrap_or(u64::MAX);
    let both = |limit: Rlimit| [number(limit.current), number(limit.maximum)];
    RESOURCES.map(|resource| both(rustix::process::getrlimit(resource))).to_vec()
}

/// Lowers the resource limits of this process to those given; raises none.
///
/// # Errors
/// Those of the kernel.
pub fn lower_limits(to: &[[u64; 2]]) -> io::Result<()> {
    for ((&resource, own), to) in RESOURCES.iter().zip(limits()).zip(to) {
        let [hard, soft] = [own[1].min(to[1]), own[0].min(to[0])];
        let limit = |n: u64| (n != u64::MAX).then_some(n);
        setrlimit(resource, Rlimit { current: limit(soft.min(hard)), maximum: limit(hard) })?;
    }
    Ok(())
}

const NONE: CapabilitySets = CapabilitySets {
    effective: CapabilitySet::empty(),
    permitted: CapabilitySet::empty(),
    inheritable: CapabilitySet::empty(),
};
/// Maximum number of groups, which fit a message.
const MOST_GROUPS: usize = 512;
/// Resources in the order of their numbers.
const RESOURCES: [Resource; 16] = [
    Resource::Cpu,
    Resource::Fsize,
    Resource::Data,
    Resource::Stack,
    Resource::Core,
    Resource::Rss,
    Resource::Nproc,
    Resource::Nofile,
    Resource::Memlock,
    Resource::As,
    Resource::Locks,
    Resource::Sigpending,
    Resource::Msgqueue,
    Resource::Nice,
    Resource::Rtprio,
    Resource::Rttime,
];
