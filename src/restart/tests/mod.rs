//! The restart room in a world of its own: scenarios that read as pages of text, laws over whole
//! runs, properties under faults; and the words people and programs exchange with it.

mod driver;
mod failed;
mod foreseen;
mod in_words;
mod laws;
pub(crate) mod lint;
mod linter;
mod page;
mod progress;
mod properties;
mod saved;
mod scenario;
mod steps;
mod superseded;
mod words;
pub(crate) mod world;
