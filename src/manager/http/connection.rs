//! One connection, from the handshake to its end.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

use super::app::{App, Door, Stage};
use super::auth::{Caller, Peer, certificate_caller};
use super::routes;
use stayput_net::jwt::Scopes;

/// Ours have three headers.
const MAX_HEADERS: usize = 64;
/// The least hyper takes is 8 KiB; a token of an identity provider may fill that alone.
const MAX_HEAD: usize = 16 * 1024;
/// How long data we sent may stay unacknowledged, in milliseconds: cuts clients that do not read.
const UNREAD_MS: u32 = 30_000;
/// What hyper leaves unsaid when the headers do not arrive in time.
const REQUEST_TIMEOUT: &[u8] =
    b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\ncache-control: no-store\r\n\r\n";

/// Which place a connection has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// One of the many.
    Regular,
    /// One of those kept free for probes: one short request.
    Reserved,
}

/// Serves a TCP connection: over TLS, or in clear where everybody may do everything.
pub(super) async fn tcp(
    app: Arc<App>,
    stream: TcpStream,
    place: Place,
    allowed: Arc<[(String, Scopes)]>,
    insecure: bool,
) {
    // Both only make things better: without them the connection still works.
    let _ = stream.set_nodelay(true);
    let _ = nix::sys::socket::setsockopt(
        &stream,
        nix::sys::socket::sockopt::TcpUserTimeout,
        &UNREAD_MS,
    );
    let tls = app.material.borrow().tls.clone();
    let Some(tls) = tls else {
        let peer = if insecure { Peer::Anybody } else { Peer::Unknown };
        return serve(app, stream, peer, (Door::Network, place), None).await;
    };
    let handshake = TlsAcceptor::from(tls.clone()).accept(stream);
    let limit = match place {
        Place::Regular => app.limits.handshake,
        Place::Reserved => app.limits.reserved,
    };
    let stream = match timeout(limit, handshake).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return tracing::debug!(%error, "the TLS handshake failed"),
        Err(_) => return tracing::debug!("the TLS handshake took too long"),
    };
    let certificate = stream.get_ref().1.peer_certificates().and_then(|chain| chain.first());
    let peer = if insecure {
        Peer::Anybody
    } else {
        let caller = certificate.and_then(|certificate| certificate_caller(certificate, &allowed));
        caller.map_or(Peer::Unknown, Peer::Known)
    };
    serve(app, stream, peer, (Door::Network, place), Some(tls)).await;
}

/// Serves a connection of the unix socket.
pub(super) async fn unix(app: Arc<App>, stream: UnixStream, place: Place, allowed: Arc<[u32]>) {
    let peer = match stream.peer_cred() {
        Ok(credentials) => local_peer(credentials.uid(), &allowed),
        Err(error) => return tracing::debug!(%error, "the kernel does not tell who it is"),
    };
    serve(app, stream, peer, (Door::Local, place), None).await;
}

/// Root, our own uid and listed ones may do everything; others need a token as from anywhere else.
fn local_peer(uid: u32, allowed: &[u32]) -> Peer {
    if uid == 0 || uid == nix::unistd::geteuid().as_raw() || allowed.contains(&uid) {
        let subject = Arc::from(format!("uid:{uid}"));
        return Peer::Known(Caller { subject, scopes: Scopes::CONTROL });
    }
    Peer::Unknown
}

async fn serve(
    app: Arc<App>,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    peer: Peer,
    (door, place): (Door, Place),
    tls: Option<Arc<ServerConfig>>,
) {
    let header = match place {
        Place::Regular => app.limits.header,
        Place::Reserved => app.limits.reserved,
    };
    let service = service_fn(|request| {
        let (app, peer) = (&app, &peer);
        async move { Ok::<_, Infallible>(routes::answer(app, door, peer, request).await) }
    });
    let mut connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(header)
        .keep_alive(place == Place::Regular)
        .max_headers(MAX_HEADERS)
        .max_buf_size(MAX_HEAD)
        .serve_connection(TokioIo::new(stream), service);
    let served = tokio::select! {
        served = &mut connection => Some(served),
        () = outlived(&app, tls.as_ref()) => None,
    };
    let served = match served {
        Some(served) => served,
        None => {
            // An idle connection ends here; a request that is under way is answered first.
            Pin::new(&mut connection).graceful_shutdown();
            tokio::select! {
                served = &mut connection => served,
                () = cut(&app) => return,
            }
        }
    };
    let Err(error) = served else { return };
    tracing::debug!(%error, "the connection ended");
    if error.is_timeout() {
        let parts = connection.into_parts();
        // Without a byte of a request it was just idle, and nobody waits for an answer.
        if !parts.read_buf.is_empty() {
            let mut stream = parts.io.into_inner();
            let farewell = async {
                stream.write_all(REQUEST_TIMEOUT).await?;
                stream.shutdown().await
            };
            // It did not keep the time before, so it may break it again.
            let _ = timeout(header, farewell).await;
        }
    }
}

/// Returns when the connection should take no more requests: the manager ends, certificate or CA
/// were renewed (and with them perhaps who is trusted), or it is simply old.
async fn outlived(app: &App, tls: Option<&Arc<ServerConfig>>) {
    let (mut stage, mut material) = (app.stage.clone(), app.material.clone());
    let renewed = |now: &Option<Arc<ServerConfig>>| {
        tls.is_some_and(|own| now.as_ref().is_none_or(|now| !Arc::ptr_eq(own, now)))
    };
    tokio::select! {
        _ = stage.wait_for(|stage| *stage > Stage::Open) => {}
        () = async {
            if material.wait_for(|material| renewed(&material.tls)).await.is_err() {
                std::future::pending::<()>().await;
            }
        } => {}
        () = sleep(app.limits.max_age) => {}
    }
}

/// Returns when there is no more time for answers.
async fn cut(app: &App) {
    let mut stage = app.stage.clone();
    let limit = app.limits.max_wait + Duration::from_secs(30);
    tokio::select! {
        _ = stage.wait_for(|stage| *stage == Stage::Cut) => {}
        () = sleep(limit) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_our_own_and_listed_uids_are_let_in() {
        let own = nix::unistd::geteuid().as_raw();
        let is_known = |uid, allowed: &[u32]| matches!(local_peer(uid, allowed), Peer::Known(_));
        assert!(is_known(0, &[]) && is_known(own, &[]) && is_known(4_000, &[4_000]));
        assert!(!is_known(4_000, &[4_001]) || own == 4_000);
    }
}
