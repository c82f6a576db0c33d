//! Tests of reader and player with scripts of this project in packetdrill's language.

use cwnd_quantity::Bytes;
use cwnd_schema::ParamsChoice as _;
use cwnd_tcp::{LossRule, PrrRule};

use super::code::{Names, Verdict};
use super::language::read;
use super::language::{Call, Packet, TcpOption, What, When};
use super::player::{Compared, Divergence};
use super::session::{Role, Session, Unplayable, prepare};
use super::settings::Stack;
use super::{Outcome, outcome};

const MS: u64 = 1_000_000;

/// Handshake of a server whose client accepts segments of 1000 B, with a round trip of 100 ms.
const SERVER: &str = "\
0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0 bind(3, ..., ...) = 0
+0 listen(3, 1) = 0
+.1 < S 0:0(0) win 20000 <mss 1000,sackOK,nop,wscale 4>
+0 > S. 0:0(0) ack 1 <...>
+.1 < . 1:1(0) ack 1 win 2000
+0 accept(3, ..., ...) = 4
";

/// Handshake of a client that uses timestamps.
const CLIENT: &str = "\
0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0...0.1 connect(3, ..., ...) = 0
+0 > S 0:0(0) <mss 1460,sackOK,TS val 100 ecr 0,nop,wscale 8>
+.1 < S. 0:0(0) ack 1 win 20000 <mss 1012,sackOK,TS val 700 ecr 100,nop,wscale 4>
+0 > . 1:1(0) ack 1 <nop,nop,TS val 200 ecr 700>
";

fn played(before: &str, events: &str) -> Outcome {
    outcome(&format!("{before}{events}"), &|_| None, None)
}

/// Plays a script that must pass; returns the numbers of lines of sent segments, including those of
/// the handshake, and of assertions and results of calls compared.
fn passes(before: &str, events: &str) -> (usize, usize) {
    match played(before, events) {
        Outcome::Passes(Compared { segments, held, unknown }) if unknown.is_empty() => {
            (segments, held)
        }
        other => panic!("{other:?}"),
    }
}

fn diverges(events: &str) -> (usize, String) {
    match played(SERVER, events) {
        Outcome::Diverges(Divergence { line, seen, .. }) => (line, seen),
        other => panic!("{other:?}"),
    }
}

fn beyond(text: &str) -> (usize, String) {
    match outcome(text, &|_| None, None) {
        Outcome::Unplayable(Unplayable { line, construct }) => (line, construct),
        other => panic!("{other:?}"),
    }
}

fn session(text: &str) -> Session {
    let open = |name: &str| (name == "../defaults.sh").then(|| DEFAULTS.to_owned());
    prepare(&read(text).unwrap(), &open, None).unwrap()
}

const DEFAULTS: &str = "\
# What scripts share.
sysctl -q net.ipv4.tcp_slow_start_after_idle=0
sysctl -q net.ipv4.tcp_rmem=\"4096 540000 $((15*1024*1024))\"
tc qdisc add dev tun0 root pfifo
";

const ONE_SEGMENT: &str = "\
+0 write(4, ..., 1000) = 1000
+0 > P. 1:1001(1000) ack 1
";

const SYN_AGAIN: &str = "a SYN that is repeated, or a second connection";

#[test]
fn a_sender_passes() {
    let events = "\
+0 write(4, ..., 3000) = 3000
+0 > P. 1:3001(3000) ack 1
+0 %{ assert tcpi_unacked == 3, tcpi_unacked }%
+.1 < . 1:1(0) ack 3001 win 2000
+0 %{
assert tcpi_snd_cwnd == 10, 'less than the window was used'
assert tcpi_snd_ssthresh == 0x7fffffff; assert tcpi_rtt == 100 * 1000 # microseconds
}%
";
    assert_eq!(passes(SERVER, events), (2, 4));
}

#[test]
fn a_loss_is_repaired() {
    let events = "\
+0 write(4, ..., 10000) = 10000
+0 > P. 1:10001(10000) ack 1
+.1 < . 1:1(0) ack 1 win 2000 <sack 1001:4001,nop,nop>
+0 > . 1:1001(1000) ack 1
+0 %{ assert tcpi_ca_state == TCP_CA_Recovery }%
";
    assert_eq!(passes(SERVER, events), (3, 1));
}

