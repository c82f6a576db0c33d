//! The other half of a connection that its client opens: what the receiver of the data asks its sender for.
//!
//! The client opens the connection and sends requests, the server answers each with data. Both directions have the same two
//! ends, a sender and a receiver of their own. Data goes one way at a time: a client that waits for a response asks for
//! nothing. So the numbers of a turn say what the data of either end acknowledges.

use std::sync::Arc;

use cwnd_quantity::Time;
use cwnd_tcp::{Config, Flags, Handshake, Segment};

use crate::half_connection::HalfConnection;

/// The half of a connection on which requests go, and what became of them.
#[derive(Debug)]
pub struct Requests {
    /// Its sender is the client, its receiver the server.
    pub half: HalfConnection,
    /// The turn that the connection is in.
    pub turn: Turn,
    /// When its request was sent; for the first one, when the SYN was.
    pub asked: Time,
    /// Whether the response is still to come.
    pub open: bool,
    /// The response that the client has and the server does not know it of: the row of its request, and when that was sent.
    pub unacknowledged: Option<(usize, Time)>,
    /// What the server knows of the handshake until it takes the connection.
    handshake: Option<Handshake>,
}

/// A request and its response, as the numbers of bytes where they begin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Turn {
    /// How many there were before on this connection, and this one.
    pub number: u32,
    /// The first byte of the request.
    pub request_start: u64,
    /// One past its last.
    pub request_end: u64,
    /// The first byte of the response.
    pub response_start: u64,
}

impl Turn {
    /// Before the first request.
    pub const FIRST: Self = Self { number: 0, request_start: 0, request_end: 0, response_start: 0 };
}

impl Requests {
    /// Those of a connection that is not open yet.
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

    /// The client writes a request; responses had so many bytes before.
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

    /// The server gets a segment. What it answers at once, and the handshake if this is the first segment behind it.
    pub fn at_server(
        &mut self,
        now: Time,
        segment: &Segment,
    ) -> (Option<Segment>, Option<Handshake>) {
        let accepted = if segment.flags.has(Flags::SYN) {
            if let Some(handshake) = &mut self.handshake {
                // Departs from RFC 9293 § 3.10.7.4: the SYN-ACK has no timer of its own, each SYN gets one.
                *handshake = Handshake { syn_acks: handshake.syn_acks + 1, last: now };
            }
            None
        } else {
            self.handshake.take()
        };
        (self.half.receiver.on_segment(now, segment), accepted)
    }

    /// The number of bytes that a segment of the response, from byte `seq` on, acknowledges of the requests: more than the
    /// client knows of.
    pub fn acknowledged_by_response(&self, seq: u64) -> Option<u64> {
        let Turn { request_end, response_start, .. } = self.turn;
        (seq >= response_start && request_end > self.half.sender.acknowledged())
            .then_some(request_end)
    }

    /// The number of bytes that a segment of the request, from byte `seq` on, acknowledges of the responses, of which the
    /// server knows that `known` arrived.
    pub const fn acknowledged_by_request(&self, seq: u64, known: u64) -> Option<u64> {
        let Turn { request_start, response_start, .. } = self.turn;
        if seq >= request_start && response_start > known { Some(response_start) } else { None }
    }
}
