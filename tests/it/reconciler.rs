//! The reconciler against the stand-in apiserver, real managers and stand-in engines.

mod disabled;
mod faults;
mod ground;
mod manager;
mod program;
mod refusals;
mod rolling;
mod snapshots;
mod stage;
mod upsets;
