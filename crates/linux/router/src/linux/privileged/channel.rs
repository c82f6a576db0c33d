//! Messages with descriptors between two processes of a link, over a SEQPACKET socket.

use std::io::{self, ErrorKind, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg,
    sendmsg, socketpair,
};

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

/// Maximum length of a message, bytes, and maximum number of descriptors with it.
pub const MAX_MESSAGE_BYTES: usize = 4096;
pub const MAX_DESCRIPTORS: usize = 8;
