//! `kubectl stayput` as a person or a script meets it: what is printed, exit codes, what is written.

mod acts;
mod ahead;
mod looks;
mod stage;
mod watches;
