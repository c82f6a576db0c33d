//! Flow groups with `stack = "quic"`.

use cwnd_scenario::{Cell, Document};

const NO_FILES: &dyn Fn(&str) -> Result<String, String> = &|name| Err(format!("no file `{name}`"));

fn read(flow: &str) -> Result<Cell, String> {
    let text = format!(
        "schema = 2\n[run]\nduration = \"10 s\"\n[dumbbell]\nrate = \"10 Mbit/s\"\n[flow.main]\n\
         rtt = \"100 ms\"\n{flow}\n"
    );
    let cells = Document::parse("test.toml", &text, NO_FILES).and_then(|document| document.cells());
    cells.map(|mut cells| cells.remove(0)).map_err(|diagnostics| diagnostics.to_string())
}

/// Returns the error message for a flow that is refused.
fn refused(flow: &str) -> String {
    read(&format!("stack = \"quic\"\n{flow}")).map(|_| ()).expect_err(flow)
}

#[test]
fn the_stack_has_keys_of_its_own_and_resolves_to_itself() {
    let flow = "stack = \"quic\"\nendpoint = { max_ack_delay = \"10 ms\", ecn = true }\n\
                controller = \"newreno\"";
    let cell = read(&flow.replace(", ecn = true", "")).expect("it is right");
    let quic = cell.scenario.flows[0].quic.as_ref().expect("it is QUIC");
    assert_eq!(quic.max_ack_delay.as_secs_f64(), 0.010);
    let resolved = &cell.resolved_toml;
    for line in [
        "stack = \"quic\"",
        "preset = \"rfc9002\"  # of the stack",
        "preset = \"quic\"  # of the stack",
        "max_ack_delay = \"10 ms\"  # in place of the preset's",
        "packet_threshold = 3",
    ] {
        assert!(resolved.contains(line), "{line}:\n{resolved}");
    }
    assert!(!resolved.contains("rto_min"), "{resolved}");
    let again = Document::parse("again.toml", resolved, NO_FILES).unwrap().cells().unwrap();
    assert_eq!(&again[0].resolved_toml, resolved);
    assert_eq!(again[0].scenario, cell.scenario);
}

/// Transfer of 100 full packets of QUIC, each with 33 B of QUIC header and tag and 28 B of UDP and
/// IP headers. Their bits take 0.24 s at half of 10 Mbit/s, and no SYN comes before them.
#[test]
fn a_load_counts_packets_of_the_stack() {
    let flow = "stack = \"quic\"\nworkload = { kind = \"bytes\", size = \"143900 B\" }\n\
                arrivals = { kind = \"poisson\", load = 0.5 }";
    let cell = read(flow).expect("it is right");
    assert!(cell.resolved_toml.contains("interval = \"240 ms\""), "{}", cell.resolved_toml);
}

#[test]
fn keys_of_tcp_are_refused_with_the_key_in_their_place() {
    let more = cwnd_tcp::quic::PACKET_OVERHEAD;
    let larger = format!("write `max_datagram_size` in its place, {more} B more");
    for (key, remedy) in [
        ("mss = \"1000 B\"", larger.as_str()),
        ("ack_every = 1", "write `ack_eliciting_threshold` in its place, one less"),
        ("rto_min = \"1 s\"", "remove it, or take a stack of TCP"),
        ("timestamps = true", "remove it, or take a stack of TCP"),
        ("recovery = \"sack\"", "remove it, or take a stack of TCP"),
    ] {
        let message = refused(&format!("endpoint = {{ {key} }}"));
        let name = key.split(' ').next().unwrap_or(key);
        let expected =
            format!("unknown key `{name}` in the endpoint: it is a key of TCP; {remedy}");
        assert!(message.contains(&expected), "{message}");
    }
    let message = read("endpoint = { packet_threshold = 4 }").expect_err("it is TCP");
    assert!(message.contains("it is a key of the stack `quic`"), "{message}");
    assert!(refused("endpoint = \"linux\"").contains("quic"));
}

#[test]
fn parts_workloads_and_controllers_that_need_tcp_are_refused() {
    let parts = read("stack = { base = \"quic\", without = [\"rack\"] }").expect_err("no parts");
    assert!(parts.contains("the stack `quic` has no parts, and `rack` is one of TCP"), "{parts}");
    for (flow, expected) in [
        ("controller = \"bbr\"", "`bbr` steers by delivery rates"),
        ("controller = \"dctcp\"", "take another controller, or a stack of TCP"),
        (
            "workload = { kind = \"web\", size = \"10 kB\" }",
            "clients of `web` ask on a connection of TCP, not of `quic`",
        ),
        ("attacker = \"quench\"", "senders of `quic` ignore source quenches"),
        ("endpoint = { max_datagram_size = \"1000 B\" }", "QUIC needs a path for 1200 B"),
        ("endpoint = { packet_threshold = 2 }", "a threshold below 3 should not be used"),
    ] {
        let message = refused(flow);
        assert!(message.contains(expected), "{flow}:\n{message}");
    }
}
