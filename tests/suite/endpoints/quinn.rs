//! quinn-proto as an endpoint of a simulated flow: a client that sends a stream, and a server that
//! reads it. All is quinn's own, congestion control too; only cryptography is missing.

#[expect(dead_code, reason = "no log of packets is read here")]
#[path = "../../../crates/tcp/tests/quic/plain.rs"]
mod plain;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Instant;

use bytes::BytesMut;
use cwnd_packet::Ecn;
use cwnd_quantity::{Duration, Time};
use cwnd_sim::{Datagram, Endpoint, EndpointStart, Report};
use plain::{NoSecret, Open};
use quinn_proto::congestion::ControllerFactory;
use quinn_proto::{
    ClientConfig, Connection, ConnectionHandle, ConnectionId, ConnectionIdGenerator, DatagramEvent,
    Dir, EcnCodepoint, EndpointConfig, Event, ServerConfig, StreamEvent, StreamId, TransportConfig,
};

/// Congestion control of quinn.
pub type Congestion = Arc<dyn ControllerFactory + Send + Sync>;

/// Bytes that a stream repeats: the receiver knows each byte by its number.
const PATTERN: [u8; 251 * 64] = {
    let mut pattern = [0; 251 * 64];
    let mut i = 0;
    while i < pattern.len() {
        pattern[i] = (i % 251) as u8;
        i += 1;
    }
    pattern
};

/// Returns the pattern from this byte of the stream on, at most `most` bytes.
fn pattern(offset: u64, most: u64) -> &'static [u8] {
    let rest = &PATTERN[(offset % 251) as usize..];
    &rest[..most.min(rest.len() as u64) as usize]
}

/// One end: quinn's endpoint with its connection, and an application.
pub struct Quinn {
    /// Start of the run; quinn's instants are this one plus simulated time.
    base: Instant,
    endpoint: quinn_proto::Endpoint,
    connection: Option<(ConnectionHandle, Connection)>,
    remote: SocketAddr,
    application: Application,
    report: Report,
}

enum Application {
    /// Writes bytes up to `end`, or until `stop`.
    Sends {
        stream: Option<StreamId>,
        written: u64,
        end: u64,
        stop: Time,
    },
    Receives {
        stream: Option<StreamId>,
        read: u64,
    },
}

/// Connection IDs in sequence. quinn's own are random whatever the seed.
struct Numbered(u64);

impl ConnectionIdGenerator for Numbered {
    fn generate_cid(&mut self) -> ConnectionId {
        self.0 += 1;
        ConnectionId::new(&self.0.to_be_bytes())
    }
    fn cid_len(&self) -> usize {
        8
    }
    fn cid_lifetime(&self) -> Option<std::time::Duration> {
        None
    }
}

/// Creates a client that sends to its server, as bytes and stop of the flow say.
#[expect(clippy::disallowed_methods, reason = "quinn has no instant but those after a real one")]
pub fn pair(mut start: EndpointStart, congestion: &Congestion) -> [Box<dyn Endpoint>; 2] {
    let base = Instant::now();
    let mut transport = TransportConfig::default();
    // 1,000 senders would buffer 10 MB each.
    transport.congestion_controller_factory(Arc::clone(congestion)).send_window(1 << 18);
    transport.max_idle_timeout(None).enable_segmentation_offload(false);
    let transport = Arc::new(transport);

    let mut config = ServerConfig::new(Arc::new(Open(None)), Arc::new(NoSecret));
    config.transport_config(Arc::clone(&transport));
    let receives = Application::Receives { stream: None, read: 0 };
    let server = Quinn::new(base, start.rng.bits(), Some(config), receives);

    let mut config = ClientConfig::new(Arc::new(Open(None)));
    config.transport_config(transport);
    let id = start.rng.bits().to_be_bytes();
    config.initial_dst_cid_provider(Arc::new(move || ConnectionId::new(&id)));
    let end = start.size.unwrap_or(u64::MAX);
    let stop = start.stop.unwrap_or(Time::NEVER);
    let sends = Application::Sends { stream: None, written: 0, end, stop };
    let mut client = Quinn::new(base, start.rng.bits(), None, sends);
    let connection = client.endpoint.connect(base, config, client.remote, "server");
    client.connection = Some(connection.expect("the configuration is complete"));
    [Box::new(client), Box::new(server)]
}

impl Quinn {
    fn new(base: Instant, seed: u64, server: Option<ServerConfig>, of: Application) -> Self {
        let mut rng = [0; 32];
        rng[..8].copy_from_slice(&seed.to_le_bytes());
        let mut config = EndpointConfig::new(Arc::new(NoSecret));
        config.rng_seed(Some(rng)).cid_generator(move || Box::new(Numbered(seed)));
        let endpoint =
            quinn_proto::Endpoint::new(Arc::new(config), server.map(Arc::new), true, None);
        let remote = (Ipv4Addr::LOCALHOST, 443).into();
        let report = Report { delivered_bytes: Some(0), ..Report::default() };
        Self { base, endpoint, connection: None, remote, application: of, report }
    }