#[test]
fn a_receiver_passes() {
    let events = "\
+.01 < . 1:1001(1000) ack 1 win 2000
+0 > . 1:1(0) ack 1001
+.01 < . 2001:3001(1000) ack 1 win 2000
+0 > . 1:1(0) ack 1001 <nop,nop,sack 2001:3001>
+.01 < . 1001:2001(1000) ack 1 win 2000
+0 > . 1:1(0) ack 3001
";
    assert_eq!(passes(SERVER, events), (4, 0));
}

#[test]
fn a_client_passes_and_its_echoes_give_the_round_trip() {
    let events = "\
+0 write(3, ..., 2000) = 2000
+0 > . 1:1001(1000) ack 1 <nop,nop,TS val 200 ecr 700>
+0 > P. 1001:2001(1000) ack 1 <nop,nop,TS val 200 ecr 700>
+.1 < . 1:1(0) ack 2001 win 2000 <nop,nop,TS val 800 ecr 200>
+0 %{ assert 99000 < tcpi_rtt <= 100000 and tcpi_snd_mss == 1000 }%
";
    assert_eq!(passes(CLIENT, events), (4, 1));
}

#[test]
fn what_the_application_is_told_is_compared() {
    let arrives = "\
+.01 < P. 1:1001(1000) ack 1 win 2000
+0 > . 1:1(0) ack 1001
+0 < P. 2001:2501(500) ack 1 win 2000
+0 > . 1:1(0) ack 1001 <nop,nop,sack 2001:2501>
";
    let with = |events: &str| format!("{arrives}{events}\n");
    let passing = with(
        "+0 ioctl(4, SIOCINQ, [1000]) = 0\n+0 recv(4, ..., 600, MSG_PEEK) = 600\n\
         +0 read(4, ..., 400) = 400\n+0 recvmsg(4, {msg_iov(1)=[{..., 9}]}, 0) = 600\n\
         +0 read(4, ..., 9) = -1 EAGAIN (no more)\n\
         +0 getsockopt(4, SOL_TCP, TCP_MAXSEG, [1000], [4]) = 0\n+0 ioctl(4, SIOCOUTQ, [0]) = 0",
    );
    assert_eq!(passes(SERVER, &passing), (3, 7));
    let wrong = |event: &str| diverges(&with(event));
    let there = "1000 bytes that arrived in order".to_owned();
    assert_eq!(wrong("+0 read(4, ..., 2000) = 1500"), (12, there.clone()));
    assert_eq!(wrong("+0 read(4, ..., 2000) = -1 EAGAIN (none)"), (12, there));
    assert_eq!(wrong("+0 ioctl(4, FIONREAD, [1500]) = 0"), (12, "1000".to_owned()));
    assert_eq!(wrong("+0 getsockopt(4, SOL_TCP, TCP_MAXSEG, [1460], [4]) = 0").1, "1000");
}

#[test]
fn what_arrived_twice_is_told_in_a_first_block() {
    let events = "\
+.01 < . 1:1001(1000) ack 1 win 2000
+0 > . 1:1(0) ack 1001
+.01 < . 501:1001(500) ack 1 win 2000
+0 > . 1:1(0) ack 1001 <nop,nop,sack 501:1001>
";
    assert_eq!(passes(SERVER, events), (3, 0));
    let silent = format!("`sysctl -q net.ipv4.tcp_dsack=0`\n{SERVER}");
    let without = events.replace(" <nop,nop,sack 501:1001>", "");
    assert_eq!(passes(&silent, &without), (3, 0));
}

#[test]
fn who_closes_the_socket_that_listened_closes_nothing() {
    let events = format!("+0 close(3) = 0\n+0 epoll_create(1) = 5\n{ONE_SEGMENT}");
    assert_eq!(passes(SERVER, &events), (2, 0));
    assert_eq!(passes(SERVER, &format!("+0 shutdown(4, SHUT_RD) = 0\n{ONE_SEGMENT}")), (2, 0));
}

