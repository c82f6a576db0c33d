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
    pub turn: Turn,
    /// Time at which the current request was written, which opens the connection if it is the
    /// first.
    pub asked: Time,
    /// `true` from a request until its response is complete.
    pub open: bool,
    /// Recorded response that is complete at the client and unacknowledged at the server: its row,
    /// and the time of its request.
    pub unacknowledged: Option<(usize, Time)>,
    /// State of the handshake at the server until it accepts the connection.
    handshake: Option<Handshake>,
}

/// Byte numbers of a request and its response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Turn {
    /// Number of this request on the connection, from 1; 0 before the first.
    pub number: u32,
    /// Number of the request's first byte.
    pub request_start: u64,
    /// Number of the byte after the request's last.
    pub request_end: u64,
    /// Number of the response's first byte.
    pub response_start: u64,
}

impl Turn {
    /// State before the first request.
    pub const FIRST: Self = Self { number: 0, request_start: 0, request_end: 0, response_start: 0 };
}

impl Requests {
    /// Creates the requests of a connection that is not open yet.
    pub fn new(config: &Arc<Config>) -> Self {
        Self {
            half: HalfConnection::new(config),
            turn: Turn::default(),
            asked: Time::NEVER,
            open: false,
            unacknowledged: None,
            handshake: Some(Handshake::default()),
        }
    }

    /// Writes a request of the client, whose response starts at byte `response_start`; returns its
    /// byte numbers.
    pub fn begin(&mut self, now: Time, bytes: u64, response_start: u64) -> Turn {
        let request_start = self.turn.request_end;
        self.turn = Turn {
            number: self.turn.number + 1,
            request_start,
            request_end: request_start.saturating_add(bytes),
            response_start,
        };
        (self.asked, self.open) = (now, true);
        self.half.sender.write(bytes);
        self.turn
    }

    /// Delivers a segment to the server. Returns the immediate ACK, and the handshake at the first
    /// segment after the SYN.
    pub fn at_server(
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
        let Turn { request_end, response_start, .. } = self.turn;
        (seq >= response_start && request_end > self.half.sender.acknowledged())
            .then_some(request_end)
    }

    /// Bytes of responses that a request segment from byte `seq` on acknowledges; `None` if it is
    /// of an earlier request or acknowledges no more than `known`.
    pub const fn acknowledged_by_request(&self, seq: u64, known: u64) -> Option<u64> {
        let Turn { request_start, response_start, .. } = self.turn;
        if seq >= request_start && response_start > known { Some(response_start) } else { None }
    }
}
