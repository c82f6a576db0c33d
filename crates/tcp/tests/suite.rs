//! Tests of the endpoints in virtual time.

#[cfg(test)]
mod endpoint;
#[cfg(test)]
mod packetdrill;
#[cfg(test)]
mod probes;
#[cfg(test)]
mod quic;
#[cfg(test)]
mod scripts;
