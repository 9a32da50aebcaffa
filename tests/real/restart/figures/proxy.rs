//! A proxy between the reconciler and the engines: records when a request waits for an engine's
//! answer. The reconciler keeps connections; on each a request follows the answer to the last one.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use super::now;
use crate::support::cluster::Rest;

/// The times from a request to the first bytes of an engine's answer.
pub(super) type Waits = Arc<Mutex<Vec<(u64, u64)>>>;

/// Listens at each engine's address, on the same port, until the test ends.
pub(super) fn before(engines: &[Rest]) -> (u16, Waits) {
    let waits = Waits::default();
    let (port, listeners) = listeners(engines);
    for (listener, engine) in listeners.into_iter().zip(engines.iter().copied()) {
        let waits = waits.clone();
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let waits = waits.clone();
                // The reconciler sees every error as without the proxy.
                thread::spawn(move || drop(pass_on(&stream, engine, &waits)));
            }
        });
    }
    (port, waits)
}

/// A port that is free at all of them.
fn listeners(engines: &[Rest]) -> (u16, Vec<TcpListener>) {
    let bind = |address: Ipv4Addr, port: u16| TcpListener::bind((address, port));
    loop {
        let first = bind(engines[0].address, 0).expect("a port");
        let port = first.local_addr().expect("an address").port();
        let others: io::Result<Vec<_>> =
            engines[1..].iter().map(|engine| bind(engine.address, port)).collect();
        if let Ok(others) = others {
            return (port, std::iter::once(first).chain(others).collect());
        }
    }
}

fn pass_on(client: &TcpStream, engine: Rest, waits: &Waits) -> io::Result<()> {
    let server = TcpStream::connect((engine.address, engine.port))?;
    for stream in [client, &server] {
        stream.set_nodelay(true)?;
    }
    // Since when a request waits, while it does.
    let waiting = Mutex::new(None);
    thread::scope(|scope| {
        scope.spawn(|| {
            let _ = copy(client, &server, || {
                waiting.lock().expect("a lock").get_or_insert_with(now);
            });
            let _ = server.shutdown(Shutdown::Write);
        });
        let answered = copy(&server, client, || {
            // The first piece of an answer ends the wait.
            let since: Option<u64> = waiting.lock().expect("a lock").take();
            waits.lock().expect("a lock").extend(since.map(|since| (since, now())));
        });
        // The other direction ends with it.
        let _ = client.shutdown(Shutdown::Both);
        answered
    })
}

/// Copies until the end, and calls `each` before each piece.
fn copy(mut from: &TcpStream, mut to: &TcpStream, mut each: impl FnMut()) -> io::Result<()> {
    let mut piece = [0; 16 << 10];
    loop {
        match from.read(&mut piece)? {
            0 => return Ok(()),
            read => {
                each();
                to.write_all(&piece[..read])?;
            }
        }
    }
}
