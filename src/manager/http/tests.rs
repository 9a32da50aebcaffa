//! The server, tested through its listeners, with a fake supervisor that each test controls.

mod access;
mod crowd;
mod limits;
mod reload;
mod requests;
mod waiting;
mod world;
