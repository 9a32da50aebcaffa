//! The restart room in a world of its own: scenarios that read as pages of text, laws over whole
//! runs, properties under faults; and the words people and programs exchange with it.

mod driver;
mod in_words;
mod laws;
mod linter;
mod page;
mod properties;
mod scenario;
mod words;
mod world;
