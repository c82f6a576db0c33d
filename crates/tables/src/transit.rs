use cwnd_quantity::Duration;

/// Transit time of the last datagram of a flow that arrived.
#[derive(Clone, Copy, Debug)]
pub struct LastTransit(Duration);

/// Value of [`LastTransit`] before the first datagram.
const NONE: Duration = Duration::MAX;

impl Default for LastTransit {
    fn default() -> Self {
        Self(NONE)
    }
}

impl LastTransit {
    /// Takes the transit time of the next datagram; returns its absolute difference to the last,
    /// |D(i−1, i)| of RFC 3550 § 6.4.1, or `None` for the first datagram.
    #[inline]
    pub fn next(&mut self, transit: Duration) -> Option<Duration> {
        let last = core::mem::replace(&mut self.0, transit);
        (last != NONE).then(|| Duration(transit.0.abs_diff(last.0)))
    }
}
