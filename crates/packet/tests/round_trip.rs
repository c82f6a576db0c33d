//! Written packets, read back by other libraries and verified by independent checksums; blocks of a
//! capture file, compared byte by byte with the draft.

use std::io::{self, Write};

use cwnd_packet::{
    Ecn, Endpoints, Experiment, Headers, Interface, Options, ReceivedQuench, SourceQuench, Tcp,
    TcpHeader, Udp, Writer, window_scale,
};
use cwnd_quantity::Time;
use etherparse::{NetSlice, SlicedPacket, TcpOptionElement, TransportSlice};
use pcap_parser::pcapng::{EnhancedPacketBlock, OptionCode, PcapNGOption};
use pcap_parser::traits::PcapNGPacketBlock as _;
use pcap_parser::{Block, Linktype, PcapBlockOwned, PcapNGSlice};
use proptest::prelude::*;

const ENDS: Endpoints = Endpoints {
    source: [10, 0, 0, 1],
    source_port: 49_152,
    destination: [10, 0, 0, 2],
    destination_port: 50_001,
};
const TIMESTAMPS: Options = Options {
    mss: None,
    sack_permitted: false,
    window_scale: None,
    timestamps: Some((1234, 1200)),
    sack: [(0, 0); 3],
    experiment: None,
};

/// A full data segment with timestamps.
const DATA: Tcp = Tcp {
    sequence: 1,
    acknowledgment: 7,
    flags: 0x10,
    window: 1000,
    options: TIMESTAMPS,
    ecn: Ecn::Ect0,
    identification: 0,
    payload: 1448,
    wanted_length: 1500,
};

