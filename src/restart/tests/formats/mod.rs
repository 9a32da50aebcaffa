//! The texts that people and programs exchange with us.

mod annotations;
mod phase;
mod request;
mod rules;
mod time;
