//! State of a group in the kernel besides its sockets: controller, bounds of timeouts, and
//! misbehaviour of receivers.

use std::net::Ipv4Addr;
use std::path::Path;

use cwnd_scenario::FlowGroup;

use crate::error::Error;
use crate::kernel::{Controller, End, LoadPlace, Loaded};
use crate::lab;
use crate::timeouts::Bounds;

/// Kernel state of one group.
#[derive(Debug)]
pub struct KernelState {
    /// Controller that its sockets request.
    pub controller: Controller,
    /// Program that bounds its timeouts, if they differ from the kernel's.
    pub bounds: Option<Bounds>,
    /// Program that makes its receivers misbehave, if they do.
    misbehaviour: Option<Loaded>,
}

impl KernelState {
    /// Loads what needs no namespace, and prepares the rest.
    pub fn of(group: &FlowGroup, program: Option<&Path>) -> Result<Self, Error> {
        Ok(Self {
            controller: Controller::of(group, program)?,
            bounds: Bounds::of(group, program)?,
            misbehaviour: lab::misbehaviour_arguments(&group.endpoint)
                .map(|words| Loaded::new(words, LoadPlace::ReceiversInterface, program))
                .transpose()?,
        })
    }

    /// Loads what belongs to this end of the group's connections, in the calling thread's
    /// namespace.
    pub fn load_at(&self, end: End, interface: &str, address: Ipv4Addr) -> Result<(), Error> {
        let bounds = self.bounds.as_ref().map(|bounds| &bounds.loaded);
        let mut all =
            [self.controller.loaded(), bounds, self.misbehaviour.as_ref()].into_iter().flatten();
        all.try_for_each(|loaded| loaded.load_at(end, interface, address))
    }
}
