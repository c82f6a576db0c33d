//! Functions that a library exports; the part of [`controllers!`](crate::controllers!) that is no
//! macro.

use core::ffi::{CStr, c_char};
use core::fmt;
use std::ffi::CString;
use std::panic::catch_unwind;
use std::sync::OnceLock;

use cwnd_schema::description::describe;
use serde_json::{Map, Value as Json};

use crate::calls;
use crate::kind::{Kind, to_c};
use crate::layout::Table;

/// Kinds that a library exports, with their tables.
#[derive(Default)]
pub struct Exported {
    tables: Vec<Table>,
    kinds: Vec<ExportedKind>,
}

impl fmt::Debug for Exported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exported").field("kinds", &self.kinds.len()).finish_non_exhaustive()
    }
}

/// Functions of a kind that are not in its table.
struct ExportedKind {
    name: &'static str,
    describe: fn() -> Result<Json, String>,
    configure: fn(&Table, &Map<String, Json>) -> Result<(), String>,
}

/// Place and message of the first panic.
static FAILURE: OnceLock<CString> = OnceLock::new();

/// Returns the message of the first panic; null if there was none.
pub fn failure() -> *const c_char {
    FAILURE.get().map_or(core::ptr::null(), |text| text.as_ptr())
}

/// Keeps the message of a panic, which `cwnd` then reports with the simulated time.
fn keep_message(info: &std::panic::PanicHookInfo<'_>) {
    let payload = info.payload();
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    let place = info.location().map_or_else(String::new, |at| format!("{at}: "));
    let _ = FAILURE.set(to_c(&format!("{place}{}", text.unwrap_or("a panic without a text"))));
}

impl Exported {
    /// Adds a kind.
    #[must_use]
    pub fn with<K: Kind>(mut self) -> Self {
        if self.tables.is_empty() {
            std::panic::set_hook(Box::new(keep_message));
        }
        self.tables.push(calls::table::<K>());
        self.kinds.push(ExportedKind {
            name: K::ENTRY.name,
            describe: || describe(&K::ENTRY, &K::default()),
            configure: calls::configure::<K>,
        });
        self
    }

    /// `cwnd_controllers` of the header.
    pub fn tables(&self, count: &mut u32) -> *const Table {
        *count = u32::try_from(self.tables.len()).unwrap_or(u32::MAX);
        self.tables.as_ptr()
    }

    /// `cwnd_describe` of the header.
    pub fn describe(&self) -> *const c_char {
        let kinds: Result<Vec<Json>, String> =
            self.kinds.iter().map(|kind| (kind.describe)()).collect();
        let text = match kinds {
            Ok(kinds) => Json::Array(kinds),
            Err(why) => Json::String(why),
        };
        to_c(&text.to_string()).into_raw()
    }

    /// `cwnd_configure` of the header.
    ///
    /// # Safety
    /// Both are texts that end with a zero.
    #[expect(unsafe_code, reason = "the texts come from another language")]
    pub unsafe fn configure(
        &self,
        name: *const c_char,
        parameters: *const c_char,
    ) -> *const c_char {
        let [name, parameters] =
            [name, parameters].map(|text| unsafe { CStr::from_ptr(text) }.to_string_lossy());
        let Some(place) = self.kinds.iter().position(|kind| kind.name == name) else {
            return to_c(&format!("has no controller `{name}`")).into_raw();
        };
        let parameters: Map<String, Json> = serde_json::from_str(&parameters).unwrap_or_default();
        let done = catch_unwind(|| (self.kinds[place].configure)(&self.tables[place], &parameters));
        match done {
            Ok(Ok(())) => core::ptr::null(),
            Ok(Err(why)) => to_c(&why).into_raw(),
            Err(_) => failure(),
        }
    }
}
