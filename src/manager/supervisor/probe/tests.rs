//! Engines with TLS and users, as far as the probe meets them.

use std::path::Path;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::version::{TLS12, TLS13};
use rustls::{ServerConfig, SupportedProtocolVersion};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::*;

/// An engine that lets only `elastic:hush` in, and answers that user with `answer`.
struct Engine {
    port: u16,
    directory: TempDir,
    server: tokio::task::JoinHandle<()>,
}

const OK: &str = "200 OK\r\n";

impl Engine {
    /// Over TLS of these versions, with a certificate for `logs.search` by the CA in `ca.crt`.
    async fn tls(versions: &[&'static SupportedProtocolVersion], answer: &'static str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let ca = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        std::fs::write(directory.path().join("ca.crt"), ca.pem()).unwrap();
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(["logs.search".to_owned()]).unwrap();
        let chain: Vec<CertificateDer<'static>> =
            vec![params.signed_by(&key, &ca).unwrap().der().clone()];
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(versions)
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .unwrap();
        Self::serve(directory, Some(TlsAcceptor::from(Arc::new(config))), answer).await
    }

    async fn plain(answer: &'static str) -> Self {
        Self::serve(tempfile::tempdir().unwrap(), None, answer).await
    }

    async fn serve(directory: TempDir, tls: Option<TlsAcceptor>, answer: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                match &tls {
                    None => reply(stream, answer).await,
                    Some(tls) => {
                        // A client that does not trust us, or speaks no TLS, is gone.
                        if let Ok(stream) = tls.accept(stream).await {
                            reply(stream, answer).await;
                        }
                    }
                }
            }
        });
        Self { port, directory, server }
    }

    fn write(&self, name: &str, content: &str) {
        std::fs::write(self.directory.path().join(name), content).unwrap();
    }

    /// A prober; `ca` and `auth` are names of files.
    fn prober(&self, scheme: &str, ca: Option<&str>, auth: Option<&str>) -> Prober {
        let path = |name: &str| Path::new(self.directory.path()).join(name);
        let probe = Probe::Http {
            address: format!("127.0.0.1:{}", self.port),
            path: "/_cluster/health".into(),
            tls: scheme == "https",
            ca: ca.map(path),
            auth: auth.map(path),
        };
        Prober::start(probe, &Errors::default()).unwrap()
    }
}

async fn reply(mut stream: impl Stream, answer: &str) {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => request.push(byte),
            Err(_) => return,
        }
    }
    let request = String::from_utf8_lossy(&request).to_lowercase();
    // elastic:hush
    let known = request.contains("authorization: basic zwxhc3rpyzpodxno\r\n");
    let answer = if known { answer } else { "401 Unauthorized\r\n" };
    let answer = format!("HTTP/1.1 {answer}content-length: 0\r\nconnection: close\r\n\r\n");
    // The probe may be gone.
    let _ = stream.write_all(answer.as_bytes()).await;
    let _ = stream.shutdown().await;
}

/// Asserts that the probe fails for this reason, and with the same text each time.
#[track_caller]
fn assert_fails(first: Result<(), String>, again: Result<(), String>, reason: &str) {
    assert_eq!(first, again);
    let error = first.expect_err("it fails");
    assert!(error.contains(reason), "{error:?} does not contain {reason:?}");
    assert!(!error.contains("hush") && !error.contains("ZWxhc3R"), "{error}");
}

/// Checks again where a check took too long: a machine that is busy for a second is no fault of an engine.
async fn checked(prober: &Prober) -> Result<(), String> {
    let is_late = |error: &String| {
        ["not answered within", "did not answer"].iter().any(|text| error.contains(text))
    };
    let mut result = prober.check().await;
    for _ in 0..5 {
        if result.as_ref().is_err_and(is_late) {
            result = prober.check().await;
        }
    }
    result
}

#[tokio::test] // proves STOP-36
async fn old_and_new_engines_with_users_are_ready() {
    for versions in [&[&TLS12][..], &[&TLS13], &[&TLS13, &TLS12]] {
        let engine = Engine::tls(versions, OK).await;
        engine.write("auth", "elastic:hush\n");
        for ca in [None, Some("ca.crt")] {
            let prober = engine.prober("https", ca, Some("auth"));
            assert_eq!(checked(&prober).await, Ok(()), "{versions:?} {ca:?}");
        }
    }
}

#[tokio::test] // proves STOP-37
async fn the_secret_of_eck_lets_in_as_a_directory_also_after_its_password_changed() {
    let engine = Engine::tls(&[&TLS13], OK).await;
    engine.write("elastic", "old");
    let prober = engine.prober("https", Some("ca.crt"), Some("."));
    let reason = "does not accept what is in --ready-auth";
    assert_fails(checked(&prober).await, checked(&prober).await, reason);
    engine.write("elastic", "hush");
    assert_eq!(checked(&prober).await, Ok(()));
}

