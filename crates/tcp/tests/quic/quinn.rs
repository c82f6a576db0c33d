//! Client and server of quinn-proto in one process, without cryptography. Frames of their packets
//! are read as far as recovery needs them (RFC 9000 § 19).

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration as StdDuration, Instant};

use bytes::BytesMut;
use cwnd_quantity::{Duration, Time};
use cwnd_tcp::quic::AckRange;
use quinn_proto::{
    ClientConfig, Connection, ConnectionHandle, DatagramEvent, Dir, EcnCodepoint, Endpoint,
    EndpointConfig, Event, ServerConfig, StreamEvent, StreamId, TransportConfig,
};

use super::Adapter;
use super::plain::{Log, NoSecret, Open, Written};

/// An end: quinn's endpoint and its connection.
pub struct Peer {
    base: Instant,
    endpoint: Endpoint,
    connection: Option<(ConnectionHandle, Connection)>,
    log: Log,
    remote: SocketAddr,
}

/// A datagram that an end sent, and its packets.
pub struct Datagram {
    pub bytes: BytesMut,
    pub packets: Vec<Written>,
    pub ecn: Option<EcnCodepoint>,
}

fn address(port: u16) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, port).into()
}

fn transport() -> TransportConfig {
    let mut config = TransportConfig::default();
    config
        .max_idle_timeout(None)
        .mtu_discovery_config(None)
        .allow_spin(false)
        .enable_segmentation_offload(false);
    config
}

impl Peer {
    fn new(base: Instant, seed: u64, server: Option<Arc<ServerConfig>>, log: Log) -> Self {
        let mut rng = [0; 32];
        rng[..8].copy_from_slice(&seed.to_le_bytes());
        let mut config = EndpointConfig::new(Arc::new(NoSecret));
        config.grease_quic_bit(false).rng_seed(Some(rng));
        let remote = address(if server.is_some() { 1000 } else { 2000 });
        let endpoint = Endpoint::new(Arc::new(config), server, false, Some(rng));
        Self { base, endpoint, connection: None, log, remote }
    }

    /// Creates a server that waits for a connection.
    pub fn server(base: Instant, seed: u64) -> Self {
        let log = Log::default();
        let open = Arc::new(Open(Some(Arc::clone(&log))));
        let mut config = ServerConfig::new(open, Arc::new(NoSecret));
        config.transport_config(Arc::new(transport()));
        Self::new(base, seed ^ 1, Some(Arc::new(config)), log)
    }

    /// Creates a client that connects at once, with this controller.
    pub fn client(base: Instant, seed: u64, controller: &Adapter) -> Self {
        let log = Log::default();
        let mut config = ClientConfig::new(Arc::new(Open(Some(Arc::clone(&log)))));
        let mut transport = transport();
        transport.congestion_controller_factory(Arc::new(controller.clone()));
        config.transport_config(Arc::new(transport));
        let mut peer = Self::new(base, seed, None, log);
        let connection = peer.endpoint.connect(base, config, peer.remote, "server");
        peer.connection = Some(connection.expect("the configuration is complete"));
        peer
    }

    fn instant(&self, now: Time) -> Instant {
        self.base + StdDuration::from_nanos(now.0)
    }

    /// Returns the connection.
    pub fn connection(&mut self) -> &mut Connection {
        &mut self.connection.as_mut().expect("it is connected").1
    }

    /// Returns the time of the next timer; `Time::NEVER` if none runs.
    pub fn next_timer(&mut self) -> Time {
        let base = self.base;
        let next = self.connection.as_mut().and_then(|(_, connection)| connection.poll_timeout());
        next.map_or(Time::NEVER, |at| Time(at.duration_since(base).as_nanos() as u64))
    }

    /// Handles the timers that are due.
    pub fn on_timer(&mut self, now: Time) {
        let now = self.instant(now);
        self.connection().handle_timeout(now);
        self.exchange();
    }

    /// Processes a datagram.
    pub fn receive(&mut self, now: Time, bytes: BytesMut, ecn: Option<EcnCodepoint>) {
        let (now, remote) = (self.instant(now), self.remote);
        let mut answer = Vec::new();
        match self.endpoint.handle(now, remote, None, ecn, bytes, &mut answer) {
            Some(DatagramEvent::ConnectionEvent(_, event)) => self.connection().handle_event(event),
            Some(DatagramEvent::NewConnection(incoming)) => {
                let accepted = self.endpoint.accept(incoming, now, &mut answer, None);
                self.connection = Some(accepted.map_err(|error| error.cause).expect("it is open"));
            }
            Some(DatagramEvent::Response(_)) | None => {}
        }
        self.exchange();
    }

