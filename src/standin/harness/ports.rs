//! Addresses and ports for servers of tests.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU16, AtomicU32, Ordering};
use std::{mem, process};

use tokio::net::TcpSocket;

/// How many sets a network of 256 addresses has.
const SETS: u32 = 62;

/// Four addresses that no other process, and no other test of this one, uses: all of 127.0.0.0/8 is
/// loopback.
pub fn loopback_addresses() -> [String; 4] {
    static SETS_GIVEN: AtomicU32 = AtomicU32::new(0);
    let (process, set) = (process::id(), SETS_GIVEN.fetch_add(1, Ordering::Relaxed));
    // When the sets of a network are used up, the next one is far from those of processes that were started at
    // the same time.
    let (a, b) = (1 + (process / 250 + 83 * (set / SETS)) % 250, 1 + process % 250);
    [1, 2, 3, 4].map(|node| format!("127.{a}.{b}.{}", set % SETS * 4 + node))
}

/// As [`free_port`], at 127.0.0.1.
pub fn free_loopback_port() -> u16 {
    free_port(&[Ipv4Addr::LOCALHOST])
}

/// A port that is free at all of these addresses, outside of the range that the kernel gives to
/// clients: a client could take such a port before the server does. No other test of this process gets
/// it, and those of other processes try others first.
pub fn free_port(addresses: &[Ipv4Addr]) -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    // Processes of one run have ids that are close together; their ports shall not be.
    let own = process::id() % 12_000 * 7_417 % 12_000;
    let own = u16::try_from(own).expect("a small number");
    loop {
        let port = 20_000 + (own + NEXT.fetch_add(1, Ordering::Relaxed)) % 12_000;
        // With the option of servers: copies of the socket that live a little longer are not in their way.
        if addresses.iter().all(|address| bound((*address, port).into(), true).is_ok()) {
            return port;
        }
    }
}

/// A port of 127.0.0.1 that refuses connections as long as this process lives, and that no server gets.
pub fn closed_port() -> u16 {
    let socket = bound((Ipv4Addr::LOCALHOST, 0).into(), false).expect("a free port");
    let port = socket.local_addr().expect("an address").port();
    mem::forget(socket);
    port
}

/// A socket that does not listen. A child of another test's thread has copies of all sockets until it
/// runs its program: with a copy of one that listens, the port would accept connections for that long.
fn bound(address: SocketAddr, reuse: bool) -> io::Result<TcpSocket> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(reuse)?;
    socket.bind(address)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn a_closed_port_refuses_and_cannot_be_taken() {
        let port = closed_port();
        let refused = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
        let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap_err();
        assert_eq!(taken.kind(), io::ErrorKind::AddrInUse);
    }

    #[test]
    fn a_port_that_a_server_has_is_not_free() {
        let port = free_loopback_port();
        let _server = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).expect("it is free");
        let taken = bound((Ipv4Addr::LOCALHOST, port).into(), true).unwrap_err();
        assert_eq!(taken.kind(), io::ErrorKind::AddrInUse);
    }

    #[test]
    fn no_address_is_given_twice() {
        let given: Vec<String> = (0..3 * SETS).flat_map(|_| loopback_addresses()).collect();
        assert_eq!(given.iter().collect::<BTreeSet<_>>().len(), given.len());
        assert!(given.iter().all(|address| address.parse::<std::net::Ipv4Addr>().is_ok()));
    }
}
