//! Interface to the Linux kernel: TUN devices, network namespaces, netlink, and the loop in real
//! time.

mod clock;
mod dns_relay;
mod linger;
mod link;
mod link_namespace;
mod namespace;
mod nat;
pub mod netlink;
pub mod privileged;
pub mod resolver;
mod run;
mod tun;
mod unprivileged;

pub use clock::monotonic;
pub use dns_relay::{DnsRelay, RelayedServer, system_servers};
pub use link::Link;
pub use link_namespace::{Addresses, Devices, Ends, LinkNamespace};
pub use namespace::Namespace;
pub use nat::Nat;
pub use netlink::{Interface, Netlink, Route};
pub use run::{Running, Stop, realtime, run, start};
pub use tun::Tun;
pub use unprivileged::{
    CommandResult, PrivilegedProcess, RunOptions, UnprivilegedLink, create_file,
};
