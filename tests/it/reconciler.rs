//! The reconciler against the stand-in apiserver, real managers and stand-in engines.

mod disabled;
mod faults;
mod fixture;
mod manager;
mod mistakes;
mod node_down;
mod objects;
mod program;
mod refusals;
mod rolling;
mod snapshots;
