//! Tests of whole restarts in a simulated cluster: scenarios as pages of text, laws for whole runs,
//! properties under faults; and tests of the formats.

mod changes_to_come;
mod deleted_records;
pub(crate) mod driver;
mod failed_sets;
mod first_status;
mod forecasts;
mod formats;
mod given_up_configs;
mod given_up_updates;
mod ignored_changes;
mod known_starts;
mod laws;
mod leaving;
mod ledger_changes;
pub(crate) mod lint;
mod linter;
mod many_nodes;
mod not_waited_for;
mod owed_and_kept_stopped;
mod page;
mod progress;
mod properties;
mod recovering;
mod replaced;
mod resumed;
mod saved;
mod scenario;
mod schema;
mod snapshots;
mod steps;
mod superseded;
mod template_and_blocker;
mod times;
mod upgrade;
mod vain_waits;
pub(crate) mod world;
