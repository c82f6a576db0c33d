//! The persist timer (RFC 9293 § 3.8.6.1): probes of a closed receive window.

/// State of zero-window probing. It is used only while nothing but a probe is outstanding: earlier
/// data has the retransmission timer, and its retransmissions probe the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Off,
    /// The timer runs until the next probe.
    Waiting,
    /// The next segment is a probe.
    Due,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct PersistTimer {
    state: State,
    /// Probes since the window closed, at most 255: the interval reaches its bound long before.
    probes: u8,
}

impl PersistTimer {
    pub const OFF: Self = Self { state: State::Off, probes: 0 };

    #[inline]
    pub fn is_off(self) -> bool {
        self.state == State::Off
    }

    /// `true` if the next segment is a probe.
    #[inline]
    pub fn is_due(self) -> bool {
        self.state == State::Due
    }

    /// Starts the wait for the first probe.
    pub const fn start(&mut self) {
        self.state = State::Waiting;
    }

    /// Processes an expiry. The next segment is a probe if the receive window holds data back
    /// (`waits`).
    pub const fn on_expiry(&mut self, waits: bool) {
        self.state = if waits { State::Due } else { State::Off };
    }

    /// Counts a probe that is sent, and starts the wait for the next.
    pub const fn on_probe(&mut self) {
        self.state = State::Waiting;
        self.probes = self.probes.saturating_add(1);
    }

    /// Processes an ACK: the window has room for a segment (`open`), or data is acknowledged
    /// (`advances`). With `partly_open` the window is smaller than a segment: the next wait is the
    /// override timeout, without backoff.
    pub const fn on_ack(&mut self, open: bool, advances: bool, partly_open: bool) {
        if open || partly_open {
            self.probes = 0;
        }
        if open || advances {
            self.state = State::Off;
        }
    }

    /// Doublings of the interval between probes.
    pub const fn doublings(self) -> u32 {
        self.probes as u32
    }
}