#[test]
fn scripts_of_freebsd_are_played_as_such() {
    let script = format!("`sysctl -w net.inet.tcp.recvspace=65536`\n{SERVER}{ONE_SEGMENT}");
    let freebsd = session(&script).params;
    assert_eq!((freebsd.windows.receive_window, freebsd.acks.ack_every), (Bytes(65_536), 2));
    assert_eq!(
        (freebsd.detection.loss_rule, freebsd.prr.prr_rule),
        (LossRule::Rfc6675, PrrRule::RoundedUp)
    );
    let linux = prepare(&read(&script).unwrap(), &|_| None, Some(Stack::Linux)).unwrap().params;
    assert_eq!(linux.detection.loss_rule, LossRule::Rack);
    // The ACK of the first segment waits for the second.
    let arrive = "\
+.01 < . 1:1001(1000) ack 1 win 2000
+.01 < . 1001:2001(1000) ack 1 win 2000
+0 > . 1:1(0) ack 2001
";
    let before = format!("`sysctl -w net.inet.tcp.sack.enable=1`\n{SERVER}");
    assert_eq!(passes(&before, arrive), (2, 0));
}

#[test]
fn lines_and_segments_may_end_at_different_bytes() {
    let events = "\
+0 write(4, ..., 2000) = 2000
+0 > . 1:501(500) ack 1
+0 > P. 501:2001(1500) ack 1
";
    assert_eq!(passes(SERVER, events), (3, 0));
}

#[test]
fn what_only_closes_is_not_played() {
    let events = "\
+.1 < . 1:1(0) ack 1001 win 2000
+0 close(4) = 0
+0 > F. 1001:1001(0) ack 1
+0 < F. 1:1(0) ack 1002 win 2000
+0 > . 1002:1002(0) ack 2
";
    assert_eq!(passes(SERVER, &format!("{ONE_SEGMENT}{events}")), (2, 0));
}

#[test]
fn a_time_is_kept_to_the_tolerance() {
    let late = "+.1 < . 1:1001(1000) ack 1 win 2000\n+{} > . 1:1(0) ack 1001\n";
    let by = |time: &str| late.replace("{}", time);
    assert_eq!(passes(SERVER, &by(".004")), (2, 0));
    let (line, seen) = diverges(&by(".006"));
    assert_eq!((line, seen.as_str()), (9, "at 300 ms: > . ack 1001"));
    assert_eq!(passes(&format!("--tolerance_usecs=6000\n{SERVER}"), &by(".006")), (2, 0));
    assert_eq!(passes(SERVER, &by("0").replace("+0 >", "* >")), (2, 0));
    // The timer expires after 300 ms.
    let again = |after: &str| format!("{ONE_SEGMENT}+{after} > P. 1:1001(1000) ack 1\n");
    assert_eq!(passes(SERVER, &again(".3")), (3, 0));
    assert_eq!(passes(SERVER, &again(".31~.35")), (3, 0));
    assert_eq!(passes(SERVER, &again(".33")), (3, 0), "an eighth of the pause");
    assert_eq!(diverges(&again(".35")), (10, "at 500 ms: > . 1:1001 ack 1".to_owned()));
}

#[test]
fn what_differs_is_told_with_its_line() {
    let one = |line: &str| diverges(&format!("+0 write(4, ..., 1000) = 1000\n{line}\n"));
    assert_eq!(
        one("+0 > P. 1:2001(2000) ack 1"),
        (9, "nothing; the timer is due at 500 ms".to_owned())
    );
    assert_eq!(one("+0 > P. 2:1001(999) ack 1"), (9, "> . 1:1001 ack 1".to_owned()));
    assert_eq!(one("+0 > P. 1:1001(1000) ack 2"), (9, "> . 1:1001 ack 1".to_owned()));
    assert_eq!(one("+0 > W. 1:1001(1000) ack 1"), (9, "> . 1:1001 ack 1".to_owned()));
    assert_eq!(
        one("+0 > . 1:1(0) ack 1\n+0 > P. 1:1001(1000) ack 1"),
        (9, "> . 1:1001 ack 1".to_owned())
    );
    assert_eq!(
        one("+0 %{ assert tcpi_unacked == 2 }%\n+0 > P. 1:1001(1000) ack 1"),
        (9, "1".to_owned())
    );
}

