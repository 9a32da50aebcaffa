//! Ports for servers of tests.

use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicU16, Ordering};

/// As [`free_port`], at 127.0.0.1.
pub fn free_loopback_port() -> u16 {
    free_port(&[Ipv4Addr::LOCALHOST])
}

/// A port that is free at all of these addresses, outside of the range that the kernel gives to
/// clients: a client could take such a port before the server does. No other test of this process gets
/// it.
pub fn free_port(addresses: &[Ipv4Addr]) -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let own = u16::try_from(std::process::id() % 12_000).expect("a small number");
    loop {
        let port = 20_000 + (own + NEXT.fetch_add(1, Ordering::Relaxed)) % 12_000;
        if addresses.iter().all(|address| TcpListener::bind((*address, port)).is_ok()) {
            return port;
        }
    }
}
