//! A proxy between the reconciler and the engines: records when a request waits for an engine's
//! answer. The reconciler makes one connection per request.

use std::io;
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use super::now;
use crate::support::cluster::Rest;

/// The times between which one engine had a request.
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
                thread::spawn(move || {
                    let began = now();
                    // The reconciler sees every error as without the proxy.
                    let _ = pass_on(&stream, engine);
                    waits.lock().expect("a lock").push((began, now()));
                });
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

fn pass_on(client: &TcpStream, engine: Rest) -> io::Result<()> {
    let server = TcpStream::connect((engine.address, engine.port))?;
    for stream in [client, &server] {
        stream.set_nodelay(true)?;
    }
    thread::scope(|scope| {
        scope.spawn(|| {
            let _ = io::copy(&mut &*client, &mut &server);
            let _ = server.shutdown(Shutdown::Write);
        });
        let answered = io::copy(&mut &server, &mut &*client);
        // The other direction ends with it.
        let _ = client.shutdown(Shutdown::Both);
        answered.map(drop)
    })
}
