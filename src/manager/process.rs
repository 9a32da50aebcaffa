//! Processes: launches the engine, receives signals, waits, and finds and signals the processes of
//! a run.
//!
//! The only module with `unsafe`, and the only caller of `wait` in the shipped binary. It decides
//! nothing: what to launch, signal or kill, and when, is decided by the lifecycle. Linux only.
//!
//! # One task
//! [`launch`], [`Reaper`] and the signals of a [`Tree`] belong to one task. A pid stays reserved
//! until its zombie is reaped, so if one task launches, signals and reaps, a pid cannot become
//! another process in between.

// System calls that no safe crate offers (pidfd, close_range, prctl after fork, waitpid of any
// child with any status) are all here, so that no other module needs `unsafe`.
#![allow(unsafe_code)]

mod archive;
mod check;
mod code_pages;
mod command_line;
mod delivery;
mod descriptors;
mod fork_exec;
mod identity;
mod inherited;
mod kept_listener;
mod kill_rounds;
mod launch;
mod leftovers;
mod membership;
pub mod oom;
mod oom_score;
mod procfs;
mod reaper;
mod replace_program;
mod scan;
mod signal_tree;
mod signals;
mod temp_dir;
mod terminal;
mod tree;

pub use crate::exit_status::ExitStatus;
pub use archive::Archive;
pub use check::{
    Checking, Program, check, is_for_this_machine, is_own_program, only_ours_to_write,
};
pub use code_pages::unmap_code;
pub use delivery::Delivery;
pub use descriptors::own_descriptors;
pub use fork_exec::Launched;
pub use identity::{become_subreaper, is_pid_1, name_again, own_pid, tune_allocator};
pub use inherited::Inherited;
pub use kept_listener::KeptListener;
pub use launch::{Launch, LaunchError, launch};
pub use leftovers::{LeftBehind, end_leftovers};
pub use procfs::ProcUnusable;
pub use reaper::{Reaped, Reaper};
pub use replace_program::{
    HAND_OVER_VARIABLE, execute, execute_again, handed_over, in_memory, inherited, open_program,
    own_program,
};
pub use scan::{Member, Scan};
pub use signals::Signals;
pub use temp_dir::{TempDir, TempDirError};
pub use tree::{RUN_VARIABLE, Seen, Tree};
