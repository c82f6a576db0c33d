//! Blocks of a capture file, compared byte by byte with the draft.

use std::io::{self, Write};

use cwnd_packet::{Headers, Interface, Writer};
use cwnd_quantity::Time;

const LINK: Interface<'_> = Interface { name: "ab", description: "a to b", bit_s: Some(256) };

fn headers() -> Headers {
    Headers { bytes: vec![0x45, 1, 2, 3, 4], total: 1500 }
}

/// Builds a block (draft-ietf-opsawg-pcapng § 3.1): type, total length, body, total length; all
/// little endian.
fn block(kind: u32, body: &[&[u8]]) -> Vec<u8> {
    let body = body.concat();
    let length = (body.len() as u32 + 12).to_le_bytes();
    [&kind.to_le_bytes()[..], &length, &body, &length].concat()
}

#[test]
fn every_byte_is_where_the_draft_says() {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes, "cwnd", "hello").unwrap();
    writer.interface(&LINK).unwrap();
    writer.packet(0, Time(0x0000_0002_0000_0001), &headers(), "").unwrap();
    writer.packet(0, Time(u64::MAX), &headers(), "dropped").unwrap();

    // § 4.1: magic, version 1.0, section length not specified; opt_comment, shb_userappl,
    // opt_endofopt.
    let section = block(
        0x0A0D_0D0A,
        &[
            &[0x4D, 0x3C, 0x2B, 0x1A, 1, 0, 0, 0],
            &[0xff; 8],
            b"\x01\0\x05\0hello\0\0\0",
            b"\x04\0\x04\0cwnd",
            &[0; 4],
        ],
    );
    // § 4.2: LINKTYPE_RAW, no SnapLen; if_name, if_description, if_speed, if_tsresol, opt_endofopt.
    let interface = block(
        1,
        &[
            &[101, 0, 0, 0, 0, 0, 0, 0],
            b"\x02\0\x02\0ab\0\0",
            b"\x03\0\x06\0a to b\0\0",
            b"\x08\0\x08\0\0\x01\0\0\0\0\0\0",
            b"\x09\0\x01\0\x09\0\0\0",
            &[0; 4],
        ],
    );
    // § 4.3: interface, time (upper half first), captured length, original length, data, padding.
    let data = [0x45, 1, 2, 3, 4, 0, 0, 0];
    let plain = block(6, &[&[0; 4], b"\x02\0\0\0\x01\0\0\0\x05\0\0\0\xdc\x05\0\0", &data]);
    let latest = [&[0xff_u8; 8][..], b"\x05\0\0\0\xdc\x05\0\0"].concat();
    let comment = b"\x01\0\x07\0dropped\0";
    let commented = block(6, &[&[0; 4], &latest, &data, comment, &[0; 4]]);
    assert_eq!(bytes, [section, interface, plain, commented].concat());
}

#[test]
fn a_text_too_long_for_its_length_field_is_cut_between_characters() {
    let mut bytes = Vec::new();
    // 65,536 B: the last two are one character.
    let long = format!("{}é", "x".repeat(65_534));
    Writer::new(&mut bytes, "", &long).unwrap();
    // Block header and fixed fields take 24 B; then code and length.
    assert_eq!(bytes[24..28], *b"\x01\0\xfe\xff");
    // The comment with its padding, an empty shb_userappl, opt_endofopt, and the length again.
    assert_eq!(bytes.len(), 24 + 4 + 65_536 + 4 + 4 + 4);
}

#[test]
fn a_packet_of_no_interface_is_refused_and_nothing_is_written() {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes, "cwnd", "").unwrap();
    writer.interface(&LINK).unwrap();
    let refused = writer.packet(1, Time(0), &headers(), "").unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::InvalidInput);
    writer.packet(0, Time(0), &headers(), "").unwrap();
    let packet = block(6, &[&[0; 12], b"\x05\0\0\0\xdc\x05\0\0", &[0x45, 1, 2, 3, 4, 0, 0, 0]]);
    assert!(bytes.ends_with(&packet));
    assert_eq!(bytes.windows(8).filter(|w| **w == packet[..8]).count(), 1);
}

/// Output with room for a number of bytes; then writes fail as on a full disk.
#[derive(Debug)]
struct Disk(usize);

impl Write for Disk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0 == 0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let taken = bytes.len().min(self.0);
        self.0 -= taken;
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn an_error_of_the_output_is_handed_on_as_it_is_wherever_it_comes() {
    let run = |room| -> io::Result<()> {
        let mut writer = Writer::new(Disk(room), "cwnd", "hello")?;
        writer.interface(&LINK)?;
        writer.packet(0, Time(0), &headers(), "dropped")?;
        writer.flush()
    };
    let mut whole = Vec::new();
    let mut writer = Writer::new(&mut whole, "cwnd", "hello").unwrap();
    writer.interface(&LINK).unwrap();
    writer.packet(0, Time(0), &headers(), "dropped").unwrap();
    for room in 0..whole.len() {
        assert_eq!(run(room).unwrap_err().kind(), io::ErrorKind::StorageFull, "after {room} B");
    }
    run(whole.len()).unwrap();
}
