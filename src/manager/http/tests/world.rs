//! A server on a loopback port and a unix socket, its fake supervisor, and clients.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::HeaderMap;
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use rcgen::{CertificateParams, CertifiedIssuer, KeyPair, SanType};
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use serde_json::Value;
use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;

use super::super::{HttpSettings, Limits, Server};
use crate::errors::Errors;
use crate::process::KeptListener;
use crate::supervisor::{Call, Clock, Control, Handle};
use stayput_api::Accepted;
use stayput_api::Refusal;
use stayput_api::{Pod, Status};
use stayput_http::jwt::Scopes;

pub(super) use super::super::auth::testing::{SHARED, Signer};

/// The audience that the pod of these tests expects.
pub(super) const AUDIENCE: &str = "stayput:search/u-1";

pub(super) fn running() -> Status {
    serde_json::from_str(include_str!("../../../../proto/samples/status-running.json")).unwrap()
}

pub(super) fn stopped() -> Status {
    serde_json::from_str(include_str!("../../../../proto/samples/status-stopped.json")).unwrap()
}

/// The answers of the fake supervisor, and the requests it got.
#[derive(Debug, Default)]
pub(super) struct Script {
    pub(super) verdict: Option<Result<Accepted, Refusal>>,
    pub(super) seen: Vec<String>,
    pub(super) probes: usize,
    pub(super) hangs: bool,
}

pub(super) struct World {
    pub(super) directory: TempDir,
    pub(super) address: SocketAddr,
    pub(super) script: Arc<Mutex<Script>>,
    pub(super) status: watch::Sender<Arc<Status>>,
    pub(super) errors: Errors,
    stop: Option<oneshot::Sender<()>>,
    served: Option<JoinHandle<()>>,
}

impl World {
    /// TLS with a shared key, a client CA, and a unix socket.
    pub(super) async fn new() -> Self {
        Self::with(Limits::default(), |_| ()).await
    }

    pub(super) async fn with(limits: Limits, change: impl FnOnce(&mut HttpSettings)) -> Self {
        let directory = tempfile::tempdir().unwrap();
        write_certificates(directory.path());
        std::fs::write(directory.path().join("jwt.key"), SHARED).unwrap();
        let file = |name: &str| Some(directory.path().join(name));
        let mut settings = HttpSettings {
            listen: Some(SocketAddr::from(([127, 0, 0, 1], 0))),
            socket: file("socket"),
            tls_cert: file("tls.crt"),
            tls_key: file("tls.key"),
            client_ca: file("ca.crt"),
            allow_client: vec![
                ("reconciler.search.svc".to_owned(), Scopes::CONTROL),
                ("spiffe://cluster/reader".to_owned(), Scopes::READ),
            ],
            jwt_key: file("jwt.key"),
            pod: Pod { namespace: Some("search".into()), name: None, uid: Some("u-1".into()) },
            ..HttpSettings::default()
        };
        change(&mut settings);
        let server = in_real_time(Server::bind(
            settings,
            limits,
            &Errors::default(),
            KeptListener::default(),
            None,
        ))
        .await
        .unwrap();
        assert_eq!(server.faults(), Vec::<String>::new());
        let address = server.address().unwrap();
        let (status, published) = watch::channel(Arc::new(running()));
        let (calls, asked) = mpsc::channel(4);
        let script = Arc::new(Mutex::new(Script::default()));
        tokio::spawn(supervise(asked, script.clone()));
        let (stop, stopped) = oneshot::channel();
        let errors = Errors::default();
        let serve = server.serve(
            Handle::new(calls, published, None, None, Clock::start()),
            errors.clone(),
            async {
                let _ = stopped.await;
            },
        );
        let served = Some(tokio::spawn(serve));
        Self { directory, address, script, status, errors, stop: Some(stop), served }
    }

    pub(super) fn answer(&self, verdict: Result<Accepted, Refusal>) {
        self.script.lock().unwrap().verdict = Some(verdict);
    }

