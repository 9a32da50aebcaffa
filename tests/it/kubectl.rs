//! `kubectl stayput` as people and scripts use it: what it prints, its exit codes, what it writes.

mod actions;
mod fixture;
mod forecast;
mod pages;
mod watch;
