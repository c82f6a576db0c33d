//! The send sequence space (RFC 9293 § 3.3.1), in bytes from the start of the connection.

/// State of the send sequence space: data written, sent and acknowledged, and the receive window.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct SequenceSpace {
    /// First byte not acknowledged (SND.UNA).
    una: u64,
    /// Next byte to send (SND.NXT). It goes back after a timeout that marks no segments lost, after
    /// Tahoe's fast retransmit, and after a window probe that the receiver did not accept.
    nxt: u64,
    /// One past the highest byte ever sent (SND.MAX).
    high: u64,
    /// One past the last byte that the application has written.
    app_end: u64,
    /// Receive window (SND.WND).
    rwnd: u64,
    /// Bytes sent under limited transmit, which do not count in FlightSize (RFC 5681 § 3.2), until
    /// a new ACK outside recovery, a timeout or the end of a recovery.
    limited_sent: u64,
}

impl SequenceSpace {
    pub const fn new(rwnd: u64) -> Self {
        Self { una: 0, nxt: 0, high: 0, app_end: 0, rwnd, limited_sent: 0 }
    }

    #[inline]
    pub const fn una(&self) -> u64 {
        self.una
    }

    #[inline]
    pub const fn nxt(&self) -> u64 {
        self.nxt
    }

    #[inline]
    pub const fn high(&self) -> u64 {
        self.high
    }

    #[inline]
    pub const fn app_end(&self) -> u64 {
        self.app_end
    }

    #[inline]
    pub const fn rwnd(&self) -> u64 {
        self.rwnd
    }

    /// Bytes sent and not acknowledged.
    #[inline]
    pub const fn outstanding(&self) -> u64 {
        self.high - self.una
    }

    /// Bytes below SND.NXT that are not acknowledged.
    #[inline]
    pub const fn flight(&self) -> u64 {
        self.nxt - self.una
    }

    /// Bytes written and not sent, or to be sent anew.
    #[inline]
    pub const fn unsent(&self) -> u64 {
        self.app_end - self.nxt
    }

    /// FlightSize (RFC 5681 § 2), less what limited transmit sent.
    #[inline]
    pub const fn flight_size(&self) -> u64 {
        self.outstanding().saturating_sub(self.limited_sent)
    }

    /// Adds `bytes` that the application has written.
    pub const fn write(&mut self, bytes: u64) {
        self.app_end = self.app_end.saturating_add(bytes);
    }

    /// Ends the application data at SND.MAX: unsent data is discarded.
    pub fn stop_writing(&mut self) {
        self.app_end = self.app_end.min(self.high);
    }

    /// Sets the receive window.
    #[inline]
    pub const fn set_rwnd(&mut self, rwnd: u64) {
        self.rwnd = rwnd;
    }

    /// Advances SND.NXT to `end` as data is sent, for the first time or again after SND.NXT went
    /// back.
    #[inline]
    pub fn on_sent(&mut self, end: u64) {
        self.nxt = end;
        self.high = self.high.max(end);
    }

    /// Accounts for a window probe of `len` bytes from SND.UNA on.
    pub fn on_probe(&mut self, len: u64) {
        self.nxt = self.nxt.max(self.una + len);
        self.high = self.high.max(self.nxt);
    }

    /// Advances SND.UNA to `ack`.
    #[inline]
    pub fn on_ack(&mut self, ack: u64) {
        self.una = ack;
        self.nxt = self.nxt.max(ack);
    }

    /// Moves SND.NXT back to SND.UNA, so that all outstanding data is sent again (go-back-N).
    pub const fn go_back(&mut self) {
        self.nxt = self.una;
    }

    /// Treats the data of window probes as never sent, as the receiver did not accept it.
    pub const fn take_probe_back(&mut self) {
        self.nxt = self.una;
        self.high = self.una;
    }

    /// Adds `len` bytes that limited transmit sent.
    pub const fn add_limited(&mut self, len: u64) {
        self.limited_sent += len;
    }

    #[inline]
    pub const fn end_limited(&mut self) {
        self.limited_sent = 0;
    }
}
