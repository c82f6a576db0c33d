use std::fmt;
use std::fs;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

use crate::linux::netlink::{Interface, Netlink, Route};

/// A TUN device: what the kernel sends to it is read, what is written to it the kernel receives. It has no offloads, so
/// that packets are no larger than its MTU. It is gone when it is dropped, or its process ends in whatever way.
pub struct Tun {
    device: OwnedFd,
    name: String,
    interface: Interface,
    /// Opened in the device's network namespace.
    control: Mutex<Netlink>,
}

impl fmt::Debug for Tun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tun").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Tun {
    /// Makes a device in the calling thread's network namespace; it is up, and has no address. `name` may hold `%d` for a
    /// number that is free.
    ///
    /// # Errors
    /// Without `/dev/net/tun`, without the right to administer the network, or if the name is taken.
    pub fn open(name: &str) -> io::Result<Self> {
        let device = tappers::linux::Tun::create_named(tappers::Interface::from_cstr(
            &std::ffi::CString::new(name)?,
        )?)?;
        fcntl_setfl(device.as_fd(), fcntl_getfl(device.as_fd())? | OFlags::NONBLOCK)?;
        let name = device.name()?.name().to_string_lossy().into_owned();
        let mut control = Netlink::route()?;
        let interface = control.interface(&name)?;
        // The kernel would greet routers and groups through it (RFC 4861 § 6.3.7, RFC 3810): packets that nobody asked for.
        // A machine that forwards packets has joined the group of routers already; it forgets this without a word on a
        // device too narrow for IPv6 (RFC 8200 § 5).
        control.without_groups(interface, TOO_NARROW)?;
        control.without_groups(interface, MTU)?;
        // Where there is no IPv6, there is nothing to switch off.
        let _ = fs::write(format!("/proc/sys/net/ipv6/conf/{name}/disable_ipv6"), "1");
        control.bring_up(interface, Some(MTU), Some(QUEUE_PACKETS))?;
        let device = device.as_fd().try_clone_to_owned()?;
        Ok(Self { device, name, interface, control: Mutex::new(control) })
    }

    /// A device that another process made and passed on. `control` was opened in the device's network namespace; it need
    /// have no rights, but then only what is read from the device's counts works.
    ///
    /// # Errors
    /// If there is no device of this name where `control` was opened.
    pub fn passed(device: OwnedFd, name: String, control: Netlink) -> io::Result<Self> {
        let interface = control.interface(&name)?;
        Ok(Self { device, name, interface, control: Mutex::new(control) })
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Gives the device an address, with the peer's at its other end, of the same family; for a thread in the device's
    /// network namespace.
    ///
    /// # Errors
    /// What the kernel says; `NotFound` if it has no IPv6.
    pub fn add_address(&self, own: impl Into<IpAddr>, peer: impl Into<IpAddr>) -> io::Result<()> {
        let (own, peer) = (own.into(), peer.into());
        let mut control = self.control();
        if own.is_ipv4() {
            return control.add_address(self.interface, own, peer);
        }
        // Without an address of the kernel's own, with which it would look for routers.
        for (name, value) in [("addr_gen_mode", "1"), ("accept_ra", "0"), ("disable_ipv6", "0")] {
            fs::write(format!("/proc/sys/net/ipv6/conf/{}/{name}", self.name), value)?;
        }
        control.add_address(self.interface, own, own)?;
        control.add_route(self.interface, &Route::to_host(peer))?;
        // The kernel makes addresses of IPv6 work when it finds the time.
        for _ in 0..LOOKS {
            if control.takes(own)? {
                return Ok(());
            }
            thread::sleep(BETWEEN_LOOKS);
        }
        Err(io::ErrorKind::TimedOut.into())
    }

    /// Leads packets through the device.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn add_route(&self, route: &Route) -> io::Result<()> {
        self.control().add_route(self.interface, route)
    }

    /// Packets that the device dropped because its queue was full: nobody read them in time.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn dropped(&self) -> io::Result<u64> {
        self.control().dropped(self.interface)
    }

    fn control(&self) -> MutexGuard<'_, Netlink> {
        self.control.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}

/// How often and for how long an address may take to work: 1 s at most.
const LOOKS: u32 = 1000;
const BETWEEN_LOOKS: Duration = Duration::from_millis(1);
/// That of Ethernet, in bytes.
const MTU: u32 = 1500;
/// Below the least MTU of IPv6, in bytes.
const TOO_NARROW: u32 = 1279;
/// The device's own queue: enough for what comes while the router looks elsewhere, so that no second bottleneck is here.
/// 10000 packets of 1500 B are 120 ms at 1 Gbit/s.
const QUEUE_PACKETS: u32 = 10_000;
