//! Signed timestamps: their low bits sign the rest, so that a receiver cannot forge them (McCullagh
//! 2008 § 5.1.3).

use cwnd_quantity::{Divisor, Time};
use cwnd_schema::{Choice, Schema};

/// Response of a sender to an echoed timestamp that it never sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum OnForged {
    /// The ACK counts, but gives no round-trip time.
    #[name("ignore")]
    Ignore,
    /// The ACK gives no round-trip time, and the window is reduced as for a loss, at most once a
    /// round trip and not while losses are repaired.
    #[name("reduce")]
    Reduce,
}

/// Signed timestamps.
#[derive(Clone, Debug, PartialEq, Schema)]
pub struct Params {
    /// Low bits of the sender's timestamps that sign the rest; 0 signs nothing. The remaining
    /// resolution is two to this power, in ticks of `clock`. Serves experiments on receivers that
    /// forge timestamps against delay-based control.
    #[default(0, "McCullagh 2008 § 5.1.3: one or more; RFC 7323 § 4.1 has none")]
    #[bounds(up_to 16)]
    pub timestamp_signature: u32,
    /// Response to an echoed timestamp with a wrong signature. Serves experiments on receivers that
    /// forge timestamps against delay-based control.
    #[default(
        OnForged::Ignore,
        "McCullagh 2008 § 5.1.3: e.g. backing off cwnd or resetting the connection"
    )]
    #[idle(self.timestamp_signature == 0, "without `timestamp_signature`")]
    pub on_forged: OnForged,
}

/// Signs timestamps, and verifies echoes of them.
#[derive(Clone, Copy, Debug)]
pub struct Signer {
    bits: u32,
    clock: Divisor,
    pub on_forged: OnForged,
}

impl Signer {
    /// Creates a signer of timestamps of this clock.
    pub const fn new(params: &Params, clock: Divisor) -> Self {
        Self { bits: params.timestamp_signature, clock, on_forged: params.on_forged }
    }

    /// Returns the signed timestamp of a time, or the time itself without signatures; it never
    /// decreases as time advances (RFC 7323 § 5.2).
    pub fn sign(&self, at: Time) -> Time {
        if self.bits == 0 {
            return at;
        }
        let rest = self.clock.divide(at.0).0 >> self.bits;
        Time(((rest << self.bits) | self.signature(rest)) * self.clock.get())
    }

    /// Returns the time of an echoed timestamp, in the resolution that signing leaves; `None` if
    /// the signature is wrong. Without signatures it is the echo.
    pub fn verify(&self, echo: Time) -> Option<Time> {
        if self.bits == 0 {
            return Some(echo);
        }
        let (ticks, _) = self.clock.divide(echo.0);
        let rest = ticks >> self.bits;
        let signed = ticks & ((1 << self.bits) - 1);
        (signed == self.signature(rest)).then(|| Time((rest << self.bits) * self.clock.get()))
    }

    /// Computes the signature of the unsigned bits: low bits of SplitMix64's finaliser. It is not
    /// cryptographic: simulated receivers do not try to break it.
    const fn signature(&self, rest: u64) -> u64 {
        let mut z = rest ^ KEY;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) & ((1 << self.bits) - 1)
    }
}

/// Key of the signature: the first 64 fractional bits of √2, as in SHA-512; any other number would
/// do.
const KEY: u64 = 0x6a09_e667_f3bc_c908;

#[cfg(test)]
mod tests {
    use cwnd_quantity::Duration;

    use super::*;

    fn signer(bits: u32) -> Signer {
        let params = Params { timestamp_signature: bits, ..Params::default() };
        Signer::new(&params, Divisor::new(1_000_000))
    }

    #[test]
    fn what_was_signed_is_known_and_goes_never_back() {
        for bits in [0, 1, 4, 16] {
            let signer = signer(bits);
            let mut last = Time::ZERO;
            for ms in 0..5000 {
                let at = Time(ms * 1_000_000);
                let sent = signer.sign(at);
                assert!(sent >= last, "{bits} bits at {at}");
                let known = signer.verify(sent).expect("it was sent");
                assert!(known <= at && at.since(known) < Duration::from_millis(1 << bits));
                last = sent;
            }
        }
    }

    #[test]
    fn a_shifted_echo_passes_as_often_as_a_guess_does() {
        for bits in [1, 4, 8] {
            let signer = signer(bits);
            let n = 20_000_u64;
            // One timestamp per resolution step, as all within a step are equal.
            let passed = (0..n).filter(|i| {
                let sent = signer.sign(Time((i << bits) * 1_000_000 + 100_000_000_000));
                signer.verify(Time(sent.0 - 1_000_000 * ((7 << bits) + 1))).is_some()
            });
            let (passed, p) = (passed.count() as f64, 0.5_f64.powi(bits as i32));
            let spread = 4.0 * (n as f64 * p * (1.0 - p)).sqrt();
            assert!((passed - n as f64 * p).abs() < spread, "{bits} bits: {passed}");
        }
    }
}
