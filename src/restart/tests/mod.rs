//! Tests of whole restarts in a simulated cluster: scenarios that read as pages of text, laws over
//! whole runs, properties under faults; and the texts that people and programs exchange with us.

mod driver;
mod failed_sets;
mod forecasts;
mod formats;
mod laws;
mod ledger_changes;
pub(crate) mod lint;
mod linter;
mod page;
mod progress;
mod properties;
mod saved;
mod scenario;
mod schema;
mod steps;
mod superseded;
pub(crate) mod world;
