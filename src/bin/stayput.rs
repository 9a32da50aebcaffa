//! `stayput`: the manager and its own client.

fn main() {}
