//! Errors, each with a fix and the exit code that the `cwnd` command has for it.

use crate::family::{self, Controller};
use crate::name::NAME_BYTES;

/// Why something was not done.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No right to load programs into the kernel.
    #[error(
        "loading a controller into the kernel needs root \
         (or CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN)"
    )]
    Rights,
    /// The kernel does not describe its types.
    #[error("this kernel has no type information ({0} is missing)")]
    NoBtf(&'static str),
    /// The kernel has no congestion controllers as eBPF.
    #[error("this kernel ({0}) takes no congestion controllers as eBPF")]
    NoStructOps(String),
    /// The kernel is older than any that is known to do, and refused.
    #[error("this kernel ({0}) is too old for the controllers: its verifier refused them")]
    TooOld(String),
    /// Pins need a file system.
    #[error("no BPF file system at {0}, where controllers are pinned")]
    NoBpffs(String),
    /// Another controller has the name, or programs without a table.
    #[error("the kernel has something named {0} already")]
    NameTaken(String),
    /// A name that the kernel would not take.
    #[error("{0:?} is no name of a controller")]
    Name(String),
    /// A setting that has no such value.
    #[error("{option} is {range}, not {value}")]
    Setting {
        /// As it was given.
        option: String,
        /// What it can be.
        range: String,
        /// What it was.
        value: String,
    },
    /// A setting of another controller.
    #[error("{controller} has no {option}")]
    NotForIt {
        /// The controller.
        controller: Controller,
        /// As it was given.
        option: String,
    },
    /// Nowhere to hear of packets.
    #[error("{0} sees packets at interfaces, and none is given")]
    Deaf(Controller),
    /// Connections of everybody.
    #[error("{0} would be for every connection of this host")]
    WholeHost(Controller),
    /// No such interface.
    #[error("no interface is named {0}")]
    NoInterface(String),
    /// An old kernel.
    #[error("this kernel ({0}) can leave nothing at an interface without a process that holds it")]
    NoInterfaceLinks(String),
    /// No control groups of version 2.
    #[error("control groups (version 2) are not mounted")]
    NoGroups,
    /// Nothing of that name is loaded.
    #[error("no controller named {0} was loaded by this program")]
    Unknown(String),
    /// Its card is another.
    #[error("{0} was loaded by another version of this program")]
    OtherVersion(String),
    /// A process keeps it loaded.
    #[error("{name} is held by process {pid}")]
    Held {
        /// The controller's name.
        name: String,
        /// Who holds it.
        pid: u32,
    },
    /// The kernel, or libbpf, refused.
    #[error("the kernel refused {what}: {why}")]
    Refused {
        /// What was asked for.
        what: String,
        /// Its answer.
        why: String,
    },
    /// Reading or writing failed.
    #[error("{0}")]
    Io(#[from] std::io::Error),
}

impl Error {
    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Rights => {
                r#"run it as root, as in `sudo "$(command -v cwnd)" kernel …`"#.to_owned()
            }
            Self::NoBtf(_) => {
                "use a kernel with CONFIG_DEBUG_INFO_BTF (Debian, Ubuntu and Fedora have it)"
                    .to_owned()
            }
            Self::NoStructOps(_) => {
                "use Linux 6.1 or newer with CONFIG_BPF_JIT and CONFIG_DEBUG_INFO_BTF".to_owned()
            }
            Self::TooOld(_) => {
                "use Linux 6.1 or newer; --verbose shows what the verifier said".to_owned()
            }
            Self::NoBpffs(_) => "mount it: `mount -t bpf bpf /sys/fs/bpf`".to_owned(),
            Self::NameTaken(_) => "give another one with --name, or unload that one".to_owned(),
            Self::Name(_) => {
                format!("1 to {} letters, digits, `_`, `-` or `.`", NAME_BYTES - 1)
            }
            Self::Setting { option, .. } if option == "--beta-ecn" => {
                "RFC 8511 has 0.8 for Reno, its paper 0.85 for CUBIC".to_owned()
            }
            Self::Setting { .. } => return None,
            Self::NotForIt { controller, .. } => {
                let family = controller.family();
                let options: Vec<String> = family
                    .settings
                    .iter()
                    .filter(|setting| setting.kind.is_asked_for())
                    .map(|setting| family::option(setting.name))
                    .chain(family.place.options().iter().map(|option| (*option).to_owned()))
                    .collect();
                format!("it has {}", options.join(", "))
            }
            Self::Deaf(_) => "name them: `--interface eth0`".to_owned(),
            Self::WholeHost(_) => "say whose: --cgroup, --own-namespace or --address, \
                                   or --whole-host if that is meant"
                .to_owned(),
            Self::NoInterface(_) => "`ip link` shows those of this namespace".to_owned(),
            Self::NoInterfaceLinks(_) => {
                "load it without --pin, or use Linux 6.6 or newer".to_owned()
            }
            Self::NoGroups => "mount them: `mount -t cgroup2 none /sys/fs/cgroup`".to_owned(),
            Self::Unknown(_) => "`status` shows what is loaded".to_owned(),
            Self::OtherVersion(_) => {
                "use that version, end the command that holds it, or reboot".to_owned()
            }
            Self::Held { pid, .. } => format!("it goes when that process ends: `kill {pid}`"),
            Self::Refused { .. } => "--verbose shows the whole log".to_owned(),
            Self::Io(_) => return None,
        })
    }

    /// 1 failed, 2 usage, 3 the machine lacks something.
    #[must_use]
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::Rights
            | Self::NoBtf(_)
            | Self::NoStructOps(_)
            | Self::TooOld(_)
            | Self::NoBpffs(_)
            | Self::NoInterfaceLinks(_)
            | Self::NoGroups => 3,
            Self::Name(_)
            | Self::Setting { .. }
            | Self::NotForIt { .. }
            | Self::Deaf(_)
            | Self::WholeHost(_) => 2,
            Self::NameTaken(_)
            | Self::NoInterface(_)
            | Self::Unknown(_)
            | Self::OtherVersion(_)
            | Self::Held { .. }
            | Self::Refused { .. }
            | Self::Io(_) => 1,
        }
    }
}
