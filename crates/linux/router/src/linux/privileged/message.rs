//! Messages with descriptors between the processes of a link, and the SEQPACKET socket that carries
//! them. Each message has a fixed shape and a bounded length; any other is rejected as a whole.

use std::io::{self, ErrorKind, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg,
    sendmsg, socketpair,
};

use crate::linux::dns_relay::{MAX_SERVERS, RelayedServer};
use crate::linux::link_namespace::Ends;

/// One end of a channel.
#[derive(Debug)]
pub struct Channel(OwnedFd);

/// A received message.
#[derive(Debug)]
pub struct Message {
    /// Content of the message.
    pub bytes: Vec<u8>,
    /// Descriptors received with it.
    pub descriptors: Vec<OwnedFd>,
}

impl Channel {
    /// Creates a channel, and returns both ends.
    ///
    /// # Errors
    /// If the process has too many open files.
    pub fn pair() -> io::Result<(Self, Self)> {
        let (kind, flags) = (SocketType::SEQPACKET, SocketFlags::CLOEXEC);
        let (one, other) = socketpair(AddressFamily::UNIX, kind, flags, None)?;
        Ok((Self(one), Self(other)))
    }

    /// Wraps a socket that is already open.
    pub const fn of(socket: OwnedFd) -> Self {
        Self(socket)
    }

    /// Returns the channel's socket.
    pub fn into_socket(self) -> OwnedFd {
        self.0
    }

    /// Sends a message; the descriptors stay open here.
    ///
    /// # Errors
    /// `InvalidInput` if the message is empty, too long or has too many descriptors; those of the
    /// kernel.
    pub fn send(&self, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
        let mut control = SendAncillaryBuffer::new(&mut room);
        if bytes.is_empty()
            || bytes.len() > MAX_MESSAGE_BYTES
            || (!descriptors.is_empty()
                && !control.push(SendAncillaryMessage::ScmRights(descriptors)))
        {
            return Err(ErrorKind::InvalidInput.into());
        }
        sendmsg(&self.0, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL)?;
        Ok(())
    }

    /// Returns the next message; `None` once the other end is closed and all messages are read.
    ///
    /// # Errors
    /// `InvalidData` if a message or its descriptors exceed their limit; those of the kernel.
    pub fn receive(&self) -> io::Result<Option<Message>> {
        let mut bytes = vec![0; MAX_MESSAGE_BYTES];
        let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
        let mut control = RecvAncillaryBuffer::new(&mut room);
        let got = rustix::io::retry_on_intr(|| {
            recvmsg(
                &self.0,
                &mut [IoSliceMut::new(&mut bytes)],
                &mut control,
                RecvFlags::CMSG_CLOEXEC,
            )
        })?;
        // Received descriptors are owned from here on, so that they are closed if the message is
        // refused.
        let mut descriptors = Vec::new();
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(sent) = message {
                descriptors.extend(sent);
            }
        }
        if got.flags.intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC) {
            return Err(ErrorKind::InvalidData.into());
        }
        bytes.truncate(got.bytes);
        Ok((!bytes.is_empty()).then_some(Message { bytes, descriptors }))
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Request of the unprivileged process to the keeper; each comes once, in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Creates the namespace behind the link.
    Make(Make),
    /// Starts COMMAND in it.
    Start(Start),
}

/// Request for a namespace behind a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Make {
    /// User that COMMAND will run as.
    pub user: u32,
    /// `true` if connections request and accept ECN, `false` if they do neither; `None` leaves it
    /// to the system.
    pub ecn: Option<bool>,
}

/// Request to start COMMAND. Its descriptors are listed at [`Start::descriptors`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Start {
    /// `true` if COMMAND may gain rights through set-user-ID programs.
    pub allow_sudo: bool,
    /// `true` if COMMAND gets its own terminal.
    pub terminal: bool,
    /// `true` if COMMAND starts in the foreground of that terminal.
    pub foreground: bool,
    /// `true` if a descriptor of its working directory is passed.
    pub directory: bool,
    /// File mode creation mask (umask(2)).
    pub umask: u16,
    /// Time for which connections may be silent after COMMAND's end before they are given up, ms.
    pub patience_ms: u32,
    /// DNS servers whose queries are relayed.
    pub names: Vec<RelayedServer>,
    /// Soft and hard resource limits, in the order of the resources' numbers.
    pub limits: Vec<[u64; 2]>,
}

/// Response of the keeper.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The namespace exists. The inner and outer device are passed, and a netlink socket of the
    /// inner network.
    Made(Made),
    /// COMMAND is about to start, and no process of the link has rights that COMMAND lacks.
    Started {
        /// `true` if COMMAND has its own `/proc`.
        own_proc: bool,
    },
    /// The request failed.
    Failed {
        /// Error number of the system; 0 if the error is another one.
        errno: i32,
        /// Message of the error.
        text: String,
    },
}

