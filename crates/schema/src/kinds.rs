//! Kinds of a part: their parameters behind one type, which [`registry!`] defines.
//!
//! [`registry!`]: crate::registry!

use alloc::vec::Vec;

use crate::description::Description;
use crate::params::{Params, RegistryEntry};

/// Parameters of one of several kinds, defined by [`registry!`](crate::registry!).
pub trait ParamsChoice: Sized + Default {
    /// Entries of all kinds of this project.
    const KINDS: &'static [RegistryEntry];
    /// Entries of the kinds whose code is the user's.
    const LOADED: &'static [RegistryEntry];
    /// Entries of all kinds.
    fn all_kinds() -> impl Iterator<Item = &'static RegistryEntry> {
        Self::KINDS.iter().chain(Self::LOADED)
    }
    /// Returns the defaults of a kind, by any of its names; `None` if there is no such kind.
    fn of_kind(kind: &str) -> Option<Self>;
    /// Returns the name of this kind.
    fn kind(&self) -> &'static str;
    /// `true` if its code is the user's.
    fn is_loaded(&self) -> bool {
        self.description().is_some() || Self::LOADED.iter().any(|entry| entry.name == self.kind())
    }
    /// `true` if packages of the user's may have further kinds.
    const HAS_INSTALLED: bool = false;
    /// Lists all kinds, and those of installed packages, each with its defaults.
    fn with_installed(installed: &[&'static Description]) -> Vec<(RegistryEntry, Self)> {
        let own = Self::all_kinds().filter_map(|kind| Some((*kind, Self::of_kind(kind.name)?)));
        let others = installed.iter().filter_map(|&of| Some((of.entry, Self::of_installed(of)?)));
        own.chain(others).collect()
    }
    /// Returns the defaults of a kind that an installed package has.
    fn of_installed(_: &'static Description) -> Option<Self> {
        None
    }
    /// Returns the description of a kind that an installed package has; `None` for other kinds.
    fn description(&self) -> Option<&'static Description> {
        None
    }
    /// Returns its parameters.
    fn params(&self) -> &dyn Params;
    /// Returns its parameters, for changes.
    fn params_mut(&mut self) -> &mut dyn Params;
}
