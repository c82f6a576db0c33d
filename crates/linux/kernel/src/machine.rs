//! Requirements on the kernel, checked before anything is loaded.

use std::fs;
use std::os::fd::AsRawFd as _;
use std::path::Path;

use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::Struct;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use rustix::time::{ClockId, clock_getres};

use crate::error::Error;

/// Type information (BTF) of the running kernel.
const BTF: &str = "/sys/kernel/btf/vmlinux";
/// Type that kernels have only if they accept congestion controllers as eBPF.
const TABLE_TYPE: &str = "bpf_struct_ops_tcp_congestion_ops";
/// The kernel's type of a congestion controller.
const CONTROLLER_TYPE: &str = "tcp_congestion_ops";
/// Member for the first transmission, since 7.1; `cwnd_event` reported it before.
pub const FIRST_TRANSMISSION: &str = "cwnd_event_tx_start";
/// Type of links that register a table, since 6.4.
const LINK_TYPE: &str = "bpf_struct_ops_link";
/// Type of links that hold a program at an interface, since 6.6.
const INTERFACE_LINK_TYPE: &str = "tcx_link";
/// Oldest kernel that is known to accept the programs.
const OLDEST: (u32, u32) = (6, 1);
/// Capability numbers (capabilities(7)).
const CAP_NET_ADMIN: u32 = 12;
const CAP_SYS_ADMIN: u32 = 21;
const CAP_PERFMON: u32 = 38;
const CAP_BPF: u32 = 39;

/// Checks that this process has the privileges to load controllers.
///
/// # Errors
/// Fails if it lacks them.
pub fn check_privileges() -> Result<(), Error> {
    let status = fs::read_to_string("/proc/self/status")?;
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))
        .and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok())
        .unwrap_or(0);
    let has = |capability: u32| mask >> capability & 1 == 1;
    let programs = has(CAP_SYS_ADMIN) || has(CAP_BPF) && has(CAP_PERFMON);
    if programs && has(CAP_NET_ADMIN) { Ok(()) } else { Err(Error::Rights) }
}

/// Returns the cookie of the calling thread's network namespace (since 5.14), which the kernel
/// never reuses.
///
/// # Errors
/// Fails if the kernel has no such cookie.
#[expect(unsafe_code, reason = "rustix has no function for it")]
pub fn namespace_cookie() -> Result<u64, Error> {
    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)
        .map_err(std::io::Error::from)?;
    let mut cookie = 0_u64;
    let mut length = size_of::<u64>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes, the size of `cookie`.
    let refused = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            SO_NETNS_COOKIE,
            (&raw mut cookie).cast(),
            &raw mut length,
        )
    };
    if refused == 0 { Ok(cookie) } else { Err(std::io::Error::last_os_error().into()) }
}

/// Socket option of the cookie (asm-generic/socket.h).
const SO_NETNS_COOKIE: libc::c_int = 71;

/// Features that differ between kernels.
#[derive(Clone, Copy, Debug)]
pub struct Kernel {
    /// `true` if a link registers a table, and unregisters it with the last reference.
    pub links: bool,
    /// `true` if a link can hold a program at an interface.
    pub interface_links: bool,
    /// `true` if the table has its own member for a first transmission.
    pub first_transmission: bool,
}

/// Returns the features of this kernel.
///
/// # Errors
/// Fails if it has no type information (BTF), or does not accept congestion controllers as eBPF.
pub fn kernel() -> Result<Kernel, Error> {
    if !Path::new(BTF).exists() {
        return Err(Error::NoBtf(BTF));
    }
    let types = Btf::from_path(BTF)
        .map_err(|e| Error::Refused { what: format!("to read {BTF}"), why: e.to_string() })?;
    let find = |name| types.type_by_name::<Struct<'_>>(name);
    let (Some(_), Some(controller)) = (find(TABLE_TYPE), find(CONTROLLER_TYPE)) else {
        return Err(Error::NoStructOps(release()));
    };
    Ok(Kernel {
        links: find(LINK_TYPE).is_some(),
        interface_links: find(INTERFACE_LINK_TYPE).is_some(),
        first_transmission: controller
            .iter()
            .any(|member| member.name.is_some_and(|name| name == FIRST_TRANSMISSION)),
    })
}

/// `true` if a release is older than the oldest kernel that is known to accept the programs.
#[must_use]
pub fn is_too_old(release: &str) -> bool {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse().ok());
    match (numbers.next().flatten(), numbers.next().flatten()) {
        (Some(major), Some(minor)) => (major, minor) < OLDEST,
        _ => false,
    }
}

/// Returns the kernel's release.
#[must_use]
pub fn release() -> String {
    rustix::system::uname().release().to_string_lossy().into_owned()
}

/// Returns the kernel's ticks per second, from the resolution of its coarse clock, which is one
/// tick.
#[must_use]
pub fn hz() -> u32 {
    let tick = clock_getres(ClockId::MonotonicCoarse);
    let ns =
        u64::try_from(tick.tv_sec).unwrap_or(0) * NS + u64::try_from(tick.tv_nsec).unwrap_or(0);
    u32::try_from((NS + ns / 2) / ns.max(1)).unwrap_or(u32::MAX)
}

/// Returns the names of all congestion controllers in the kernel, of any origin.
///
/// # Errors
/// Fails if the file that lists them is missing.
pub fn controllers() -> Result<Vec<String>, Error> {
    let names = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control")?;
    Ok(names.split_whitespace().map(str::to_owned).collect())
}

const NS: u64 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_before_6_1_are_too_old_whatever_follows_their_number() {
        for release in ["5.10.0-32-cloud-amd64", "5.15.0", "6.0-rc1", "4.19"] {
            assert!(is_too_old(release), "{release}");
        }
        for release in ["6.1.0-50-amd64", "6.18.44", "7.3.4+deb13", "10.0", "unknown"] {
            assert!(!is_too_old(release), "{release}");
        }
    }
}