    /// Exchanges events between the connection and its endpoint.
    fn exchange(&mut self) {
        let Some((handle, connection)) = &mut self.connection else { return };
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(*handle, event) {
                connection.handle_event(event);
            }
        }
    }

    /// Returns the next datagram, if one is to be sent now.
    pub fn transmit(&mut self, now: Time) -> Option<Datagram> {
        let (now, mut buffer) = (self.instant(now), Vec::new());
        let (_, connection) = self.connection.as_mut()?;
        let transmit = connection.poll_transmit(now, 1, &mut buffer)?;
        let packets = core::mem::take(&mut *self.log.lock().expect("nobody panicked"));
        let bytes = BytesMut::from(&buffer[..transmit.size]);
        Some(Datagram { bytes, packets, ecn: transmit.ecn })
    }

    /// Opens a stream, writes `bytes` bytes and finishes it.
    pub fn write(&mut self, bytes: usize) -> StreamId {
        let connection = self.connection();
        let stream = connection.streams().open(Dir::Uni).expect("the server allows one");
        let written = connection.send_stream(stream).write(&vec![0; bytes]);
        assert_eq!(written, Ok(bytes), "all is below the windows of stream and connection");
        connection.send_stream(stream).finish().expect("it is open");
        stream
    }

    /// `true` if the whole stream is acknowledged.
    pub fn has_finished(&mut self, stream: StreamId) -> bool {
        let mut finished = false;
        while let Some(event) = self.connection().poll() {
            assert!(!matches!(event, Event::ConnectionLost { .. }), "{event:?}");
            finished |=
                matches!(event, Event::Stream(StreamEvent::Finished { id }) if id == stream);
        }
        finished
    }
}

/// Result of reading a packet's frames.
#[derive(Clone, Debug, Default)]
pub struct Frames {
    pub ack: Option<Ack>,
    /// `true` if it has a frame other than ACK and PADDING (RFC 9002 § 2; quinn sends no
    /// CONNECTION_CLOSE here).
    pub ack_eliciting: bool,
    pub padded: bool,
}

#[derive(Clone, Debug)]
pub struct Ack {
    pub ranges: Vec<AckRange>,
    pub delay: Duration,
    pub ce: u64,
}

/// Exponent of the ACK Delay field (§ 18.2: ack_delay_exponent).
const DELAY_EXPONENT: u32 = 3;

impl Frames {
    /// Reads up to the first frame that never comes before an ACK.
    pub fn read(mut bytes: &[u8]) -> Self {
        let mut frames = Self::default();
        while let Some((&kind, rest)) = bytes.split_first() {
            bytes = rest;
            match kind {
                0x00 => frames.padded = true,
                0x02 | 0x03 => frames.ack = Some(Ack::read(&mut bytes, kind == 0x03)),
                // PING and HANDSHAKE_DONE.
                0x01 | 0x1e => frames.ack_eliciting = true,
                // RETIRE_CONNECTION_ID, which quinn writes before an ACK.
                0x19 => {
                    frames.ack_eliciting = true;
                    integer(&mut bytes);
                }
                _ => {
                    frames.ack_eliciting = true;
                    break;
                }
            }
        }
        frames
    }
}

impl Ack {
    /// Reads an ACK frame (§ 19.3).
    fn read(bytes: &mut &[u8], ecn: bool) -> Self {
        let last = integer(bytes);
        let delay = Duration::from_micros(integer(bytes) << DELAY_EXPONENT);
        let more = integer(bytes);
        let mut first = last - integer(bytes);
        let mut ranges = vec![AckRange { first, last }];
        for _ in 0..more {
            let last = first - integer(bytes) - 2;
            first = last - integer(bytes);
            ranges.push(AckRange { first, last });
        }
        let counts = if ecn { [integer(bytes), integer(bytes), integer(bytes)] } else { [0; 3] };
        Self { ranges, delay, ce: counts[2] }
    }
}

/// Reads a variable-length integer (§ 16).
fn integer(bytes: &mut &[u8]) -> u64 {
    let len = 1 << (bytes[0] >> 6);
    let (number, rest) = bytes.split_at(len);
    *bytes = rest;
    let first = u64::from(number[0] & 0x3f);
    number[1..].iter().fold(first, |value, &byte| value << 8 | u64::from(byte))
}

#[test]
fn an_acknowledgement_is_read_as_rfc_9000_writes_it() {
    // Largest 300, delay 2 · 8 µs, one more range, 4 packets, a gap of 2, 1 packet, 5 CE.
    let packet = [0x01, 0x03, 0x41, 0x2c, 0x02, 0x01, 0x03, 0x01, 0x00, 0x07, 0x00, 0x05, 0x00];
    let frames = Frames::read(&packet);
    let ack = frames.ack.expect("there is one");
    let range = |first, last| AckRange { first, last };
    assert_eq!(ack.ranges, [range(297, 300), range(294, 294)]);
    assert_eq!((ack.delay, ack.ce), (Duration::from_micros(16), 5));
    assert!(frames.ack_eliciting && frames.padded);
}
