//! `kubectl stayput`: what is going on, why, and how to ask for something else, for people at three
//! in the morning and for scripts.
//!
//! Nothing is decided in here: it reads what the reconciler has written in a SearchCluster's status
//! and on the pods ([`view`]), renders it ([`pages`], [`progress`]; pure), and writes annotations
//! ([`act`]). Engine and managers are never asked: what only they know the reconciler tells
//! ([`reconciler`]), and a dry run is made from it by the same rules ([`ahead`]).

mod act;
mod ahead;
mod apiserver;
mod args;
mod connect;
mod failure;
mod find;
mod follow;
mod output;
mod pages;
mod progress;
mod reconciler;
mod run;
mod text;
mod view;

#[cfg(test)]
mod tests;

pub use failure::Failure;
pub use follow::{Ended, follow};
pub use output::schema;
pub use progress::Line;
pub use run::main;
