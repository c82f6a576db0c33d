//! State of a group in the kernel besides sockets: its controller, the bounds of its timeouts, and
//! the misbehaviour of its receivers.

use std::net::Ipv4Addr;
use std::path::Path;

use cwnd_scenario::FlowGroup;

use crate::error::Error;
use crate::kernel::{Controller, End, Loaded, Place};
use crate::lab;
use crate::timeouts::Bounds;

/// All of it, for one group.
#[derive(Debug)]
pub struct Held {
    /// What its sockets ask for.
    pub controller: Controller,
    /// What bounds its timeouts, if the kernel's own are others.
    pub bounds: Option<Bounds>,
    /// What makes its receivers cheat, if they do.
    cheat: Option<Loaded>,
}

impl Held {
    /// Provides it, as far as it needs no namespace.
    pub fn of(group: &FlowGroup, program: Option<&Path>) -> Result<Self, Error> {
        Ok(Self {
            controller: Controller::of(group, program)?,
            bounds: Bounds::of(group, program)?,
            cheat: lab::cheats(&group.endpoint)
                .map(|words| Loaded::new(words, Place::ReceiversInterface, program))
                .transpose()?,
        })
    }

    /// There is this end of the group's connections, in the namespace of the calling thread: what belongs there is loaded.
    pub fn meets(&self, end: End, interface: &str, address: Ipv4Addr) -> Result<(), Error> {
        let bounds = self.bounds.as_ref().map(|bounds| &bounds.loaded);
        let mut all = [self.controller.loaded(), bounds, self.cheat.as_ref()].into_iter().flatten();
        all.try_for_each(|loaded| loaded.meets(end, interface, address))
    }
}