/// Ones' complement sum of 16-bit words (RFC 1071 § 1): `0xffff` over data that includes its
/// checksum.
fn internet_sum(bytes: &[u8]) -> u16 {
    let mut sum: u64 =
        bytes.chunks(2).map(|w| u64::from(w[0]) << 8 | u64::from(*w.get(1).unwrap_or(&0))).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// Sum over pseudo-header (addresses, zero, protocol, length), transport header and payload (RFC
/// 9293 § 3.1, RFC 768).
fn transport_sum(headers: &Headers) -> u16 {
    let ip = &headers.bytes;
    let header = usize::from(ip[0] & 0x0f) * 4;
    let mut covered = ip[12..20].to_vec();
    covered.extend([0, ip[9]]);
    covered.extend((headers.total - header as u16).to_be_bytes());
    covered.extend(&ip[header..]);
    // The payload is zero bytes: only its length adds to the sum.
    internet_sum(&covered)
}

fn ip_sum(headers: &Headers) -> u16 {
    let header = usize::from(headers.bytes[0] & 0x0f) * 4;
    internet_sum(&headers.bytes[..header])
}

#[test]
fn a_data_segment_is_as_long_as_the_simulated_packet() {
    let headers = DATA.headers(ENDS);
    assert_eq!(headers.total, 1500);
    assert_eq!(headers.bytes.len(), 52);
    assert_eq!(&headers.bytes[2..4], &1500_u16.to_be_bytes());
}

#[test]
fn headers_grow_to_the_simulated_size_as_far_as_options_can() {
    let length = |wanted_length| {
        let headers = Tcp { wanted_length, payload: 100, ..DATA }.headers(ENDS);
        assert_eq!(ip_sum(&headers), 0xffff);
        assert_eq!(transport_sum(&headers), 0xffff);
        headers.total
    };
    // 52 B is the minimum, 120 B of headers the maximum; header lengths count words of 4 B.
    assert_eq!([0, 152, 155, 156, 180, 220, 1000].map(length), [152, 152, 152, 156, 180, 220, 220]);
}

#[test]
fn a_syn_carries_the_options_that_only_a_syn_may() {
    let syn = Tcp {
        flags: 0xc2,
        options: Options {
            mss: Some(1460),
            sack_permitted: true,
            window_scale: Some(14),
            ..TIMESTAMPS
        },
        payload: 0,
        ..DATA
    };
    let headers = Tcp { wanted_length: 0, ..syn }.headers(ENDS);
    let packet = SlicedPacket::from_ip(&headers.bytes).unwrap();
    let Some(TransportSlice::Tcp(tcp)) = packet.transport else { panic!("no TCP") };
    assert!(tcp.syn() && tcp.ece() && tcp.cwr() && !tcp.ack());
    let options: Vec<_> = tcp.options_iterator().map(Result::unwrap).collect();
    use TcpOptionElement::*;
    assert_eq!(
        options,
        [
            MaximumSegmentSize(1460),
            SelectiveAcknowledgementPermitted,
            Timestamp(1234, 1200),
            Noop,
            WindowScale(14)
        ]
    );
}

#[test]
fn an_experimental_option_takes_the_place_of_the_oldest_sack_blocks() {
    let sack = [(9000, 9500), (7000, 8000), (5000, 6000)];
    let written = |behind: &[u8]| {
        let experiment = Some(Experiment::new(253, behind));
        let options = Options { sack, experiment, ..TIMESTAMPS };
        let headers = Tcp { options, payload: 0, wanted_length: 0, ..DATA }.headers(ENDS);
        assert_eq!((ip_sum(&headers), transport_sum(&headers)), (0xffff, 0xffff));
        headers.bytes[40 + 12..].to_vec()
    };
    // Two bytes of padding, SACK with as many blocks as fit, then the option; zeros end the list.
    let short = written(&[0xab, 0xcd]);
    assert_eq!(short[..4], [1, 1, 5, 18]);
    assert_eq!(short[20..], [253, 4, 0xab, 0xcd]);
    let long = written(&[7; Experiment::MAX_LEN]);
    assert_eq!(long[..4], [1, 1, 5, 10]);
    assert_eq!(long[12..], [[253, 16].as_slice(), &[7; 14]].concat());
    assert_eq!(written(&[7; 8])[12..], [[253, 10].as_slice(), &[7; 8], &[0, 0]].concat());
}

#[test]
fn the_window_scale_is_the_smallest_that_fits_or_the_largest_there_is() {
    let scales = [0, 65_535, 65_536, 1 << 20, 65_535 << 14, u32::MAX].map(window_scale);
    assert_eq!(scales, [0, 0, 1, 5, 14, 14]);
}

#[test]
fn a_datagram_has_its_length_and_its_sum() {
    let headers = Udp { ecn: Ecn::NotEct, payload: 1000, wanted_length: 1028 }.headers(ENDS);
    assert_eq!((headers.bytes.len(), headers.total), (28, 1028));
    assert_eq!(&headers.bytes[24..26], &1008_u16.to_be_bytes());
    assert_eq!((ip_sum(&headers), transport_sum(&headers)), (0xffff, 0xffff));
}

const ROUTER: [u8; 4] = [10, 0, 0, 9];

fn quench(about: &Headers, marked: bool, level: u8) -> Vec<u8> {
    SourceQuench { quoted: &about.bytes, marked, level }.headers(ROUTER, ENDS.source).bytes
}

proptest! {
    #[test]
    fn a_quench_is_read_as_it_was_written(
        sequence in any::<u32>(), source_port in any::<u16>(), destination in any::<[u8; 4]>(),
        marked in any::<bool>(), level in 0u8..8, udp in any::<bool>()
    ) {
        let ends = Endpoints { source_port, destination, ..ENDS };
        let about = if udp {
            Udp { ecn: Ecn::Ect0, payload: 1000, wanted_length: 1028 }.headers(ends)
        } else {
            Tcp { sequence, ..DATA }.headers(ends)
        };
        let bytes = quench(&about, marked, level);
        prop_assert_eq!(bytes.len(), 56);
        prop_assert_eq!(internet_sum(&bytes[20..]), 0xffff);
        let heard = ReceivedQuench::read(&bytes).expect("it is one");
        let protocol = if udp { 17 } else { 6 };
        let sequence = (!udp).then_some(sequence);
        let expected =
            ReceivedQuench { router: ROUTER, marked, level, quoted: ends, protocol, sequence };
        prop_assert_eq!(heard, expected);
        // Bytes behind the packet are ignored.
        let longer = [bytes.as_slice(), &[1, 2, 3]].concat();
        prop_assert_eq!(ReceivedQuench::read(&longer), Some(heard));
    }

    /// The checksums detect every flipped bit; a packet that is cut short is rejected.
    #[test]
    fn a_quench_with_a_wrong_bit_or_cut_short_is_not_believed(
        bit in 0usize..56 * 8,
        end in 0usize..56,
    ) {
        let mut bytes = quench(&DATA.headers(ENDS), true, 2);
        prop_assert_eq!(ReceivedQuench::read(&bytes[..end]), None);
        bytes[bit / 8] ^= 1 << (bit % 8);
        prop_assert_eq!(ReceivedQuench::read(&bytes), None);
    }

    #[test]
    fn any_bytes_are_a_quench_or_none(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = ReceivedQuench::read(&bytes);
    }
}

#[test]
fn a_quench_about_somebody_elses_packet_is_not_believed() {
    let about = DATA.headers(Endpoints { source: [10, 0, 0, 7], ..ENDS });
    assert_eq!(ReceivedQuench::read(&quench(&about, true, 0)), None);
}

/// A quench of RFC 792 has zeros in the word that BECN uses: dropped, of the lowest level.
#[test]
fn a_quench_of_rfc_792_is_about_a_dropped_packet() {
    let bytes = quench(&DATA.headers(ENDS), false, 0);
    assert_eq!(bytes[24..28], [0; 4]);
    let heard = ReceivedQuench::read(&bytes).expect("it is one");
    assert_eq!((heard.marked, heard.level, heard.sequence), (false, 0, Some(1)));
}

#[test]
fn a_file_holds_what_was_written_to_the_nanosecond() {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes, "cwnd 1.2.3", "a test").unwrap();
    let there = Interface { name: "a-b", description: "a to b", bit_s: Some(10_000_000) };
    let back = Interface { name: "a-b.reverse", description: "", bit_s: None };
    assert_eq!(writer.interface(&there).unwrap(), 0);
    assert_eq!(writer.interface(&back).unwrap(), 1);
    let data = DATA.headers(ENDS);
    let ack = Tcp { payload: 0, wanted_length: 52, ..DATA }.headers(ENDS.reversed());
    // Beyond 2³² ns, so that both halves of the time matter.
    let late = Time(5_000_000_001);
    writer.packet(0, Time(1), &data, "").unwrap();
    writer.packet(1, late, &ack, "dropped: codel").unwrap();

    let mut sections = Vec::new();
    let mut interfaces = Vec::new();
    let mut packets = Vec::new();
    for block in PcapNGSlice::from_slice(&bytes).unwrap() {
        match block.unwrap() {
            PcapBlockOwned::NG(Block::SectionHeader(s)) => sections.push(s.options),
            PcapBlockOwned::NG(Block::InterfaceDescription(i)) => interfaces.push(i),
            PcapBlockOwned::NG(Block::EnhancedPacket(p)) => packets.push(p),
            _ => panic!("another kind of block"),
        }
    }
    let [section] = sections.as_slice() else { panic!("{} sections", sections.len()) };
    assert_eq!(value(section, OptionCode::ShbUserAppl), b"cwnd 1.2.3");
    assert_eq!(value(section, OptionCode::Comment), b"a test");
    assert_eq!(interfaces.len(), 2);
    assert_eq!(interfaces[0].linktype, Linktype::RAW);
    for (code, expected) in [
        (OptionCode::IfName, &b"a-b"[..]),
        (OptionCode::IfDescription, b"a to b"),
        (OptionCode::IfSpeed, &10_000_000_u64.to_le_bytes()),
        (OptionCode::IfTsresol, &[9]),
    ] {
        assert_eq!(value(&interfaces[0].options, code), expected, "{code:?}");
    }
    let nanoseconds = |packet: &EnhancedPacketBlock<'_>| {
        u64::from(packet.ts_high) << 32 | u64::from(packet.ts_low)
    };
    let [first, second] = packets.as_slice() else { panic!("{} packets", packets.len()) };
    assert_eq!((first.if_id, nanoseconds(first)), (0, 1));
    assert_eq!((first.origlen, first.packet_data()), (1500, data.bytes.as_slice()));
    assert!(first.options.is_empty());
    assert_eq!((second.if_id, nanoseconds(second)), (1, late.0));
    assert_eq!((second.origlen, second.packet_data()), (52, ack.bytes.as_slice()));
    assert_eq!(value(&second.options, OptionCode::Comment), b"dropped: codel");
}