    fn instant(&self, now: Time) -> Instant {
        self.base + std::time::Duration::from_nanos(now.0)
    }

    /// Exchanges events with the endpoint, runs the application and updates the report.
    fn proceed(&mut self, now: Time) {
        let Some((handle, connection)) = &mut self.connection else { return };
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(*handle, event) {
                connection.handle_event(event);
            }
        }
        while let Some(event) = connection.poll() {
            match event {
                Event::ConnectionLost { reason } => panic!("a connection was lost: {reason}"),
                Event::Stream(StreamEvent::Finished { .. }) => self.report.finished = true,
                _ => {}
            }
        }
        match &mut self.application {
            Application::Sends { stream, written, end, stop } => {
                if stream.is_none() {
                    *stream = connection.streams().open(Dir::Uni);
                }
                let Some(id) = *stream else { return };
                let mut sender = connection.send_stream(id);
                let limit = if now < *stop { *end } else { *written };
                while *written < limit
                    && let Ok(bytes) = sender.write(pattern(*written, limit - *written))
                {
                    *written += bytes as u64;
                }
                if *written == limit {
                    // An error says that it is finished already.
                    let _finished = sender.finish();
                }
            }
            Application::Receives { stream, read } => {
                *stream = stream.or_else(|| connection.streams().accept(Dir::Uni));
                let Some(id) = *stream else { return };
                let mut receiver = connection.recv_stream(id);
                if let Ok(mut chunks) = receiver.read(true) {
                    while let Ok(next) = chunks.next(PATTERN.len() - 251) {
                        let Some(chunk) = next else {
                            self.report.finished = true;
                            break;
                        };
                        let len = chunk.bytes.len() as u64;
                        assert!(chunk.bytes == pattern(*read, len), "wrong bytes at {read}");
                        *read += len;
                    }
                    let _transmit = chunks.finalize();
                }
                self.report.delivered_bytes = Some(*read);
            }
        }
        let path = connection.stats().path;
        let (reductions, lost) = (path.congestion_events, path.lost_packets);
        let new = reductions - self.report.loss_reductions - self.report.ecn_reductions;
        // quinn does not say which of its congestion events are marks: those without a new loss.
        if lost > self.report.lost {
            self.report.loss_reductions += new;
        } else {
            self.report.ecn_reductions += new;
        }
        self.report.lost = lost;
        self.report.cwnd = Some(path.cwnd);
        let has_sample = !connection.is_handshaking();
        self.report.rtt = has_sample.then_some(Duration(path.rtt.as_nanos() as u64));
    }
}

impl Endpoint for Quinn {
    fn poll_transmit(&mut self, now: Time) -> Option<Datagram> {
        let (now, mut payload) = (self.instant(now), Vec::new());
        let (_, connection) = self.connection.as_mut()?;
        let transmit = connection.poll_transmit(now, 1, &mut payload)?;
        let ecn = match transmit.ecn {
            None => Ecn::NotEct,
            Some(EcnCodepoint::Ect0) => Ecn::Ect0,
            Some(EcnCodepoint::Ect1) => Ecn::Ect1,
            Some(EcnCodepoint::Ce) => Ecn::Ce,
        };
        Some(Datagram { payload, ecn })
    }

    fn on_datagram(&mut self, now: Time, Datagram { payload, ecn }: Datagram) {
        let (at, mut answer) = (self.instant(now), Vec::new());
        let ecn = EcnCodepoint::from_bits(ecn as u8);
        let bytes = BytesMut::from(&payload[..]);
        match self.endpoint.handle(at, self.remote, None, ecn, bytes, &mut answer) {
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                let (_, connection) = self.connection.as_mut().expect("it has a connection");
                connection.handle_event(event);
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                let accepted = self.endpoint.accept(incoming, at, &mut answer, None);
                self.connection = Some(accepted.map_err(|error| error.cause).expect("it is open"));
            }
            // Stateless answers are for strangers.
            Some(DatagramEvent::Response(_)) | None => {}
        }
        self.proceed(now);
    }

    fn next_timeout(&mut self) -> Option<Time> {
        let at = self.connection.as_mut()?.1.poll_timeout()?;
        Some(Time(at.duration_since(self.base).as_nanos() as u64))
    }

    fn on_timeout(&mut self, now: Time) {
        let at = self.instant(now);
        if let Some((_, connection)) = &mut self.connection {
            connection.handle_timeout(at);
        }
        self.proceed(now);
    }

    fn report(&self) -> Report {
        self.report
    }
}
