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

/// A TUN device: packets that the kernel sends through it are read here, packets written here are
/// received by the kernel. Without offloads, packets are no larger than its MTU. The kernel
/// removes the device when its last descriptor is closed.
pub struct Tun {
    device: OwnedFd,
    name: String,
    interface: Interface,
    /// Netlink socket opened in the device's network namespace.
    control: Mutex<Netlink>,
}

impl fmt::Debug for Tun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tun").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Tun {
    /// Creates a device in the calling thread's network namespace, up and without address. `%d` in
    /// `name` stands for a free number.
    ///
    /// # Errors
    /// Without `/dev/net/tun`, without the right to administer the network, or if the name is
    /// taken.
    pub fn open(name: &str) -> io::Result<Self> {
        let device = tappers::linux::Tun::create_named(tappers::Interface::from_cstr(
            &std::ffi::CString::new(name)?,
        )?)?;
        fcntl_setfl(device.as_fd(), fcntl_getfl(device.as_fd())? | OFlags::NONBLOCK)?;
        let name = device.name()?.name().to_string_lossy().into_owned();
        let mut control = Netlink::route()?;
        let interface = control.interface(&name)?;
        // The kernel would send messages to routers and groups through it (RFC 4861 § 6.3.7, RFC
        // 3810), which no program asked for. A forwarding machine has joined the routers' group
        // already; it leaves it silently on a device whose MTU is too small for IPv6 (RFC 8200 §
        // 5).
        control.without_groups(interface, TOO_NARROW)?;
        control.without_groups(interface, MTU)?;
        // Without IPv6 the file does not exist.
        let _ = fs::write(format!("/proc/sys/net/ipv6/conf/{name}/disable_ipv6"), "1");
        control.bring_up(interface, Some(MTU), Some(QUEUE_PACKETS))?;
        let device = device.as_fd().try_clone_to_owned()?;
        Ok(Self { device, name, interface, control: Mutex::new(control) })
    }

    /// Wraps a device that another process created and passed on. `control` was opened in the
    /// device's network namespace. Without rights it can only read the device's counters.
    ///
    /// # Errors
    /// If `control`'s namespace has no device of this name.
    pub fn passed(device: OwnedFd, name: String, control: Netlink) -> io::Result<Self> {
        let interface = control.interface(&name)?;
        Ok(Self { device, name, interface, control: Mutex::new(control) })
    }

    /// Returns the device's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Adds an address to the device, with its peer's address of the same family. The calling
    /// thread must be in the device's network namespace.
    ///
    /// # Errors
    /// Those of the kernel; `NotFound` if it has no IPv6, `TimedOut` if an IPv6 address is not
    /// active within 1 s.
    pub fn add_address(&self, own: impl Into<IpAddr>, peer: impl Into<IpAddr>) -> io::Result<()> {
        let (own, peer) = (own.into(), peer.into());
        let mut control = self.control();
        if own.is_ipv4() {
            return control.add_address(self.interface, own, peer);
        }
        // No link-local address of the kernel's own, with which it would solicit routers.
        for (name, value) in [("addr_gen_mode", "1"), ("accept_ra", "0"), ("disable_ipv6", "0")] {
            fs::write(format!("/proc/sys/net/ipv6/conf/{}/{name}", self.name), value)?;
        }
        control.add_address(self.interface, own, own)?;
        control.add_route(self.interface, &Route::to_host(peer))?;
        // The kernel activates IPv6 addresses asynchronously.
        for _ in 0..MAX_POLLS {
            if control.takes(own)? {
                return Ok(());
            }
            thread::sleep(POLL_INTERVAL);
        }
        Err(io::ErrorKind::TimedOut.into())
    }

    /// Adds a route through the device.
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn add_route(&self, route: &Route) -> io::Result<()> {
        self.control().add_route(self.interface, route)
    }

    /// Returns the number of packets that the device dropped because its queue was full: they were
    /// not read in time.
    ///
    /// # Errors
    /// Those of the kernel.
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

/// Number and interval of checks that an address works: 1 s in total.
const MAX_POLLS: u32 = 1000;
const POLL_INTERVAL: Duration = Duration::from_millis(1);
/// Ethernet's MTU, bytes.
const MTU: u32 = 1500;
/// Largest MTU below the minimum of IPv6, bytes.
const TOO_NARROW: u32 = 1279;
/// Length of the device's queue: it holds arrivals while the router is busy, so that it is no
/// second bottleneck. 10000 packets of 1500 B are 120 ms at 1 Gbit/s.
const QUEUE_PACKETS: u32 = 10_000;
