//! The one task that owns the engine, its timers, its journal and every wait.
//!
//! The supervisor decides nothing: [`crate::lifecycle`] does. It turns signals, deaths, requests,
//! timers and results of slow disks into events, carries out the effects and publishes the status.
//! Work that may block (journal, config, temporary directory) runs elsewhere and reports by
//! message, so a hung disk blocks nothing else.

mod actor;
mod clock;
mod events;
mod hand_over;
mod handle;
mod journal;
mod journal_writer;
mod perform;
mod prepare;
mod probe;
mod random_id;
mod readiness;
mod run;
mod state_dir;
mod status;
mod upgrade;
mod waiting;

pub use actor::{Ended, Supervisor, SupervisorParts};
#[cfg(test)]
pub(crate) use clock::Clock;
pub use hand_over::{CAN_TAKE_OVER, HandOver, HandOverError, Taken};
#[cfg(test)]
pub(crate) use handle::Call;
pub use handle::{Control, Handle};
pub use journal::Journal;
pub use probe::{Probe, Prober};
pub use state_dir::StateDirError;
pub use upgrade::Serving;
