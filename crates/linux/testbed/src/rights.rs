//! Rights and devices that runs on Linux need.

use rustix::fs::{Access, AtFlags, CWD};
use rustix::thread::CapabilitySet;

use crate::error::Error;

/// Checks that this process can run scenarios on this machine.
///
/// # Errors
/// If it lacks a requirement, with the remedy.
pub fn lacks() -> Result<(), Error> {
    let rights = rustix::thread::capabilities(None).map_or(NONE, |own| own.effective);
    if !rights.contains(NEEDED) {
        let message = "runs on Linux need root: they make network namespaces and TUN devices; \
                       put `sudo \"$(command -v cwnd)\"` in place of `cwnd`";
        return Err(Error::Lacking(message.to_owned()));
    }
    if !std::path::Path::new(TUN).exists() {
        let message = "there is no /dev/net/tun: load it with `modprobe tun`; \
                       in a container pass `--device /dev/net/tun`";
        return Err(Error::Lacking(message.to_owned()));
    }
    if rustix::fs::accessat(CWD, TUN, Access::READ_OK | Access::WRITE_OK, AtFlags::EACCESS).is_err()
    {
        let message = "only root may open /dev/net/tun, and what sudo calls opens it as its \
                       caller: `chmod 666 /dev/net/tun`, as udev does; \
                       it is of no use without CAP_NET_ADMIN";
        return Err(Error::Lacking(message.to_owned()));
    }
    Ok(())
}

const TUN: &str = "/dev/net/tun";
/// Capabilities for network namespaces and TUN devices.
const NEEDED: CapabilitySet = CapabilitySet::NET_ADMIN.union(CapabilitySet::SYS_ADMIN);
const NONE: CapabilitySet = CapabilitySet::empty();
