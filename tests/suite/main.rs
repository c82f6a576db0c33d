//! What crosses the crates' borders: a scenario goes in, tables come out.

mod applications;
mod architecture;
mod arrivals;
mod becn;
mod check;
mod circles;
mod closed_forms;
mod common;
mod conservation;
mod controllers;
mod datagrams;
mod determinism;
mod doors;
mod fuzz;
mod goldens;
mod infer;
mod kernel;
mod links;
mod messages;
mod meters;
mod random;
mod requests;
mod rtt;
mod sparse;
mod timeouts;
mod workloads;
