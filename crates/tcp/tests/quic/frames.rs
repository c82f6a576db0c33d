//! The frames of a packet, as far as recovery reads them (RFC 9000 § 19).

use cwnd_quantity::Duration;
use cwnd_tcp::quic::AckRange;

/// Result of reading a packet's frames.
#[derive(Clone, Debug, Default)]
pub struct Frames {
    pub ack: Option<Ack>,
    /// `true` if it has a frame other than ACK and PADDING (RFC 9002 § 2; quinn sends no
    /// CONNECTION_CLOSE here).
    pub ack_eliciting: bool,
    pub padded: bool,
}

#[derive(Clone, Debug)]
pub struct Ack {
    pub ranges: Vec<AckRange>,
    pub delay: Duration,
    pub ce: u64,
}

/// Exponent of the ACK Delay field (§ 18.2: ack_delay_exponent).
const DELAY_EXPONENT: u32 = 3;

impl Frames {
    /// Reads up to the first frame that never comes before an ACK.
    pub fn read(mut bytes: &[u8]) -> Self {
        let mut frames = Self::default();
        while let Some((&kind, rest)) = bytes.split_first() {
            bytes = rest;
            match kind {
                0x00 => frames.padded = true,
                0x02 | 0x03 => frames.ack = Some(Ack::read(&mut bytes, kind == 0x03)),
                // PING and HANDSHAKE_DONE.
                0x01 | 0x1e => frames.ack_eliciting = true,
                // RETIRE_CONNECTION_ID, which quinn writes before an ACK.
                0x19 => {
                    frames.ack_eliciting = true;
                    integer(&mut bytes);
                }
                _ => {
                    frames.ack_eliciting = true;
                    break;
                }
            }
        }
        frames
    }
}

impl Ack {
    /// Reads an ACK frame (§ 19.3).
    fn read(bytes: &mut &[u8], ecn: bool) -> Self {
        let last = integer(bytes);
        let delay = Duration::from_micros(integer(bytes) << DELAY_EXPONENT);
        let more = integer(bytes);
        let mut first = last - integer(bytes);
        let mut ranges = vec![AckRange { first, last }];
        for _ in 0..more {
            let last = first - integer(bytes) - 2;
            first = last - integer(bytes);
            ranges.push(AckRange { first, last });
        }
        let counts = if ecn { [integer(bytes), integer(bytes), integer(bytes)] } else { [0; 3] };
        Self { ranges, delay, ce: counts[2] }
    }
}

/// Reads a variable-length integer (§ 16).
fn integer(bytes: &mut &[u8]) -> u64 {
    let len = 1 << (bytes[0] >> 6);
    let (number, rest) = bytes.split_at(len);
    *bytes = rest;
    let first = u64::from(number[0] & 0x3f);
    number[1..].iter().fold(first, |value, &byte| value << 8 | u64::from(byte))
}

#[test]
fn an_acknowledgement_is_read_as_rfc_9000_writes_it() {
    // Largest 300, delay 2 · 8 µs, one more range, 4 packets, a gap of 2, 1 packet, 5 CE.
    let packet = [0x01, 0x03, 0x41, 0x2c, 0x02, 0x01, 0x03, 0x01, 0x00, 0x07, 0x00, 0x05, 0x00];
    let frames = Frames::read(&packet);
    let ack = frames.ack.expect("there is one");
    let range = |first, last| AckRange { first, last };
    assert_eq!(ack.ranges, [range(297, 300), range(294, 294)]);
    assert_eq!((ack.delay, ack.ce), (Duration::from_micros(16), 5));
    assert!(frames.ack_eliciting && frames.padded);
}
