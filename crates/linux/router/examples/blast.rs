//! Measures the speed of the router on this machine: TCP through two TUN devices, both directions
//! limited to a rate. Needs root.
//!
//! `cargo run --release -p cwnd-router --example blast -- RATE QUEUE DELAY SECONDS SPIN` writes one
//! line of JSON.

#[cfg(target_os = "linux")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    linux::main()
}

#[cfg(not(target_os = "linux"))]
fn main() {
    eprintln!("needs Linux");
}

#[cfg(target_os = "linux")]
mod linux {
    use std::error::Error;
    use std::io::{ErrorKind, Read, Write};
    use std::net::{Ipv4Addr, TcpListener, TcpStream};
    use std::thread;
    use std::time::Duration as Wall;

    use cwnd_aqm::QueueParams;
    use cwnd_quantity::{Duration, parse_duration, parse_rate};
    use cwnd_router::{Config, Direction, Namespace, Tun, start};
    use cwnd_schema::ParamsChoice;

    const A: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
    const B: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);

    pub fn main() -> Result<(), Box<dyn Error>> {
        let mut args = std::env::args().skip(1);
        let mut next = |default: &str| args.next().unwrap_or_else(|| default.to_owned());
        let rate = parse_rate(&next("1 Gbit/s"))?;
        let kind = next("codel");
        let queue = QueueParams::of_kind(&kind).ok_or("no such queue")?;
        let delay: Duration = parse_duration(&next("5 ms"))?;
        let seconds: u64 = next("5").parse()?;
        let spin = next("");

        let (a, b) = (Namespace::fresh()?, Namespace::fresh()?);
        let device = |ns: &Namespace, own, peer| {
            ns.inside(|| {
                let tun = Tun::open("cwnd%d")?;
                tun.add_address(own, peer)?;
                Ok(tun)
            })
        };
        let limited = |name| Direction::limited(name, rate, queue.clone(), delay);
        let mut config = Config::new(limited("there"), limited("back"));
        if !spin.is_empty() {
            config.pacing.spin = parse_duration(&spin)?;
        }
        let router = start(config, device(&a, A, B)?, device(&b, B, A)?, None)?;

        let listener = b.inside(|| TcpListener::bind((B, 5001)))?;
        let receiver = thread::Builder::new().spawn(move || -> std::io::Result<u64> {
            let (mut stream, _) = listener.accept()?;
            let (mut buffer, mut received) = (vec![0; 1 << 18], 0);
            loop {
                match stream.read(&mut buffer) {
                    Ok(0) => return Ok(received),
                    Ok(n) => received += n as u64,
                    Err(e) if e.kind() == ErrorKind::ConnectionReset => return Ok(received),
                    Err(e) => return Err(e),
                }
            }
        })?;
        let mut stream = a.inside(|| TcpStream::connect((B, 5001)))?;
        stream.set_write_timeout(Some(Wall::from_secs(1)))?;
        let (block, began) = (vec![0; 1 << 18], cwnd_router::linux::monotonic());
        let mut took = Duration::ZERO;
        while took < Duration::from_secs(seconds) {
            let _ = stream.write(&block)?;
            took = cwnd_router::linux::monotonic().since(began);
        }
        drop(stream);
        let received = receiver.join().map_err(|_| "the receiver panicked")??;
        let report = router.stop()?;
        let there = &report.directions[0];
        let micros = |q: f64| there.lateness.quantile(q).unwrap_or_default().0 as f64 / 1000.0;
        println!(
            "{{\"rate\": \"{rate}\", \"queue\": \"{kind}\", \"goodput_mbit_s\": {:.1}, \
             \"wire_mbit_s\": {:.1}, \"packets\": {}, \"largest\": {}, \"drops\": {}, \
             \"lost_before\": {:?}, \"late_p50_us\": {:.1}, \"late_p99_us\": {:.1}, \
             \"late_max_us\": {:.0}, \"qdelay_p50_us\": {:.0}, \"idle\": {:.3}, \"cpu\": {:.3}, \
             \"scheduling\": \"{}\", \"valid\": {}, \"flaws\": {:?}}}",
            received as f64 * 8e-6 / took.as_secs_f64(),
            there.total.link.delivered_bytes as f64 * 8e-6 / report.elapsed.as_secs_f64(),
            there.total.link.delivered,
            there.total.largest,
            there.total.link.drops.total(),
            there.lost_before.unwrap_or_default(),
            micros(0.5),
            micros(0.99),
            micros(1.0),
            there.qdelay.quantile(0.5).unwrap_or_default().0 as f64 / 1000.0,
            report.idle,
            report.cpu,
            report.scheduling,
            report.valid(),
            report.flaws,
        );
        Ok(())
    }
}
