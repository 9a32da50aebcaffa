//! The whole manager, tested from outside: `stayput run` as a process, its unix socket, its
//! signals, its exit code. One module for each group of promises.

mod client;
mod gate;
mod manager;
mod pod;
mod processes;
mod secured;

mod config;
mod crashes;
mod crowd;
mod endings;
mod faults;
mod journal;
mod load;
mod log;
mod old_kernels;
mod other_user;
mod plain;
mod readiness;
mod remote;
mod requests;
mod resume;
mod service_account;
mod settings;
mod surroundings;
mod termination;
mod tls;
mod tree;
mod upgrade;
