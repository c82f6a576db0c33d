//! Tests of the endpoint in virtual time: segments in, segments out.

#[cfg(test)]
mod common;
#[cfg(test)]
mod echoes;
#[cfg(test)]
mod ecn;
#[cfg(test)]
mod explicit_feedback;
#[cfg(test)]
mod figures;
#[cfg(test)]
mod handshake;
#[cfg(test)]
mod invariants;
#[cfg(test)]
mod receiver;
#[cfg(test)]
mod recovery;
#[cfg(test)]
mod requests;
#[cfg(test)]
mod sack;
#[cfg(test)]
mod timer;
#[cfg(test)]
mod windows;
