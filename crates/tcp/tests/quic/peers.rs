//! Client and server of quinn-proto in one process.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration as StdDuration, Instant};

use bytes::BytesMut;
use cwnd_quantity::Time;
use quinn_proto::{
    ClientConfig, Connection, ConnectionHandle, DatagramEvent, Dir, EcnCodepoint, Endpoint,
    EndpointConfig, Event, ServerConfig, StreamEvent, StreamId, TransportConfig,
};

use crate::controller::Adapter;
use crate::crypto::{Log, NoSecret, Open, Written};

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
        let open = Arc::new(Open(Arc::clone(&log)));
        let mut config = ServerConfig::new(open, Arc::new(NoSecret));
        config.transport_config(Arc::new(transport()));
        Self::new(base, seed ^ 1, Some(Arc::new(config)), log)
    }

    /// Creates a client that connects at once, with this controller.
    pub fn client(base: Instant, seed: u64, controller: &Adapter) -> Self {
        let log = Log::default();
        let mut config = ClientConfig::new(Arc::new(Open(Arc::clone(&log))));
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
