//! Controllers of a crate of one's own, for `cwnd`: [`controllers!`] exports them as the tables of
//! functions of `python/cwnd/c/controller.h`, which [`layout`] describes to both sides.
//!
//! `cwnd new controller mine --rust` writes a crate that uses this one.
//!
//! ```
//! use cwnd_cc::newreno::{NewReno, Params as Reno};
//! use cwnd_cc::Start;
//! use cwnd_extension::Kind;
//! use cwnd_schema::{RegistryEntry, Schema};
//!
//! /// Parameters, which are keys of scenarios.
//! #[derive(Clone, Debug, Schema)]
//! pub struct Params {
//!     /// Reno's own.
//!     #[flatten(Reno::default())]
//!     pub reno: Reno,
//! }
//!
//! impl Kind for Params {
//!     const ENTRY: RegistryEntry = RegistryEntry::new("mine", "NewReno, in a crate.");
//!     type Controller = NewReno;
//!     fn start(&self, start: &Start) -> NewReno {
//!         NewReno::new(&self.reno, start)
//!     }
//! }
//!
//! cwnd_extension::controllers!(Params);
//! ```
//!
//! The tables carry what [`Controller`](cwnd_cc::Controller) has, except headers for routers,
//! guidance, gaps between segments and the choice of RTT samples: `stamp`, `spacing`,
//! `rate_applies_at_once`, `ignores_delayed_acks`, `min_rtt` and `guidance` are not called.
//! `is_rate_based` and `reads_ecn_field` are called once the parameters are known, for all
//! connections.

mod calls;
#[doc(hidden)]
pub mod exported;
mod kind;
pub mod layout;

pub use kind::Kind;

/// Exports kinds of controllers from the library of a crate of type `cdylib`.
#[macro_export]
macro_rules! controllers {
    ($($kind:ty),+ $(,)?) => {
        const _: () = {
            use ::core::ffi::c_char;

            fn exported() -> &'static $crate::exported::Exported {
                static EXPORTED: ::std::sync::OnceLock<$crate::exported::Exported> =
                    ::std::sync::OnceLock::new();
                EXPORTED.get_or_init(|| $crate::exported::Exported::default()$( .with::<$kind>() )+)
            }

            #[unsafe(no_mangle)]
            extern "C" fn cwnd_controllers(
                _version: u32,
                count: &mut u32,
            ) -> *const $crate::layout::Table {
                exported().tables(count)
            }

            #[unsafe(no_mangle)]
            extern "C" fn cwnd_describe() -> *const c_char {
                exported().describe()
            }

            #[unsafe(no_mangle)]
            unsafe extern "C" fn cwnd_configure(
                name: *const c_char,
                parameters: *const c_char,
            ) -> *const c_char {
                unsafe { exported().configure(name, parameters) }
            }

            #[unsafe(no_mangle)]
            extern "C" fn cwnd_failure() -> *const c_char {
                $crate::exported::failure()
            }
        };
    };
}
