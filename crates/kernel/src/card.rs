//! The card of a loaded controller: who it is, what it was told, what it counted. It is a map of the kernel, so anyone
//! with the right to look finds it, whoever loaded the controller.

use std::os::fd::AsFd as _;

use libbpf_rs::query::MapInfoIter;
use libbpf_rs::{MapCore as _, MapFlags, MapHandle};
use serde_json::{Value, json};

use crate::error::Error;
use crate::name::NAME_BYTES;

/// The map that holds a card (bpf/abe.h).
pub const MAP: &str = "cwnd_card";
/// The layout below; another one is not read.
const VERSION: u32 = 1;
/// `struct card` of bpf/abe.h, bytes.
pub const BYTES: usize = 2 * NAME_BYTES + 8 * 4 + 8 * 8;

/// What a controller was told when it was loaded: `struct settings` of bpf/abe.h.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Part of the window that stays after an ECN-echo, in billionths.
    pub beta_ecn: u32,
    /// Whether it also answers an ECN-echo that ends slow start.
    pub always: bool,
    /// Whether a loss in a window that ECN reduced lowers the threshold further.
    pub deepen: bool,
    /// The kernel's ticks a second.
    pub hz: u32,
}

impl Settings {
    /// As the program reads them.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        [self.beta_ecn, u32::from(self.always), u32::from(self.deepen), self.hz]
            .into_iter()
            .flat_map(u32::to_ne_bytes)
            .collect()
    }
}

/// How often what happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Windows reduced because of an ECN-echo.
    pub ecn: u64,
    /// … a loss.
    pub loss: u64,
    /// … a timeout.
    pub timeout: u64,
    /// … the sender's own queue, or a loss that a probe repaired.
    pub local: u64,
    /// Losses in windows that an ECN-echo had reduced before.
    pub loss_after_ecn: u64,
    /// Of `ecn`: in slow start.
    pub ecn_in_slow_start: u64,
    /// Sockets that took the controller.
    pub opened: u64,
    /// Sockets that left it.
    pub closed: u64,
}

/// The card.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Card {
    /// What sockets ask for.
    pub name: String,
    /// Whose algorithm it is.
    pub controller: String,
    /// What it was told.
    pub settings: Settings,
    /// Its flags in the kernel's table.
    pub flags: u32,
    /// The process that loaded it.
    pub pid: u32,
    /// The map that is its table of operations.
    pub table: u32,
    /// What it counted.
    pub counters: Counters,
}

