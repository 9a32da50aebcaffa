//! The reconciler against the stand-in apiserver, real managers and stand-in engines.

mod certificates;
mod containers;
mod declared;
mod deleted;
mod detached;
mod disabled;
mod faults;
mod fixture;
mod found_sources;
mod gates;
mod hung_engine;
mod ignored;
mod leaving;
mod leftovers;
mod lost_apiserver;
mod manager;
mod mistakes;
mod needs_coordinated;
mod node_down;
mod objects;
mod program;
mod refusals;
mod rolling;
mod snapshots;
mod templates;
mod windows;