#[test]
fn what_the_endpoint_does_not_know_is_counted() {
    let events =
        format!("{ONE_SEGMENT}+0 %{{ assert tcpi_reordering == 7\nassert tcpi_options & 2 }}%\n");
    let Outcome::Passes(compared) = played(SERVER, &events) else { panic!() };
    let unknown: Vec<_> = compared.unknown.into_iter().collect();
    assert_eq!(compared.held, 0);
    assert_eq!(unknown, [("tcpi_options & 2".to_owned(), 1), ("tcpi_reordering".to_owned(), 1)]);
}

#[test]
fn what_cannot_be_played_is_named_with_its_line() {
    let cases = [
        ("+0 write(4, ..., 9) = 9\n+0 > P. 1:10(9) ack 1 <FO abcd,nop,nop>\n", 9, "the option FO"),
        ("+0 < icmp unreachable frag_needed mtu 900\n+0 > . 1:2(1) ack 1\n", 8, "icmp"),
        ("+0 splice(4, NULL, 5, NULL, 10, 0) = 10\n+0 > P. 1:11(10) ack 1\n", 8, "splice()"),
        ("+0 < SEWA 0:0(0) win 9\n+0 > P. 1:11(10) ack 1\n", 8, SYN_AGAIN),
        ("+0 %{ assert tcpi_options & 2 }%\n", 1, "nothing but opening is compared"),
        ("+0 send(4, ..., 9, MSG_MORE) = 9\n+0 > P. 1:10(9) ack 1\n", 8, "MSG_MORE"),
        ("+0 setsockopt(4, SOL_TCP, TCP_CORK, [1], 4) = 0\n+0 > P. 1:10(9) ack 1\n", 8, "TCP_CORK"),
        (
            "+0 `tc qdisc replace dev tun0 root pfifo limit 0`\n+0 > . 1:2(1) ack 1\n",
            8,
            "a queue that drops at the sender",
        ),
        (
            "+0 `sysctl -q net.ipv4.tcp_mtu_probing=2`\n+0 > . 1:2(1) ack 1\n",
            8,
            "sysctl tcp_mtu_probing=2",
        ),
        ("+0 `iptables -A OUTPUT`\n+0 > . 1:2(1) ack 1\n", 8, "the command iptables"),
        ("+0 < U. 1:2(1) ack 1 win 9\n", 8, "the flag U"),
        ("+0 < . 1:2(1) win 9\n", 8, "a segment without ACK"),
        ("+0 > FP. 1:2(1) ack 1\n", 8, "data beside or behind a FIN or RST"),
        ("+0 close(4) = 0\n+0 > F. 1:1(0) ack 1\n", 8, "nothing but opening and closing"),
        ("+0 < S 0:0(0) win 9\n+0 > . 1:2(1) ack 1\n", 8, SYN_AGAIN),
    ];
    for (events, line, construct) in cases {
        assert_eq!(beyond(&format!("{SERVER}{events}")), (line, construct.to_owned()));
    }
    assert_eq!(beyond("--so_filename=x.so\n"), (1, "--so_filename".to_owned()));
    assert_eq!(beyond("+0 > . 1:2(1) ack 1\n").1, "no connection that opens");
    assert_eq!(beyond("0 ?\n").1, "1: not read: `0 ?`");
}

#[test]
fn the_handshake_and_commands_set_the_endpoint() {
    let plain = session(&format!("{SERVER}{ONE_SEGMENT}"));
    assert_eq!(
        (plain.role, plain.params.packets.mss, plain.window_scale),
        (Role::Server, Bytes(1000), 4)
    );
    assert_eq!((plain.params.ecn.ecn, plain.params.validation.idle_restart), (false, true));
    let set = "`../defaults.sh\n\
               sysctl -q net.ipv4.tcp_ecn=1 net.ipv4.tcp_congestion_control=reno # both\n`\n";
    let routed = "+0 `ip route change 192.0.2.0/24 via 192.0.2.1 dev tun0 initcwnd 3`\n";
    let ecn = SERVER.replace("< S 0", "< SEW 0").replace("mss 1000,sackOK", "mss 1000");
    let changed = session(&format!("{set}{ecn}{routed}{ONE_SEGMENT}"));
    assert!(
        changed.params.ecn.ecn
            && !changed.params.validation.idle_restart
            && !changed.params.prr.prr
    );
    assert_eq!((changed.params.windows.initial_window, changed.controller.kind()), (3, "newreno"));
    let client = session(&format!("{CLIENT}+0 write(3, ..., 9) = 9\n+0 > P. 1:10(9) ack 1\n"));
    assert_eq!(
        (client.role, client.params.packets.mss, client.params.packets.header),
        (Role::Client, Bytes(1000), Bytes(52))
    );
}

