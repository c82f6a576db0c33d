//! Errors, with remedies and the exit codes of the `cwnd` command.

use crate::family::Controller;
use crate::name::{self, NAME_BYTES};

/// Reason why a command failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The process lacks the privileges to load programs into the kernel.
    #[error(
        "loading a controller into the kernel needs root \
         (or CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN)"
    )]
    Rights,
    /// The kernel has no type information (BTF).
    #[error("this kernel has no type information ({0} is missing)")]
    NoBtf(&'static str),
    /// The kernel does not accept congestion controllers as eBPF.
    #[error("this kernel ({0}) takes no congestion controllers as eBPF")]
    NoStructOps(String),
    /// The kernel refused, and is older than the oldest tested version.
    #[error("this kernel ({0}) is too old for the controllers: its verifier refused them")]
    TooOld(String),
    /// No BPF file system is mounted for pins.
    #[error("no BPF file system at {0}, where controllers are pinned")]
    NoBpffs(String),
    /// The name belongs to another controller, or to programs without a table.
    #[error("the kernel has something named {0} already")]
    NameTaken(String),
    /// The name is invalid for the kernel or as a file name.
    #[error("{0:?} is no name of a controller")]
    Name(String),
    /// A setting has an invalid value.
    #[error("{option} is {range}, not {value}")]
    Setting {
        /// Option as the user wrote it.
        option: String,
        /// Valid range of the value.
        range: String,
        /// Value as the user wrote it.
        value: String,
    },
    /// The controller does not have the option.
    #[error("{controller} has no {option}")]
    NotApplicable {
        /// Controller that was given.
        controller: Controller,
        /// Option as the user wrote it.
        option: String,
    },
    /// The controller processes packets at interfaces, and no interface was given.
    #[error("{0} sees packets at interfaces, and none is given")]
    NoInterfaceGiven(Controller),
    /// The options would select every connection of the host.
    #[error("{0} would be for every connection of this host")]
    WholeHost(Controller),
    /// The interface does not exist.
    #[error("no interface is named {0}")]
    NoInterface(String),
    /// The kernel is too old to pin a program at an interface.
    #[error("this kernel ({0}) can leave nothing at an interface without a process that holds it")]
    NoInterfaceLinks(String),
    /// No cgroup v2 hierarchy is mounted.
    #[error("control groups (version 2) are not mounted")]
    NoGroups,
    /// No controller of that name is loaded.
    #[error("no controller named {0} was loaded by this program")]
    Unknown(String),
    /// The controller was loaded by a version of this program with another layout of its info map.
    #[error("{0} was loaded by another version of this program")]
    OtherVersion(String),
    /// A running process holds the controller.
    #[error("{name} is held by process {pid}")]
    Held {
        /// Name of the controller.
        name: String,
        /// Id of the process that holds it.
        pid: u32,
    },
    /// A user's object file, or what is asked of it, is wrong.
    #[error("{0}")]
    Own(String),
    /// The kernel does not have a function that an object uses.
    #[error("this kernel ({release}) has no function `{name}` for eBPF")]
    NoFunction {
        /// Release of the kernel.
        release: String,
        /// Name of the function.
        name: String,
    },
    /// The kernel or libbpf refused an operation.
    #[error("the kernel refused {what}: {why}")]
    Refused {
        /// Operation that was refused.
        what: String,
        /// Reason that the kernel or libbpf gave.
        why: String,
    },
    /// A file could not be read or written.
    #[error("{0}")]
    Io(#[from] std::io::Error),
}

impl Error {
    /// Returns the remedy, if there is one.
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
            Self::NotApplicable { controller, .. } => {
                let family = controller.family();
                let options: Vec<String> = family
                    .settings
                    .iter()
                    .filter(|setting| setting.kind.has_option())
                    .map(|setting| name::option(setting.name))
                    .chain(family.attachment.options().iter().map(|option| (*option).to_owned()))
                    .collect();
                format!("it has {}", options.join(", "))
            }
            Self::NoInterfaceGiven(_) => "name them: `--interface eth0`".to_owned(),
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
            Self::NoFunction { .. } => {
                "declare only what the kernel exports to eBPF (kfuncs), or load its module"
                    .to_owned()
            }
            Self::Own(_) | Self::Io(_) => return None,
        })
    }

    /// Returns the exit code: 1 failed, 2 usage, 3 the machine lacks something.
    #[must_use]
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::Rights
            | Self::NoBtf(_)
            | Self::NoStructOps(_)
            | Self::TooOld(_)
            | Self::NoBpffs(_)
            | Self::NoInterfaceLinks(_)
            | Self::NoFunction { .. }
            | Self::NoGroups => 3,
            Self::Name(_)
            | Self::Own(_)
            | Self::Setting { .. }
            | Self::NotApplicable { .. }
            | Self::NoInterfaceGiven(_)
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
