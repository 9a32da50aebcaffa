//! One connection, from the handshake to its end.

use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::{Duration, Instant};

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rustls::{Error, ServerConfig};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::Semaphore;
use tokio::task::yield_now;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::auth::{Caller, Peer, certificate_caller};
use super::{Context, ListenerKind, Shutdown, routes};
use stayput_http::https::Stream;
use stayput_http::jwt::Scopes;
use stayput_http::server::{Origin, Place};

/// Largest number of headers in a request. Our clients send three.
const MAX_HEADERS: usize = 64;
/// Largest head of a request in bytes. The minimum of hyper is 8 KiB; a token of an identity
/// provider may need all of that.
const MAX_HEAD: usize = 16 * 1024;
/// How long sent data may stay unacknowledged, in milliseconds: ends connections of clients that do
/// not read.
const UNACKNOWLEDGED_TIMEOUT_MS: u32 = 30_000;
/// The answer when the headers do not arrive in time: hyper sends none.
const REQUEST_TIMEOUT: &[u8] =
    b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\ncache-control: no-store\r\n\r\n";

/// Serves a TCP connection: over TLS, or in clear text with `--insecure-no-auth`.
pub(super) async fn tcp(
    context: Arc<Context>,
    stream: TcpStream,
    place: Place,
    allowed: Arc<[(String, Scopes)]>,
    insecure: bool,
) {
    // If these options cannot be set, the connection works without them.
    let _ = stream.set_nodelay(true);
    let _ = nix::sys::socket::setsockopt(
        &stream,
        nix::sys::socket::sockopt::TcpUserTimeout,
        &UNACKNOWLEDGED_TIMEOUT_MS,
    );
    let keys = context.keys.checked().await;
    let Some(tls) = keys.tls.clone() else {
        if !keys.clear_text {
            return tracing::debug!("no certificate can be used yet: a connection was closed");
        }
        let peer = if insecure { Peer::AuthDisabled } else { Peer::Unknown };
        return serve(context, Box::new(stream), peer, (ListenerKind::Tcp, &place), None).await;
    };
    let Some(stream) = context.handshakes.accept(tls.clone(), stream).await else { return };
    let certificate = stream.get_ref().1.peer_certificates().and_then(|chain| chain.first());
    let peer = if insecure {
        Peer::AuthDisabled
    } else {
        let caller = certificate.and_then(|certificate| certificate_caller(certificate, &allowed));
        let client_ca = keys.client_ca;
        caller
            .zip(client_ca)
            .map_or(Peer::Unknown, |(caller, client_ca)| Peer::Certified { caller, client_ca })
    };
    serve(context, Box::new(stream), peer, (ListenerKind::Tcp, &place), Some(tls)).await;
}

/// Serves a connection of the unix socket.
pub(super) async fn unix(
    context: Arc<Context>,
    stream: UnixStream,
    origin: Origin,
    place: Place,
    allowed: Arc<[u32]>,
) {
    let peer = local_peer(origin, &allowed);
    serve(context, Box::new(stream), peer, (ListenerKind::Unix, &place), None).await;
}

/// Root, the manager's own uid and listed uids may do everything; others need a token as over TCP.
fn local_peer(origin: Origin, allowed: &[u32]) -> Peer {
    let own = nix::unistd::geteuid().as_raw();
    match origin {
        Origin::Uid(uid) if uid == 0 || uid == own || allowed.contains(&uid) => {
            let subject = Arc::from(format!("uid:{uid}"));
            Peer::Known(Caller { subject, scopes: Scopes::CONTROL })
        }
        Origin::Uid(_) | Origin::Address(_) => Peer::Unknown,
    }
}

async fn serve(
    context: Arc<Context>,
    stream: Box<dyn Stream>,
    peer: Peer,
    (listener, place): (ListenerKind, &Place),
    tls: Option<Arc<ServerConfig>>,
) {
    let header = context.limits.header;
    let service = service_fn(|request| {
        let (context, peer) = (&context, &peer);
        async move {
            let open = place.request();
            Ok::<_, Infallible>(routes::answer(context, listener, peer, &open, request).await)
        }
    });
    let mut connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(header)
        .max_headers(MAX_HEADERS)
        .max_buf_size(MAX_HEAD)
        .serve_connection(TokioIo::new(stream), service);
    let served = tokio::select! {
        served = &mut connection => Some(served),
        () = must_close(&context, tls.as_ref()) => None,
    };
    let served = match served {
        Some(served) => served,
        None => {
            // An idle connection ends here; an open request is answered first.
            Pin::new(&mut connection).graceful_shutdown();
            tokio::select! {
                served = &mut connection => served,
                () = closed_by_force(&context) => return,
            }
        }
    };
    let Err(error) = served else { return };
    tracing::debug!(%error, "connection failed");
    if error.is_timeout() {
        let parts = connection.into_parts();
        // Without a byte of a request the connection was idle, and no client waits for an answer.
        if !parts.read_buf.is_empty() {
            let mut stream = parts.io.into_inner();
            let answer = async {
                stream.write_all(REQUEST_TIMEOUT).await?;
                stream.shutdown().await
            };
            // The client was too slow before, so it may be again.
            let _ = timeout(header, answer).await;
        }
    }
}

/// Returns when the connection must take no more requests: the server shuts down, certificate or CA
/// were renewed (perhaps other clients are trusted now), or the connection is too old.
async fn must_close(context: &Context, tls: Option<&Arc<ServerConfig>>) {
    let (mut shutdown, mut keys) = (context.shutdown.clone(), context.keys.subscribe());
    let renewed = |now: &Option<Arc<ServerConfig>>| {
        tls.is_some_and(|own| now.as_ref().is_none_or(|now| !Arc::ptr_eq(own, now)))
    };
    tokio::select! {
        _ = shutdown.wait_for(|shutdown| *shutdown > Shutdown::NotStarted) => {}
        () = async {
            if keys.wait_for(|keys| renewed(&keys.tls)).await.is_err() {
                std::future::pending::<()>().await;
            }
        } => {}
        () = sleep(context.limits.max_age) => {}
    }
}

/// Returns when the time for answers is over.
async fn closed_by_force(context: &Context) {
    let mut shutdown = context.shutdown.clone();
    let limit = context.limits.max_wait + Duration::from_secs(30);
    tokio::select! {
        _ = shutdown.wait_for(|shutdown| *shutdown == Shutdown::Closing) => {}
        () = sleep(limit) => {}
    }
}

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
    fn root_our_own_and_listed_uids_are_let_in() {
        let own = nix::unistd::geteuid().as_raw();
        let is_known =
            |uid, allowed: &[u32]| matches!(local_peer(Origin::Uid(uid), allowed), Peer::Known(_));
        assert!(is_known(0, &[]) && is_known(own, &[]) && is_known(4_000, &[4_000]));
        assert!(!is_known(4_000, &[4_001]) || own == 4_000);
    }

    #[test]
    fn failures_do_not_fill_the_log() {
        let handshakes = Handshakes::new(Duration::ZERO);
        assert!(handshakes.may_show());
        assert!(!handshakes.may_show());
        *handshakes.shown.lock().unwrap() = Instant::now().checked_sub(LOG_INTERVAL);
        assert!(handshakes.may_show());
    }
}
