//! System calls of the application, and their results.

use super::{Differs, Player};
use crate::language::Call;
use crate::settings::{READS, WRITES, flags};

impl Player<'_> {
    pub(super) fn call(&mut self, call: &Call, blocks: bool) -> Result<(), Differs> {
        match call.name.as_str() {
            "connect" => self.sender.open(),
            name if WRITES.contains(&name) => {
                // Bytes that the socket accepted; 0 if the call failed.
                let taken = call.moved();
                self.written += taken;
                self.sender.write(taken);
            }
            name if READS.contains(&name) => return self.read(call, blocks),
            "getsockopt" | "ioctl" => return self.ask(call),
            name @ ("epoll_wait" | "poll") => self.not_checked(name),
            _ => {}
        }
        Ok(())
    }

    /// Compares the result of a read with the bytes that arrived in order. Results of blocking
    /// calls and of failures other than EAGAIN are not checked.
    fn read(&mut self, call: &Call, blocks: bool) -> Result<(), Differs> {
        let asked = match call.name.as_str() {
            "read" | "recv" | "recvfrom" => call.arg(2).parse().ok(),
            _ => None,
        };
        let peeks = flags(call).any(|flag| flag == "MSG_PEEK");
        let failed = call.result.starts_with('-') && call.error != "EAGAIN";
        if blocks || failed || flags(call).any(|flag| flag == "MSG_ERRQUEUE") {
            self.not_checked(&call.name);
        } else {
            let there = self.unread();
            let gets = asked.map_or(there.min(call.moved()), |most: u64| most.min(there));
            let waits = call.error == "EAGAIN";
            if gets != call.moved() || waits && there > 0 {
                let wanted = format!("{}() = {} {}", call.name, call.result, call.error);
                return Err((wanted, format!("{there} bytes that arrived in order")));
            }
            self.compared.held += 1;
        }
        if !peeks {
            self.read += call.moved();
        }
        Ok(())
    }

    /// Bytes that arrived in order and are not read.
    fn unread(&self) -> u64 {
        self.receiver.piggyback_ack(u64::MAX).seq.saturating_sub(self.read)
    }

    /// Compares a query of the socket, such as SIOCINQ, with the endpoint's state.
    fn ask(&mut self, call: &Call) -> Result<(), Differs> {
        let unacked = self.written - self.sender.acknowledged();
        let (asked, answer) = match (call.name.as_str(), call.arg(1), call.arg(2)) {
            ("ioctl", "SIOCINQ" | "FIONREAD", told) => (told, Some(self.unread())),
            ("ioctl", "SIOCOUTQ", told) => (told, Some(unacked)),
            ("ioctl", "SIOCOUTQNSD", told) => (told, Some(self.facts().not_sent())),
            (_, _, "TCP_MAXSEG") if self.open => (call.arg(3), Some(self.sender.mss())),
            _ => ("", None),
        };
        let told = asked.trim_matches(['[', ']']).parse::<u64>();
        let (Some(answer), Ok(told)) = (answer, told) else {
            self.not_checked(&format!("{} {}", call.name, call.arg(2)));
            return Ok(());
        };
        if told != answer {
            return Err((format!("{}({})", call.name, call.args.join(", ")), answer.to_string()));
        }
        self.compared.held += 1;
        Ok(())
    }
}
