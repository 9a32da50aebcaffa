//! The formats of annotations, requests, phases and times.

mod annotations;
mod phase;
mod request;
mod rules;
mod time;
