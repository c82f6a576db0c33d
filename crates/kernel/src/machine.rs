//! What the kernel must have, looked at before anything is loaded.

use std::fs;
use std::path::Path;

use libbpf_rs::btf::Btf;
use rustix::time::{ClockId, clock_getres};

use crate::error::Error;

/// The kernel's description of its types.
const BTF: &str = "/sys/kernel/btf/vmlinux";
/// Congestion controllers as eBPF have this type; kernels without them lack it.
const TABLE_TYPE: &str = "bpf_struct_ops_tcp_congestion_ops";
/// capabilities(7).
const CAP_NET_ADMIN: u32 = 12;
const CAP_SYS_ADMIN: u32 = 21;
const CAP_PERFMON: u32 = 38;
const CAP_BPF: u32 = 39;

/// Whether this process may load controllers.
///
/// # Errors
/// If not.
pub fn rights() -> Result<(), Error> {
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

/// Whether this kernel takes controllers.
///
/// # Errors
/// If not.
pub fn kernel() -> Result<(), Error> {
    if !Path::new(BTF).exists() {
        return Err(Error::NoBtf(BTF));
    }
    let types = Btf::from_path(BTF)
        .map_err(|e| Error::Refused { what: format!("to read {BTF}"), why: e.to_string() })?;
    let known: Option<libbpf_rs::btf::types::Struct<'_>> = types.type_by_name(TABLE_TYPE);
    if known.is_some() { Ok(()) } else { Err(Error::NoStructOps(release())) }
}

/// The kernel's version.
#[must_use]
pub fn release() -> String {
    rustix::system::uname().release().to_string_lossy().into_owned()
}

/// The kernel's ticks a second: its coarse clock advances once a tick.
#[must_use]
pub fn hz() -> u32 {
    let tick = clock_getres(ClockId::MonotonicCoarse);
    let ns =
        u64::try_from(tick.tv_sec).unwrap_or(0) * NS + u64::try_from(tick.tv_nsec).unwrap_or(0);
    u32::try_from((NS + ns / 2) / ns.max(1)).unwrap_or(u32::MAX)
}

/// The controllers that the kernel has, whoever brought them.
///
/// # Errors
/// Where there is no such file.
pub fn controllers() -> Result<Vec<String>, Error> {
    let names = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control")?;
    Ok(names.split_whitespace().map(str::to_owned).collect())
}

const NS: u64 = 1_000_000_000;
