//! The server as its callers meet it, in front of a supervisor that does what the test says.

mod access;
mod limits;
mod reload;
mod requests;
mod waiting;
mod world;