/// Facts about the namespace behind a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    /// Names of the inner and of the outer device.
    pub devices: [String; 2],
    /// IPv4 addresses of both ends.
    pub ends: Ends<Ipv4Addr>,
    /// IPv6 addresses of both ends, if there is IPv6.
    pub ends6: Option<Ends<Ipv6Addr>>,
    /// Reason why hosts beyond this machine cannot be reached; `None` if they can.
    pub unreachable_reason: Option<String>,
    /// Reason why hosts beyond this machine cannot be reached over IPv6; `None` if they can.
    pub unreachable_reason6: Option<String>,
}

/// Instructions of the keeper to the process that becomes COMMAND's parent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inside {
    /// User that it changes to; root makes it keep its rights.
    pub user: u32,
    pub group: u32,
    pub groups: Vec<u32>,
    pub start: Start,
}

impl Start {
    /// Returns the number of descriptors passed with it. They are the channel to the caller, the
    /// program to execute, the standard streams, and the terminal and working directory if any.
    pub fn descriptors(&self) -> usize {
        5 + usize::from(self.terminal) + usize::from(self.directory)
    }

    fn write(&self, to: &mut Vec<u8>) {
        let flags = [self.allow_sudo, self.terminal, self.foreground, self.directory];
        to.push(flags.iter().enumerate().map(|(i, &flag)| u8::from(flag) << i).sum());
        to.extend(self.umask.to_ne_bytes());
        to.extend(self.patience_ms.to_ne_bytes());
        to.push(self.names.len() as u8);
        for name in &self.names {
            write_address(name.server, to);
            to.extend(name.udp.to_ne_bytes());
            to.extend(name.tcp.to_ne_bytes());
        }
        to.push(self.limits.len() as u8);
        to.extend(self.limits.iter().flatten().flat_map(|limit| limit.to_ne_bytes()));
    }

    fn read(from: &mut Reader<'_>) -> Option<Self> {
        let flags = from.byte().filter(|flags| flags >> 4 == 0)?;
        let flag = |i: u8| flags >> i & 1 == 1;
        let umask = from.array().map(u16::from_ne_bytes).filter(|mask| mask >> 9 == 0)?;
        let patience_ms = from.number().filter(|&ms| ms <= MAX_PATIENCE_MS)?;
        let count = from.byte().map(usize::from).filter(|&n| n <= MAX_SERVERS)?;
        let name = |from: &mut Reader<'_>| {
            let server = from.address()?;
            let [udp, tcp] = [from.array()?, from.array()?].map(u16::from_ne_bytes);
            Some(RelayedServer { server, udp, tcp })
        };
        let names = (0..count).map(|_| name(from)).collect::<Option<_>>()?;
        let count = from.byte().filter(|&n| n <= MAX_LIMITS)?;
        let limit =
            |from: &mut Reader<'_>| Some([from.array()?, from.array()?].map(u64::from_ne_bytes));
        let limits = (0..count).map(|_| limit(from)).collect::<Option<_>>()?;
        Some(Self {
            allow_sudo: flag(0),
            terminal: flag(1),
            foreground: flag(2),
            directory: flag(3),
            umask,
            patience_ms,
            names,
            limits,
        })
    }
}

impl Request {
    /// Encodes the request to the keeper.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut to = Vec::new();
        match self {
            Self::Make(make) => {
                to.push(MAKE);
                to.extend(make.user.to_ne_bytes());
                to.push(make.ecn.map_or(2, u8::from));
            }
            Self::Start(start) => {
                to.push(START);
                start.write(&mut to);
            }
        }
        to
    }

    /// Decodes a request to the keeper.
    ///
    /// # Errors
    /// `InvalidData` if its type, its length or one of its values is not allowed.
    pub fn of_bytes(bytes: &[u8]) -> io::Result<Self> {
        read(bytes, |from| {
            Some(match from.byte()? {
                MAKE => {
                    let user = from.number()?;
                    let ecn = match from.byte()? {
                        0 => Some(false),
                        1 => Some(true),
                        2 => None,
                        _ => return None,
                    };
                    Self::Make(Make { user, ecn })
                }
                START => Self::Start(Start::read(from)?),
                _ => return None,
            })
        })
    }
}

