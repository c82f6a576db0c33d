//! What talks to the Linux kernel: TUN devices, network namespaces, netlink, and the loop in real time.

mod clock;
mod namespace;
pub mod netlink;
mod run;
mod tun;

pub use clock::{monotonic, time_of_day};
pub use namespace::Namespace;
pub use netlink::{Interface, Netlink};
pub use run::{Running, Stop, realtime, run, start};
pub use tun::Tun;
