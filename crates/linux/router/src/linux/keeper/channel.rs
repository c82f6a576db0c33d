//! Messages and descriptors between two processes of one link, over a socket that keeps messages apart.

use std::io::{self, ErrorKind, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg,
    sendmsg, socketpair,
};

/// One end.
#[derive(Debug)]
pub struct Channel(OwnedFd);

/// What came in one piece.
#[derive(Debug)]
pub struct Parcel {
    /// The message.
    pub bytes: Vec<u8>,
    /// What came with it.
    pub descriptors: Vec<OwnedFd>,
}

impl Channel {
    /// Two ends.
    ///
    /// # Errors
    /// If the process has too many files open.
    pub fn pair() -> io::Result<(Self, Self)> {
        let (kind, flags) = (SocketType::SEQPACKET, SocketFlags::CLOEXEC);
        let (one, other) = socketpair(AddressFamily::UNIX, kind, flags, None)?;
        Ok((Self(one), Self(other)))
    }

    /// An end that is open already.
    pub const fn of(socket: OwnedFd) -> Self {
        Self(socket)
    }

    /// Its socket.
    pub fn into_socket(self) -> OwnedFd {
        self.0
    }

    /// Sends a message; the descriptors stay open here, too.
    ///
    /// # Errors
    /// `InvalidInput` if it is empty or too long, or what the kernel says.
    pub fn send(&self, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
        let mut control = SendAncillaryBuffer::new(&mut room);
        if bytes.is_empty()
            || bytes.len() > MOST_BYTES
            || (!descriptors.is_empty()
                && !control.push(SendAncillaryMessage::ScmRights(descriptors)))
        {
            return Err(ErrorKind::InvalidInput.into());
        }
        sendmsg(&self.0, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL)?;
        Ok(())
    }

    /// The next message; `None` after the last, when the other end is closed.
    ///
    /// # Errors
    /// `InvalidData` if there was more than a message may be, or what the kernel says.
    pub fn receive(&self) -> io::Result<Option<Parcel>> {
        let mut bytes = vec![0; MOST_BYTES];
        let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
        let mut control = RecvAncillaryBuffer::new(&mut room);
        let got = rustix::io::retry_on_intr(|| {
            recvmsg(
                &self.0,
                &mut [IoSliceMut::new(&mut bytes)],
                &mut control,
                RecvFlags::CMSG_CLOEXEC,
            )
        })?;
        // What came is closed if it is too much.
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
        Ok((!bytes.is_empty()).then_some(Parcel { bytes, descriptors }))
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// A message is no longer, and has no more descriptors with it.
pub const MOST_BYTES: usize = 4096;
pub const MOST_DESCRIPTORS: usize = 8;
