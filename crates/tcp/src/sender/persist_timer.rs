//! The persist timer (RFC 9293 § 3.8.6.1): probes of a closed receive window.

/// State of the probing of a closed window. Only while nothing but a probe is outstanding: what was
/// sent before has the retransmission timer, and its retransmissions probe as well.
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
    /// Probes of the window since it closed, at most 255: the interval is at its bound long before.
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

    /// The first probe is waited for.
    pub const fn start(&mut self) {
        self.state = State::Waiting;
    }

    /// The timer expired; `waits` if there is data that the window holds back.
    pub const fn on_expiry(&mut self, waits: bool) {
        self.state = if waits { State::Due } else { State::Off };
    }

    /// A probe goes, and the next is waited for.
    pub const fn on_probe(&mut self) {
        self.state = State::Waiting;
        self.probes = self.probes.saturating_add(1);
    }

    /// An ACK came: the window is `open` for a segment, or data `advances`; if it is `ajar`, the
    /// next wait is for the override timeout, which is no probe of a closed window.
    pub const fn on_ack(&mut self, open: bool, advances: bool, ajar: bool) {
        if open || ajar {
            self.probes = 0;
        }
        if open || advances {
            self.state = State::Off;
        }
    }

    /// Doublings of the time between probes.
    pub const fn doublings(self) -> u32 {
        self.probes as u32
    }
}
