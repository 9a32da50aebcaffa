//! The manager: runs the engine as PID 1 of its container, and its command line.
//!
//! * [`lifecycle`]: every decision about the engine, pure: `step(now, event) -> effects`.
//! * [`supervisor`]: one task that owns engine, timers and journal, and carries effects out.
//! * [`process`]: spawn, signals, the only caller of `wait`; the only `unsafe`.
//! * [`config_watch`]: the mounted config, its checksum, staging, last good.
//! * [`http`]: listeners, TLS, who may call, routes.
//! * `inotify`: for config, keys and variables, a change of a directory or of a link to it.
//! * `files`: a small file that is replaced as a whole; directories that are deleted.
//! * `exit_status`: how a process ended; of `lifecycle` and `process`.
//! * [`errors`]: present errors of the manager itself.
//! * [`metrics`]: what `/metrics` serves.
//! * [`worker`]: threads for work that may block.
//! * [`variables`]: the engine's variables from a file.
//! * [`warm`]: an archive of the engine's classes, for an image build.
//! * [`settings`]: the options of `stayput run`, checked.
//! * [`cli`]: the subcommands of `stayput`.

pub mod cli;
pub mod config_watch;
pub mod errors;
mod exit_status;
mod files;
pub mod http;
mod inotify;
pub mod lifecycle;
pub mod metrics;
pub mod process;
pub mod settings;
pub mod supervisor;
pub mod variables;
pub mod warm;
pub mod worker;
