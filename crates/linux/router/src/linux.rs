//! Interface to the Linux kernel: TUN devices, network namespaces, netlink, and the loop in real
//! time.

mod clock;
mod front;
pub mod keeper;
mod linger;
mod link;
mod names;
mod namespace;
mod nat;
pub mod netlink;
mod place;
pub mod resolver;
mod run;
mod tun;

pub use clock::monotonic;
pub use front::{Ended, Front, Keeper, Manner, create_file};
pub use link::Link;
pub use names::{Name, Names, system_servers};
pub use namespace::Namespace;
pub use nat::Nat;
pub use netlink::{Interface, Netlink, Route};
pub use place::{Addresses, Devices, Ends, Place};
pub use run::{Running, Stop, realtime, run, start};
pub use tun::Tun;
