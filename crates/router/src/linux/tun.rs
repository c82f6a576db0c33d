use std::fmt;
use std::fs;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

use crate::linux::netlink::{Interface, Netlink};

/// A TUN device: what the kernel sends to it is read, what is written to it the kernel receives. It has no offloads, so
/// that packets are no larger than its MTU. It is gone when it is dropped, or its process ends in whatever way.
pub struct Tun {
    device: tappers::linux::Tun,
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
        // The kernel would greet routers and groups through it (RFC 4861 § 6.3.7, RFC 3810): packets that nobody asked for.
        // Without IPv6 there is nothing to switch off.
        let _ = fs::write(format!("/proc/sys/net/ipv6/conf/{name}/disable_ipv6"), "1");
        let mut control = Netlink::route()?;
        let interface = control.interface(&name)?;
        control.bring_up(interface, Some(MTU), Some(QUEUE_PACKETS))?;
        Ok(Self { device, name, interface, control: Mutex::new(control) })
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Gives the device an address, with the peer's at its other end.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn add_address(&self, own: Ipv4Addr, peer: Ipv4Addr) -> io::Result<()> {
        self.control().add_address(self.interface, own, peer)
    }

    /// Routes a prefix through the device; by way of a gateway if there is one.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn add_route(&self, to: (Ipv4Addr, u8), gateway: Option<Ipv4Addr>) -> io::Result<()> {
        self.control().add_route(self.interface, to, gateway)
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

/// That of Ethernet, in bytes.
const MTU: u32 = 1500;
/// The device's own queue: enough for what comes while the router looks elsewhere, so that no second bottleneck is here.
/// 10000 packets of 1500 B are 120 ms at 1 Gbit/s.
const QUEUE_PACKETS: u32 = 10_000;
