//! `kubectl stayput` as people and scripts use it: what it prints, its exit codes, what it writes.

mod actions;
mod complete;
mod declared;
mod diff;
mod doctor;
mod everywhere;
mod fixture;
mod forecast;
mod init;
mod inject;
mod json;
mod pages;
mod port_forward;
mod running;
mod session;
mod ui;
mod watch;
