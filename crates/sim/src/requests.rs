//! The second half of a connection that its client opens, which carries the requests.
//!
//! The client opens the connection and sends requests; the server answers each with data. Each
//! direction has a sender and a receiver of its own. Data flows in one direction at a time, since a
//! client that waits for a response sends no request. So the byte numbers of an exchange say what
//! the data of either end acknowledges.

use std::sync::Arc;

use cwnd_quantity::Time;
use cwnd_tcp::{Config, Flags, Handshake, Segment};

use crate::half_connection::HalfConnection;

/// Half of a connection that carries requests, with the state of the current request.
#[derive(Debug)]
pub struct Requests {
    /// Sender and receiver of requests: the client sends, the server receives.
    pub half: HalfConnection,
    /// Current request and response.
    pub exchange: Exchange,
    /// Time at which the current request was written, which opens the connection if it is the
    /// first.
    pub written_at: Time,
    /// `true` from a request until its response is complete.
    pub awaiting_response: bool,
    /// Recorded response that is complete at the client and unacknowledged at the server: its row,
    /// and the time of its request.
    pub unacknowledged: Option<(usize, Time)>,
    /// State of the handshake at the server until it accepts the connection.
    handshake: Option<Handshake>,
}

/// Byte numbers of a request and its response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exchange {
    /// Number of this request on the connection, from 1; 0 before the first.
    pub number: u32,
    /// Number of the request's first byte.
    pub request_start: u64,
    /// Number of the byte after the request's last.
    pub request_end: u64,
    /// Number of the response's first byte.
    pub response_start: u64,
}

impl Exchange {
    /// State before the first request.
    pub const FIRST: Self = Self { number: 0, request_start: 0, request_end: 0, response_start: 0 };
}

impl Requests {
    /// Creates the requests of a connection that is not open yet.
    pub fn new(config: &Arc<Config>) -> Self {
        Self {
            half: HalfConnection::new(config),
            exchange: Exchange::default(),
            written_at: Time::NEVER,
            awaiting_response: false,
            unacknowledged: None,
            handshake: Some(Handshake::default()),
        }
    }

    /// Writes a request of the client, whose response starts at byte `response_start`; returns its
    /// byte numbers.
    pub fn begin_exchange(&mut self, now: Time, bytes: u64, response_start: u64) -> Exchange {
        let request_start = self.exchange.request_end;
        self.exchange = Exchange {
            number: self.exchange.number + 1,
            request_start,
            request_end: request_start.saturating_add(bytes),
            response_start,
        };
        (self.written_at, self.awaiting_response) = (now, true);
        self.half.sender.write(bytes);
        self.exchange
    }

    /// Delivers a segment to the server. Returns the immediate ACK, and the handshake at the first
    /// segment after the SYN.
    pub fn on_server_segment(
        &mut self,
        now: Time,
        segment: &Segment,
    ) -> (Option<Segment>, Option<Handshake>) {
        let accepted = if segment.flags.has(Flags::SYN) {
            if let Some(handshake) = &mut self.handshake {
                // Departs from RFC 9293 § 3.10.7.4: the SYN-ACK has no timer of its own, each SYN
                // gets one.
                *handshake = Handshake { syn_acks: handshake.syn_acks + 1, last: now };
            }
            None
        } else {
            self.handshake.take()
        };
        (self.half.receiver.on_segment(now, segment), accepted)
    }

    /// Bytes of requests that a response segment from byte `seq` on acknowledges; `None` if it is
    /// of an earlier response or acknowledges nothing new.
    pub fn acknowledged_by_response(&self, seq: u64) -> Option<u64> {
        let Exchange { request_end, response_start, .. } = self.exchange;
        (seq >= response_start && request_end > self.half.sender.acknowledged())
            .then_some(request_end)
    }

    /// Bytes of responses that a request segment from byte `seq` on acknowledges; `None` if it is
    /// of an earlier request or acknowledges no more than `known`.
    pub const fn acknowledged_by_request(&self, seq: u64, known: u64) -> Option<u64> {
        let Exchange { request_start, response_start, .. } = self.exchange;
        if seq >= request_start && response_start > known { Some(response_start) } else { None }
    }
}
