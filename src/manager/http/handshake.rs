//! TLS handshakes: computed one step at a time, and a line in the log for those that fail.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::{Duration, Instant};

use rustls::{Error, ServerConfig};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::task::yield_now;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// Shortest time between two lines in the log: a client that cannot connect tries again and again,
/// and its operator needs one line.
const LOG_INTERVAL: Duration = Duration::from_secs(60);

/// The handshakes of a listener.
#[derive(Debug)]
pub(super) struct Handshakes {
    limit: Duration,
    turn: Semaphore,
    /// When a client that speaks no common version or suite was last shown in the log.
    shown: Mutex<Option<Instant>>,
}

impl Handshakes {
    pub(super) fn new(limit: Duration) -> Self {
        Self { limit, turn: Semaphore::new(1), shown: Mutex::default() }
    }

    /// The encrypted stream; `None` if the handshake failed or was too slow.
    pub(super) async fn accept(
        &self,
        tls: Arc<ServerConfig>,
        stream: TcpStream,
    ) -> Option<TlsStream<TcpStream>> {
        let peer = stream.peer_addr().map_or_else(|_| String::new(), |peer| peer.to_string());
        match timeout(self.limit, self.steps(tls, stream)).await {
            Ok(Ok(stream)) => return Some(stream),
            Ok(Err(error)) => self.log(&error, &peer),
            Err(_) => tracing::debug!(peer, "TLS handshake timed out"),
        }
        None
    }

    /// Computes the handshake step by step. A step costs up to some milliseconds. While one is
    /// computed the others wait, and between two of them other tasks run and signals and new
    /// connections are noticed. So many handshakes at once do not delay anything else, and those
    /// that are evicted before their turn cost nothing.
    async fn steps(
        &self,
        tls: Arc<ServerConfig>,
        stream: TcpStream,
    ) -> io::Result<TlsStream<TcpStream>> {
        let mut handshake = TlsAcceptor::from(tls).accept(stream);
        loop {
            // It is never closed.
            let turn = self.turn.acquire().await;
            yield_now().await;
            let step = poll_fn(|cx| Poll::Ready(Pin::new(&mut handshake).poll(cx))).await;
            drop(turn);
            if let Poll::Ready(done) = step {
                return done;
            }
            // The handshake has asked to be woken when its peer sends something.
            let mut woken = false;
            poll_fn(|_| {
                if std::mem::replace(&mut woken, true) { Poll::Ready(()) } else { Poll::Pending }
            })
            .await;
        }
    }

    fn log(&self, error: &io::Error, peer: &str) {
        let tls = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
        if matches!(tls, Some(Error::PeerIncompatible(_))) && self.may_show() {
            tracing::info!(
                %error,
                peer,
                "a client cannot connect: it has no TLS version or cipher suite in common with the \
                 API; see --tls-min"
            );
        } else {
            tracing::debug!(%error, peer, "TLS handshake failed");
        }
    }

    /// True if the log may have a line about a failure: anybody can fail, so the log has few of them.
    fn may_show(&self) -> bool {
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        let may = shown.is_none_or(|last| last.elapsed() >= LOG_INTERVAL);
        if may {
            *shown = Some(Instant::now());
        }
        may
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_do_not_fill_the_log() {
        let handshakes = Handshakes::new(Duration::ZERO);
        assert!(handshakes.may_show());
        assert!(!handshakes.may_show());
        *handshakes.shown.lock().unwrap() = Instant::now().checked_sub(LOG_INTERVAL);
        assert!(handshakes.may_show());
    }
}