    pub(super) fn publish(&self, status: Status) {
        self.status.send_replace(Arc::new(status));
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Requests the server's end; the returned future completes when it has ended.
    pub(super) fn end(&mut self) -> JoinHandle<()> {
        let _ = self.stop.take().unwrap().send(());
        self.served.take().unwrap()
    }

    pub(super) async fn tls(&self, identity: Option<&str>) -> Client {
        Client::over(self.tls_stream(identity).await.unwrap()).await
    }

    pub(super) async fn tls_stream(
        &self,
        identity: Option<&str>,
    ) -> std::io::Result<tokio_rustls::client::TlsStream<TcpStream>> {
        self.tls_stream_trusting(identity, &self.path("ca.crt")).await
    }

    pub(super) async fn tls_stream_trusting(
        &self,
        identity: Option<&str>,
        ca: &Path,
    ) -> std::io::Result<tokio_rustls::client::TlsStream<TcpStream>> {
        let ca = CertificateDer::from_pem_file(ca).unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(ca).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        let config = match identity {
            None => builder.with_no_client_auth(),
            Some(name) => {
                let cert = self.path(&format!("{name}.crt"));
                let key = self.path(&format!("{name}.key"));
                let chain = vec![CertificateDer::from_pem_file(cert).unwrap()];
                let key = PrivateKeyDer::from_pem_file(key).unwrap();
                builder.with_client_auth_cert(chain, key).unwrap()
            }
        };
        let stream = TcpStream::connect(self.address).await?;
        let name = ServerName::try_from("localhost").unwrap();
        TlsConnector::from(Arc::new(config)).connect(name, stream).await
    }

    pub(super) async fn unix(&self) -> Client {
        Client::over(UnixStream::connect(self.path("socket")).await.unwrap()).await
    }

    pub(super) async fn plain(&self) -> Client {
        Client::over(TcpStream::connect(self.address).await.unwrap()).await
    }
}

async fn supervise(mut asked: mpsc::Receiver<Call>, script: Arc<Mutex<Script>>) {
    while let Some(call) = asked.recv().await {
        let mut script = script.lock().unwrap();
        if script.hangs {
            // Kept, so that the client continues to wait.
            std::mem::forget(call);
            continue;
        }
        match call {
            Call::Control { request, by, reply } => {
                let done = matches!(request, Control::Drain(_));
                script.seen.push(match request {
                    Control::Stop(request) => format!("{by} {request:?}"),
                    Control::Start(request) => format!("{by} {request:?}"),
                    Control::Drain(request) => format!("{request:?}"),
                    Control::Upgrade => "upgrade".to_owned(),
                });
                let verdict = script.verdict.take();
                let _ = reply.send(verdict.unwrap_or(Ok(Accepted { sequence: 43, done })));
            }
            Call::ServerClosed => {}
            Call::Probe { reply } => {
                script.probes += 1;
                let _ = reply.send(());
            }
            Call::Ping { reply } => {
                let _ = reply.send(());
            }
        }
    }
}

pub(super) struct Client {
    sender: SendRequest<Full<Bytes>>,
    /// The name that the client uses for the server.
    pub(super) host: &'static str,
}

#[derive(Debug)]
pub(super) struct Response {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

impl Response {
    pub(super) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub(super) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// Status and problem code.
    pub(super) fn problem(&self) -> (u16, String) {
        assert_eq!(self.header("content-type"), "application/problem+json", "{self:?}");
        let problem = self.json();
        assert_eq!(problem["status"], self.status.as_u16());
        (self.status.as_u16(), problem["code"].as_str().unwrap().to_owned())
    }
}

impl Client {
    pub(super) async fn over(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) -> Self {
        let (sender, connection) = handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        Self { sender, host: "pod" }
    }

    pub(super) async fn send(
        &mut self,
        method: &str,
        target: &str,
        token: Option<&str>,
        body: &str,
    ) -> hyper::Result<Response> {
        let mut request = Request::builder().method(method).uri(target).header("host", self.host);
        if let Some(token) = token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let request = request.body(Full::from(body.to_owned())).unwrap();
        self.sender.ready().await?;
        let (parts, body) = self.sender.send_request(request).await?.into_parts();
        let body = body.collect().await?.to_bytes();
        Ok(Response { status: parts.status, headers: parts.headers, body })
    }

    pub(super) async fn get(&mut self, target: &str, token: Option<&str>) -> Response {
        self.send("GET", target, token, "").await.unwrap()
    }

    pub(super) async fn post(&mut self, target: &str, token: Option<&str>, body: &str) -> Response {
        self.send("POST", target, token, body).await.unwrap()
    }
}

pub(super) fn token(scope: &str) -> String {
    let exp = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let claims = serde_json::json!({
        "sub": "ops", "aud": AUDIENCE, "exp": exp.as_secs() + 600, "scope": scope,
    });
    Signer::shared().token(&serde_json::json!({"alg": "HS256"}), &claims)
}

/// A CA and, signed by it, the certificates of the server and of three clients; and a client's
/// certificate that this CA did not sign.
pub(super) fn write_certificates(directory: &Path) {
    let write = |name: &str, pem: String| std::fs::write(directory.join(name), pem).unwrap();
    let mut params = CertificateParams::default();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let ca = CertifiedIssuer::self_signed(params.clone(), KeyPair::generate().unwrap()).unwrap();
    let foreign = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    write("ca.crt", ca.pem());
    let dns = |name: &str| SanType::DnsName(name.try_into().unwrap());
    let uri = |name: &str| SanType::URI(name.try_into().unwrap());
    for (name, san, issuer) in [
        ("tls", dns("localhost"), &ca),
        ("reconciler", dns("reconciler.search.svc"), &ca),
        ("reader", uri("spiffe://cluster/reader"), &ca),
        ("stranger", dns("stranger"), &ca),
        ("forger", dns("reconciler.search.svc"), &foreign),
    ] {
        let mut params = CertificateParams::default();
        params.subject_alt_names = vec![san];
        // Must have no effect: the common name is ignored.
        params.distinguished_name.push(rcgen::DnType::CommonName, "reconciler.search.svc");
        let key = KeyPair::generate().unwrap();
        write(&format!("{name}.crt"), params.signed_by(&key, issuer).unwrap().pem());
        write(&format!("{name}.key"), key.serialize_pem());
    }
}

/// Polls until `condition` holds; for conditions without an event.
pub(super) async fn eventually(mut condition: impl AsyncFnMut() -> bool) {
    let deadline = tokio::time::Instant::now() + Duration::from_secs(20);
    while !condition().await {
        assert!(tokio::time::Instant::now() < deadline, "it did not come to hold");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// A paused clock goes on while other threads work, unless one of them is the runtime's own.
async fn in_real_time<T>(work: impl Future<Output = T>) -> T {
    let (done, hold) = std::sync::mpsc::channel::<()>();
    let held = tokio::task::spawn_blocking(move || hold.recv());
    let result = work.await;
    drop(done);
    // It only ever ends because the sender is dropped.
    let _ = held.await;
    result
}