impl Card {
    /// As the map holds it.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(BYTES);
        for text in [&self.name, &self.controller] {
            let mut padded = text.as_bytes().to_vec();
            padded.resize(NAME_BYTES, 0);
            bytes.extend(padded);
        }
        bytes.extend(self.settings.bytes());
        for word in [self.flags, self.pid, self.table, VERSION] {
            bytes.extend(word.to_ne_bytes());
        }
        let c = &self.counters;
        for count in [
            c.ecn,
            c.loss,
            c.timeout,
            c.local,
            c.loss_after_ecn,
            c.ecn_in_slow_start,
            c.opened,
            c.closed,
        ] {
            bytes.extend(count.to_ne_bytes());
        }
        bytes
    }

    /// `None` where the bytes are no card of this version.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<Self> {
        if bytes.len() != BYTES {
            return None;
        }
        let text = |at: usize| {
            let field = &bytes[at..at + NAME_BYTES];
            let end = field.iter().position(|b| *b == 0)?;
            String::from_utf8(field[..end].to_vec()).ok()
        };
        let words: Vec<u32> = bytes[2 * NAME_BYTES..2 * NAME_BYTES + 32]
            .chunks_exact(4)
            .filter_map(|chunk| chunk.try_into().ok().map(u32::from_ne_bytes))
            .collect();
        let counts: Vec<u64> = bytes[2 * NAME_BYTES + 32..]
            .chunks_exact(8)
            .filter_map(|chunk| chunk.try_into().ok().map(u64::from_ne_bytes))
            .collect();
        let &[beta_ecn, always, deepen, hz, flags, pid, table, version] = &words[..] else {
            return None;
        };
        let &[ecn, loss, timeout, local, loss_after_ecn, ecn_in_slow_start, opened, closed] =
            &counts[..]
        else {
            return None;
        };
        (version == VERSION).then_some(())?;
        Some(Self {
            name: text(0)?,
            controller: text(NAME_BYTES)?,
            settings: Settings { beta_ecn, always: always != 0, deepen: deepen != 0, hz },
            flags,
            pid,
            table,
            counters: Counters {
                ecn,
                loss,
                timeout,
                local,
                loss_after_ecn,
                ecn_in_slow_start,
                opened,
                closed,
            },
        })
    }

    /// Sockets that use it now.
    #[must_use]
    pub const fn sockets(&self) -> u64 {
        self.counters.opened.saturating_sub(self.counters.closed)
    }

    /// For programs.
    #[must_use]
    pub fn json(&self) -> Value {
        let c = &self.counters;
        json!({
            "name": self.name,
            "controller": self.controller,
            "beta_ecn": f64::from(self.settings.beta_ecn) / 1e9,
            "mode": if self.settings.always { "always" } else { "avoidance" },
            "loss_after_ecn": if self.settings.deepen { "deepen" } else { "once" },
            "hz": self.settings.hz,
            "pid": self.pid,
            "sockets": self.sockets(),
            "counters": {
                "ecn": c.ecn,
                "ecn_in_slow_start": c.ecn_in_slow_start,
                "loss": c.loss,
                "loss_after_ecn": c.loss_after_ecn,
                "timeout": c.timeout,
                "local": c.local,
                "opened": c.opened,
                "closed": c.closed,
            },
        })
    }
}

/// The card in a map.
///
/// # Errors
/// Where the map cannot be read, or is none of ours.
pub fn of(map: &MapHandle) -> Result<Option<Card>, Error> {
    let value = map
        .lookup(&0_u32.to_ne_bytes(), MapFlags::ANY)
        .map_err(|e| Error::Refused { what: "to read a card".to_owned(), why: e.to_string() })?;
    Ok(value.as_deref().and_then(Card::read))
}

/// The cards of all controllers that are loaded, or that sockets still use.
///
/// # Errors
/// Where the kernel does not let us look.
pub fn all() -> Result<Vec<Card>, Error> {
    let mut cards = Vec::new();
    for info in MapInfoIter::default() {
        if info.name.to_string_lossy() != MAP {
            continue;
        }
        // It may have gone since.
        let Ok(map) = MapHandle::from_map_id(info.id) else { continue };
        let _ = map.as_fd();
        if let Some(card) = of(&map)? {
            cards.push(card);
        }
    }
    cards.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(cards)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn card() -> Card {
        Card {
            name: "abe_c_1234".to_owned(),
            controller: "abe_cubic".to_owned(),
            settings: Settings { beta_ecn: 850_000_000, always: true, deepen: false, hz: 250 },
            flags: 2,
            pid: 17,
            table: 4,
            counters: Counters { ecn: 1, loss: 2, opened: 9, closed: 4, ..Counters::default() },
        }
    }

    #[test]
    fn a_card_comes_back_as_it_was_written() {
        let bytes = card().bytes();
        assert_eq!(bytes.len(), BYTES);
        assert_eq!(Card::read(&bytes), Some(card()));
        assert_eq!(card().sockets(), 5);
    }

    #[test]
    fn a_card_of_another_version_or_size_is_not_read() {
        let mut bytes = card().bytes();
        bytes[2 * NAME_BYTES + 28] = 2;
        assert_eq!(Card::read(&bytes), None);
        assert_eq!(Card::read(&card().bytes()[1..]), None);
    }
}
