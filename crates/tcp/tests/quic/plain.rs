//! Crypto of quinn-proto without cryptography: packets stay readable, equal seeds give equal bytes,
//! and each packet can be recorded. Handshake messages follow the order of TLS 1.3.

use std::any::Any;
use std::sync::{Arc, Mutex};

use bytes::BytesMut;
use quinn_proto::crypto::{
    self, AeadKey, CryptoError, ExportKeyingMaterialError, HandshakeTokenKey, HeaderKey, HmacKey,
    KeyPair, Keys, PacketKey, Session, UnsupportedVersion,
};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{ConnectError, ConnectionId, Side, TransportError};

/// Packet number space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    Initial,
    Handshake,
    Data,
}

/// Record of a packet sent.
#[derive(Clone, Debug)]
pub struct Written {
    pub space: Space,
    pub number: u64,
    /// Frames without header and tag.
    pub frames: Vec<u8>,
    /// Size of the packet, bytes.
    pub size: usize,
}

/// Packets that an endpoint has written and the test has not read yet.
pub type Log = Arc<Mutex<Vec<Written>>>;

/// Bytes that an authenticated cipher adds.
const TAG: usize = 16;
/// Bytes of the packet number at the start of the tag. The number expanded from a packet that
/// others overtook may be wrong (RFC 9000, appendix A.3): then the tag does not authenticate it.
const NUMBER: usize = size_of::<u64>();

/// Keys of one space.
struct Plain {
    space: Space,
    log: Option<Log>,
}

impl PacketKey for Plain {
    fn encrypt(&self, number: u64, packet: &mut [u8], header: usize) {
        let tag = packet.len() - TAG;
        packet[tag..][..NUMBER].copy_from_slice(&number.to_be_bytes());
        let Some(log) = &self.log else { return };
        let frames = packet[header..tag].to_vec();
        let written = Written { space: self.space, number, frames, size: packet.len() };
        log.lock().expect("nobody panicked").push(written);
    }

    fn decrypt(&self, number: u64, _: &[u8], payload: &mut BytesMut) -> Result<(), CryptoError> {
        let tag = payload.split_off(payload.len().checked_sub(TAG).ok_or(CryptoError)?);
        if tag[..NUMBER] == number.to_be_bytes() { Ok(()) } else { Err(CryptoError) }
    }

    fn tag_len(&self) -> usize {
        TAG
    }

    fn confidentiality_limit(&self) -> u64 {
        u64::MAX
    }

    fn integrity_limit(&self) -> u64 {
        u64::MAX
    }
}

impl HeaderKey for Plain {
    fn decrypt(&self, _: usize, _: &mut [u8]) {}
    fn encrypt(&self, _: usize, _: &mut [u8]) {}
    fn sample_size(&self) -> usize {
        TAG
    }
}

/// Signatures and tokens without a secret.
pub struct NoSecret;

impl HmacKey for NoSecret {
    fn sign(&self, _: &[u8], signature: &mut [u8]) {
        // A token of stateless resets must not look like a tag, which has few ones.
        signature.fill(1);
    }
    fn signature_len(&self) -> usize {
        32
    }
    fn verify(&self, _: &[u8], _: &[u8]) -> Result<(), CryptoError> {
        Ok(())
    }
}

impl HandshakeTokenKey for NoSecret {
    fn aead_from_hkdf(&self, _: &[u8]) -> Box<dyn AeadKey> {
        Box::new(Self)
    }
}

impl AeadKey for NoSecret {
    fn seal(&self, _: &mut Vec<u8>, _: &[u8]) -> Result<(), CryptoError> {
        Ok(())
    }
    fn open<'a>(&self, data: &'a mut [u8], _: &[u8]) -> Result<&'a mut [u8], CryptoError> {
        Ok(data)
    }
}

/// Crypto configuration of client and server; packets are recorded in the log, if there is one.
pub struct Open(pub Option<Log>);

impl Open {
    fn session(&self, side: Side, own: &TransportParameters) -> Box<dyn Session> {
        let mut parameters = Vec::new();
        own.write(&mut parameters);
        let log = self.0.clone();
        Box::new(Handshake { side, log, parameters, peer: None, level: Space::Initial, heard: 0 })
    }
}

impl crypto::ClientConfig for Open {
    fn start_session(
        self: Arc<Self>,
        _: u32,
        _: &str,
        parameters: &TransportParameters,
    ) -> Result<Box<dyn Session>, ConnectError> {
        Ok(self.session(Side::Client, parameters))
    }
}

impl crypto::ServerConfig for Open {
    fn initial_keys(&self, _: u32, _: &ConnectionId) -> Result<Keys, UnsupportedVersion> {
        Ok(keys(Space::Initial, &self.0))
    }
    fn retry_tag(&self, _: u32, _: &ConnectionId, _: &[u8]) -> [u8; 16] {
        [0; 16]
    }
    fn start_session(self: Arc<Self>, _: u32, own: &TransportParameters) -> Box<dyn Session> {
        self.session(Side::Server, own)
    }
}

fn keys(space: Space, log: &Option<Log>) -> Keys {
    let plain = || Plain { space, log: log.clone() };
    Keys {
        header: KeyPair { local: Box::new(plain()), remote: Box::new(plain()) },
        packet: KeyPair { local: Box::new(plain()), remote: Box::new(plain()) },
    }
}

/// Messages in the order of TLS 1.3: client hello with the client's parameters; server hello, then
/// the server's parameters; finished.
struct Handshake {
    side: Side,
    log: Option<Log>,
    parameters: Vec<u8>,
    peer: Option<TransportParameters>,
    /// Highest level for which there are keys.
    level: Space,
    /// Messages read.
    heard: u32,
}

impl Session for Handshake {
    fn initial_keys(&self, _: &ConnectionId, _: Side) -> Keys {
        keys(Space::Initial, &self.log)
    }
    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        None
    }
    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        None
    }
    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        None
    }
    fn early_data_accepted(&self) -> Option<bool> {
        None
    }
    fn is_handshaking(&self) -> bool {
        self.heard < 2
    }

    fn read_handshake(&mut self, message: &[u8]) -> Result<bool, TransportError> {
        let has_parameters =
            matches!((self.side, self.heard), (Side::Server, 0) | (Side::Client, 1));
        if has_parameters {
            self.peer = TransportParameters::read(self.side, &mut &*message).ok();
        }
        self.heard += 1;
        Ok(false)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        Ok(self.peer)
    }

    fn write_handshake(&mut self, out: &mut Vec<u8>) -> Option<Keys> {
        let next = match (self.side, self.level, self.heard) {
            (Side::Client, Space::Initial, 0) => {
                // Called before each answer; the parameters are sent once.
                out.append(&mut self.parameters);
                return None;
            }
            (Side::Client, Space::Initial, _) => Space::Handshake,
            (Side::Server, Space::Initial, 1..) => {
                out.extend(b"server hello");
                Space::Handshake
            }
            (Side::Server, Space::Handshake, _) => {
                out.append(&mut self.parameters);
                Space::Data
            }
            (Side::Client, Space::Handshake, 2..) => {
                out.extend(b"finished");
                Space::Data
            }
            _ => return None,
        };
        self.level = next;
        Some(keys(next, &self.log))
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        Some(keys(Space::Data, &self.log).packet)
    }
    fn is_valid_retry(&self, _: &ConnectionId, _: &[u8], _: &[u8]) -> bool {
        false
    }
    fn export_keying_material(
        &self,
        _: &mut [u8],
        _: &[u8],
        _: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        Err(ExportKeyingMaterialError)
    }
}