#[test]
fn times_calls_packets_and_comments_are_read() {
    let text = "\
/* A comment
   of two lines */
--tolerance_usecs=9000
`sysctl -q net.ipv4.tcp_sack=0`
0.5 setsockopt(3, SOL_TCP, TCP_INFO, {a=1, b=[2, 3]}, 4) = -1 EINVAL (Invalid argument) // why
+.3~+.303 < [ce] PW. 1:3(2) ack 7 win 8 <nop, nop, sack 3:4 5:6, TS val 1 ecr 2>
* > . 3:3(0) ack 3 <...>
+1 < icmp unreachable
";
    let script = read(text).unwrap();
    assert_eq!(script.options, [("tolerance_usecs".to_owned(), "9000".to_owned())]);
    assert_eq!(script.commands, [(4, "sysctl -q net.ipv4.tcp_sack=0".to_owned())]);
    let times: Vec<_> = script.events.iter().map(|event| (event.line, event.when)).collect();
    let at = [
        When::At(500 * MS, 500 * MS),
        When::After(300 * MS, 303 * MS),
        When::Any,
        When::After(1000 * MS, 1000 * MS),
    ];
    assert_eq!(times, [(5, at[0]), (6, at[1]), (7, at[2]), (8, at[3])]);
    let args = ["3", "SOL_TCP", "TCP_INFO", "{a=1, b=[2, 3]}", "4"].map(str::to_owned).to_vec();
    let call = Call {
        name: "setsockopt".to_owned(),
        args,
        result: "-1".to_owned(),
        error: "EINVAL".to_owned(),
    };
    assert_eq!(script.events[0].what, What::Call(call));
    let options = vec![
        TcpOption::Padding,
        TcpOption::Padding,
        TcpOption::Sack(vec![3..4, 5..6]),
        TcpOption::Timestamps(1, 2),
    ];
    let packet = Packet {
        ecn: Some("ce".to_owned()),
        flags: "PW.".to_owned(),
        payload: 1..3,
        ack: Some(7),
        window: Some(8),
        options: Some(options),
    };
    assert_eq!(script.events[1].what, What::In(packet));
    assert!(matches!(&script.events[2].what, What::Out(packet) if packet.options.is_none()));
    assert_eq!(script.events[3].what, What::Other("icmp".to_owned()));
}

#[test]
fn assertions_compare_numbers() {
    let judged = |code: &str| {
        let fact = |name: &str| (name == "tcpi_x").then_some(6.0);
        Names::default().run(code, fact)
    };
    for holds in [
        "assert tcpi_x == 6, 'x; %d' % tcpi_x",
        "N = 2 + 1\nassert tcpi_x == 2 * N",
        "assert (tcpi_x >= 0x6 and tcpi_x != 7)",
        "assert 5 < tcpi_x < 7 # five",
        "print(tcpi_x); assert tcpi_x / 4 == 1.5",
    ] {
        assert!(
            judged(holds).iter().all(|v| *v == Verdict::Holds) && !judged(holds).is_empty(),
            "{holds}"
        );
    }
    let fails = Verdict::Fails("tcpi_x < 6".to_owned(), "6".to_owned());
    assert_eq!(judged("assert tcpi_x < 6, 'no'"), [fails]);
    assert_eq!(judged("assert tcpi_y < 6"), [Verdict::Unknown("tcpi_y".to_owned())]);
    assert_eq!(judged("assert len(s) < 6"), [Verdict::Unknown("len(s) < 6".to_owned())]);
}