fn value<'a>(options: &'a [PcapNGOption<'_>], code: OptionCode) -> &'a [u8] {
    let found = options.iter().find(|option| option.code == code).expect("it was written");
    found.as_bytes().expect("its length is that of its value")
}

fn any_ecn() -> impl Strategy<Value = Ecn> {
    prop::sample::select(vec![Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce])
}

prop_compose! {
    fn any_options()(
        mss: Option<u16>,
        sack_permitted: bool,
        window_scale in prop::option::of(0_u8..15),
        timestamps: Option<(u32, u32)>,
        starts: [u32; 3],
        lengths in prop::array::uniform3(0_u32..3000),
        blocks in 0_usize..4,
    ) -> Options {
        let mut sack = [(0, 0); 3];
        // SACK and the options of a SYN never occur together.
        let syn = mss.is_some() || sack_permitted || window_scale.is_some();
        for i in 0..if syn { 0 } else { blocks } {
            sack[i] = (starts[i], starts[i].wrapping_add(lengths[i]));
        }
        Options { mss, sack_permitted, window_scale, timestamps, sack, experiment: None }
    }
}

prop_compose! {
    fn any_segment()(
        sequence: u32, acknowledgment: u32, flags: u8, window: u16,
        options in any_options(), ecn in any_ecn(), identification: u16, payload: u16,
        wanted_length: u16,
    ) -> Tcp {
        Tcp {
            sequence,
            acknowledgment,
            flags,
            window,
            options,
            ecn,
            identification,
            payload,
            wanted_length,
        }
    }
}

proptest! {
    #[test]
    fn any_segment_reads_back_as_it_was_written(tcp in any_segment()) {
        let headers = tcp.headers(ENDS);
        prop_assert_eq!(ip_sum(&headers), 0xffff);
        prop_assert_eq!(transport_sum(&headers), 0xffff);
        let mut whole = headers.bytes.clone();
        whole.resize(headers.total.into(), 0);
        let packet = SlicedPacket::from_ip(&whole).unwrap();
        let Some(NetSlice::Ipv4(ip)) = packet.net else { panic!("no IPv4") };
        prop_assert_eq!(ip.header().source(), ENDS.source);
        prop_assert_eq!(ip.header().destination(), ENDS.destination);
        prop_assert_eq!(ip.header().ecn().value(), tcp.ecn as u8);
        prop_assert_eq!(ip.header().identification(), tcp.identification);
        let Some(TransportSlice::Tcp(read)) = packet.transport else { panic!("no TCP") };
        prop_assert_eq!(read.source_port(), ENDS.source_port);
        prop_assert_eq!(read.destination_port(), ENDS.destination_port);
        prop_assert_eq!(read.sequence_number(), tcp.sequence);
        prop_assert_eq!(read.acknowledgment_number(), tcp.acknowledgment);
        prop_assert_eq!(read.window_size(), tcp.window);
        prop_assert_eq!(read.slice()[13], tcp.flags);
        prop_assert_eq!(read.payload().len(), usize::from(tcp.payload.min(65_415)));
        let mut found = Options::default();
        for option in read.options_iterator() {
            match option.unwrap() {
                TcpOptionElement::Noop => {}
                TcpOptionElement::MaximumSegmentSize(mss) => found.mss = Some(mss),
                TcpOptionElement::WindowScale(shift) => found.window_scale = Some(shift),
                TcpOptionElement::SelectiveAcknowledgementPermitted => found.sack_permitted = true,
                TcpOptionElement::Timestamp(value, echo) => found.timestamps = Some((value, echo)),
                TcpOptionElement::SelectiveAcknowledgement(first, rest) => {
                    let blocks = [Some(first)].into_iter().chain(rest).flatten();
                    found.sack.iter_mut().zip(blocks).for_each(|(to, block)| *to = block);
                }
            }
        }
        let mut expected = tcp.options;
        // An empty block is not written.
        let blocks: Vec<_> = tcp.options.sack.into_iter().filter(|(a, b)| a != b).collect();
        expected.sack = [(0, 0); 3];
        expected.sack[..blocks.len()].copy_from_slice(&blocks);
        prop_assert_eq!(found, expected);
    }
}

type Pair = Option<(u32, u32)>;

/// Options read from these bytes behind the fixed part of a header: MSS, timestamps, first block.
fn options_of(bytes: &[u8]) -> (Option<u16>, Pair, Pair) {
    let mut header = [0; 20].to_vec();
    header[12] = 0xf0;
    header.extend(bytes);
    let found = TcpHeader::read(&header).expect("20 bytes and more").options();
    (found.mss, found.timestamps, found.sack[0])
}

/// RFC 9293 § 3.2, RFC 2018 § 3, RFC 7323 § 3.2; kind 30 is that of MPTCP (RFC 8684), of which the
/// reader knows nothing.
#[test]
fn options_behind_one_of_an_unknown_kind_are_read() {
    let mptcp = [30, 4, 0, 0];
    let stamps = [8, 10, 0, 0, 0, 3, 0, 0, 0, 2];
    let sack = [5, 10, 0, 0, 0, 7, 0, 0, 0, 9];
    let mss = [2, 4, 5, 180];
    let all = [&mptcp[..], &[1, 1], &stamps, &mptcp, &sack, &mss].concat();
    let (size, stamped, block) = (Some(1460), Some((3, 2)), Some((7, 9)));
    assert_eq!(options_of(&all), (size, stamped, block));
    // An option of a known kind with another length is skipped, too.
    assert_eq!(options_of(&[&[2, 3, 0][..], &sack].concat()), (None, None, block));
    // The end of the list, no length, one that does not include itself, and a header cut short.
    assert_eq!(options_of(&[&stamps[..], &[0], &mss].concat()), (None, stamped, None));
    assert_eq!(options_of(&[&mss[..], &[30]].concat()), (size, None, None));
    assert_eq!(options_of(&[&mss[..], &[30, 1], &stamps].concat()), (size, None, None));
    assert_eq!(options_of(&[&mss[..], &[30, 0], &stamps].concat()), (size, None, None));
    assert_eq!(options_of(&[&mss[..], &stamps[..9]].concat()), (size, None, None));
}

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