impl Answer {
    /// Encodes the keeper's response.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut to = Vec::new();
        match self {
            Self::Made(made) => {
                to.push(MADE);
                for name in &made.devices {
                    write_text(name, &mut to);
                }
                to.extend(made.ends.caller.octets());
                to.extend(made.ends.behind.octets());
                to.push(u8::from(made.ends6.is_some()));
                if let Some(ends) = made.ends6 {
                    to.extend(ends.caller.octets());
                    to.extend(ends.behind.octets());
                }
                for reason in [&made.unreachable_reason, &made.unreachable_reason6] {
                    to.push(u8::from(reason.is_some()));
                    if let Some(reason) = reason {
                        write_text(reason, &mut to);
                    }
                }
            }
            Self::Started { own_proc } => to.extend([STARTED, u8::from(*own_proc)]),
            Self::Failed { errno, text } => {
                to.push(FAILED);
                to.extend(errno.to_ne_bytes());
                write_text(text, &mut to);
            }
        }
        to
    }

    /// Decodes a response of the keeper.
    ///
    /// # Errors
    /// `InvalidData` if its type, its length or one of its values is not allowed.
    pub fn of_bytes(bytes: &[u8]) -> io::Result<Self> {
        read(bytes, |from| {
            Some(match from.byte()? {
                MADE => {
                    let devices = [from.text()?, from.text()?];
                    let [caller, behind] = [from.array::<4>()?, from.array()?].map(Ipv4Addr::from);
                    let ends = Ends { caller, behind };
                    let ends6 = if from.flag()? {
                        let [caller, behind] =
                            [from.array::<16>()?, from.array()?].map(Ipv6Addr::from);
                        Some(Ends { caller, behind })
                    } else {
                        None
                    };
                    let mut reason =
                        || if from.flag()? { from.text().map(Some) } else { Some(None) };
                    let (confined, confined6) = (reason()?, reason()?);
                    Self::Made(Made {
                        devices,
                        ends,
                        ends6,
                        unreachable_reason: confined,
                        unreachable_reason6: confined6,
                    })
                }
                STARTED => Self::Started { own_proc: from.flag()? },
                FAILED => {
                    let errno = from.array().map(i32::from_ne_bytes)?;
                    Self::Failed { errno, text: from.text()? }
                }
                _ => return None,
            })
        })
    }

    /// Creates the response that reports an error.
    pub fn failed(error: &io::Error) -> Self {
        let text = error.to_string().chars().take(LONGEST_TEXT).collect();
        Self::Failed { errno: error.raw_os_error().unwrap_or(0), text }
    }

    /// Turns a reported failure into an error.
    ///
    /// # Errors
    /// If the response is [`Answer::Failed`].
    pub fn checked(self) -> io::Result<Self> {
        match self {
            Self::Failed { errno: 0, text } => Err(io::Error::other(text)),
            Self::Failed { errno, .. } => Err(io::Error::from_raw_os_error(errno)),
            answer => Ok(answer),
        }
    }
}

impl Inside {
    /// Encodes the instructions to COMMAND's parent.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut to = Vec::new();
        to.extend(self.user.to_ne_bytes());
        to.extend(self.group.to_ne_bytes());
        to.extend((self.groups.len() as u32).to_ne_bytes());
        to.extend(self.groups.iter().flat_map(|group| group.to_ne_bytes()));
        self.start.write(&mut to);
        to
    }

    /// Decodes instructions to COMMAND's parent.
    ///
    /// # Errors
    /// `InvalidData` if its length or one of its values is not allowed.
    pub fn of_bytes(bytes: &[u8]) -> io::Result<Self> {
        read(bytes, |from| {
            let (user, group, count) = (from.number()?, from.number()?, from.number()?);
            let groups = (0..count).map(|_| from.number()).collect::<Option<_>>()?;
            Some(Self { user, group, groups, start: Start::read(from)? })
        })
    }
}

fn read<T>(bytes: &[u8], what: impl FnOnce(&mut Reader<'_>) -> Option<T>) -> io::Result<T> {
    let mut from = Reader(bytes);
    what(&mut from)
        .filter(|_| from.0.is_empty())
        .ok_or_else(|| io::Error::new(ErrorKind::InvalidData, "a message that is none"))
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*first)
    }

    fn byte(&mut self) -> Option<u8> {
        self.array().map(|[byte]| byte)
    }

    fn flag(&mut self) -> Option<bool> {
        self.byte().filter(|&flag| flag < 2).map(|flag| flag == 1)
    }

    fn number(&mut self) -> Option<u32> {
        self.array().map(u32::from_ne_bytes)
    }

    fn address(&mut self) -> Option<IpAddr> {
        match self.byte()? {
            4 => self.array::<4>().map(IpAddr::from),
            6 => self.array::<16>().map(IpAddr::from),
            _ => None,
        }
    }

    fn text(&mut self) -> Option<String> {
        let length = self.array().map(u16::from_ne_bytes).map(usize::from)?;
        let (text, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        String::from_utf8(text.to_vec()).ok()
    }
}

fn write_address(address: IpAddr, to: &mut Vec<u8>) {
    to.push(if address.is_ipv4() { 4 } else { 6 });
    to.extend(crate::linux::netlink::octets(address));
}

fn write_text(text: &str, to: &mut Vec<u8>) {
    to.extend((text.len() as u16).to_ne_bytes());
    to.extend_from_slice(text.as_bytes());
}

/// Maximum length of a message, bytes, and maximum number of descriptors with it.
pub const MAX_MESSAGE_BYTES: usize = 4096;
pub const MAX_DESCRIPTORS: usize = 8;

const MAKE: u8 = 1;
const START: u8 = 2;
const MADE: u8 = 1;
const STARTED: u8 = 2;
const FAILED: u8 = 3;
/// Maximum of [`Start::patience_ms`].
pub const MAX_PATIENCE_MS: u32 = 60_000;
/// Number of resources in Linux (getrlimit(2)).
pub const MAX_LIMITS: u8 = 16;
/// Maximum length of an error message in characters, of up to four bytes each: it fits a message.
const LONGEST_TEXT: usize = 800;