#[tokio::test] // proves STOP-35
async fn a_secured_engine_tells_what_is_missing() {
    let engine = Engine::tls(&[&TLS13], OK).await;
    let stranger = engine.prober("https", None, None);
    let reason = "answered 401: the engine asks for a user: give one with --ready-auth";
    assert_fails(checked(&stranger).await, checked(&stranger).await, reason);
    let error = checked(&stranger).await.unwrap_err();
    let url = format!("the probe https://127.0.0.1:{}/_cluster/health answered", engine.port);
    assert!(error.starts_with(&url), "{error}");

    engine.write("auth", "elastic:hush-hush");
    let prober = engine.prober("https", None, Some("auth"));
    assert_fails(
        checked(&prober).await,
        checked(&prober).await,
        "does not accept what is in --ready-auth",
    );
    engine.write("auth", "elastic:hush");
    assert_eq!(checked(&prober).await, Ok(()), "the file is read again after a refusal");

    engine.write("other", &KeyPair::generate().unwrap().public_key_pem());
    for (ca, auth, reason) in [
        (Some("absent"), None, "--ready-ca "),
        (Some("absent"), None, "absent cannot be read: No such file"),
        (Some("other"), None, "holds no CERTIFICATE"),
        (None, Some("absent"), "cannot be read: No such file"),
        (None, Some("other"), "is neither USER:PASSWORD nor"),
    ] {
        let prober = engine.prober("https", ca, auth);
        assert_fails(checked(&prober).await, checked(&prober).await, reason);
    }
}

#[tokio::test] // proves STOP-36
async fn a_certificate_by_another_ca_gets_no_password() {
    let (engine, other) = (Engine::tls(&[&TLS12], OK).await, Engine::tls(&[&TLS12], OK).await);
    let ca = |engine: &Engine| std::fs::read_to_string(engine.directory.path().join("ca.crt"));
    engine.write("auth", "elastic:hush");
    engine.write("trusted.crt", &ca(&other).unwrap());
    let prober = engine.prober("https", Some("trusted.crt"), Some("auth"));
    let reason = "trusted.crt did not sign";
    assert_fails(checked(&prober).await, checked(&prober).await, reason);
    engine.write("trusted.crt", &ca(&engine).unwrap());
    assert_eq!(checked(&prober).await, Ok(()), "the CA is read again");
    // Elsewhere the name counts, too: this host is not `logs.search`.
    let config =
        client_config(prober.files.as_ref().unwrap().get().await.unwrap().roots.clone(), true)
            .unwrap();
    let stream = TcpStream::connect(("127.0.0.1", engine.port)).await.unwrap();
    let name = ServerName::try_from("127.0.0.1").unwrap();
    let refused = TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap_err();
    let text = Refused { probe: &prober.probe, why: Why::Tls(refused) }.to_string();
    assert!(text.contains("another name"), "{text}");
}

#[tokio::test] // proves STOP-35
async fn what_is_no_answer_of_an_engine_is_told() {
    let engine = Engine::plain("302 Found\r\nlocation: https://login.example/?next=\r\n").await;
    engine.write("auth", "elastic:hush");
    let redirected = engine.prober("http", None, Some("auth"));
    let reason = "answered 302 to https://login.example/?next=: redirects are not followed";
    assert_fails(checked(&redirected).await, checked(&redirected).await, reason);
    let tls_to_plain = engine.prober("https", None, None);
    // The plain server waits for a whole request, or closes.
    let error = tls_to_plain.check().await.unwrap_err();
    assert!(error.contains("not answered within 1s") || error.contains("http://"), "{error}");

    let engine = Engine::tls(&[&TLS13], OK).await;
    let plain_to_tls = engine.prober("http", None, None);
    assert_fails(checked(&plain_to_tls).await, checked(&plain_to_tls).await, "expect https://?");
    engine.server.abort();
    let _ = (&mut { engine.server }).await;
    let reason = "is refused: nothing listens there";
    assert_fails(checked(&plain_to_tls).await, checked(&plain_to_tls).await, reason);
}

#[tokio::test] // proves STOP-36
async fn a_volume_that_hangs_holds_up_one_thread_and_nothing_else() {
    let engine = Engine::plain(OK).await;
    let fifo = engine.directory.path().join("auth");
    // Opening it waits for a writer.
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let prober = engine.prober("http", None, Some("auth"));
    let reason = "did not answer: repair their volume";
    assert_fails(prober.check().await, prober.check().await, reason);
    std::fs::write(&fifo, "elastic:hush").unwrap();
    std::fs::remove_file(&fifo).unwrap();
    engine.write("auth", "elastic:hush");
    let deadline = tokio::time::Instant::now() + Duration::from_secs(20);
    while prober.check().await.is_err() {
        assert!(tokio::time::Instant::now() < deadline, "the reading thread ends");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
