//! A readiness endpoint that the test controls, and that counts the calls of the manager's probe.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

/// Serves until the test's process ends; nothing else depends on it.
#[derive(Debug, Clone)]
pub(super) struct Gate {
    port: u16,
    open: Arc<AtomicBool>,
    calls: Arc<AtomicUsize>,
}

impl Gate {
    pub(super) fn new(open: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        let gate = Self { port, open: Arc::new(open.into()), calls: Arc::default() };
        let served = gate.clone();
        thread::spawn(move || {
            listener.incoming().flatten().for_each(|stream| {
                let mut reader = BufReader::new(&stream);
                let mut line = String::new();
                while reader.read_line(&mut line).is_ok_and(|read| read > 2) {
                    line.clear();
                }
                served.calls.fetch_add(1, Ordering::SeqCst);
                let status = if served.open.load(Ordering::SeqCst) { 200 } else { 503 };
                // The manager may have closed the connection.
                let _ = write!(&stream, "HTTP/1.1 {status} -\r\nContent-Length: 0\r\n\r\n");
            })
        });
        gate
    }

    /// The value for `--ready`.
    pub(super) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/", self.port)
    }

    pub(super) fn set(&self, open: bool) {
        self.open.store(open, Ordering::SeqCst);
    }

    /// How often the manager has called it.
    pub(super) fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }
}
