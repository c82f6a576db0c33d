//! What talks to the Linux kernel: TUN devices, network namespaces, netlink, and the loop in real time.

mod clock;
mod link;
mod names;
mod namespace;
mod nat;
pub mod netlink;
mod run;
mod tun;

pub use clock::{monotonic, time_of_day};
pub use link::{Addresses, Ends, Link};
pub use names::{Names, system_servers};
pub use namespace::Namespace;
pub use nat::Nat;
pub use netlink::{Interface, Netlink, Route};
pub use run::{Running, Stop, realtime, run, start};
pub use tun::Tun;

/// The calling process is killed when the thread that started it ends, in whatever way. For what is to be called between
/// fork and exec, after any change of user.
///
/// # Errors
/// What the kernel says.
pub fn die_with_parent() -> std::io::Result<()> {
    Ok(rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?)
}
