//! Controllers driven by hand: what the transport would tell them, as scripts.

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
