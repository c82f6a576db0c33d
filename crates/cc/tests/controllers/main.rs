//! Controllers driven by hand: scripts take the place of the transport.

#[cfg(test)]
mod copa;
#[cfg(test)]
mod counted;
#[cfg(test)]
mod cubic;
#[cfg(test)]
mod dctcp;
#[cfg(test)]
mod decrease;
#[cfg(test)]
mod invariants;
#[cfg(test)]
mod newreno;
#[cfg(test)]
mod presets;
#[cfg(test)]
mod script;
#[cfg(test)]
mod steered;
#[cfg(test)]
mod teaching;
#[cfg(test)]
mod vectors;
