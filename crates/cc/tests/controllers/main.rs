//! Controllers driven by hand: scripts take the place of the transport.

#[cfg(test)]
mod cubic;
#[cfg(test)]
mod decrease;
#[cfg(test)]
mod example_controller;
#[cfg(test)]
mod explicit_feedback;
#[cfg(test)]
mod invariants;
#[cfg(test)]
mod newreno;
#[cfg(test)]
mod script;
#[cfg(test)]
mod vectors;
