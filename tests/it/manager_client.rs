//! The client with managers that work, that fail, or that are another program.

mod fleet;
mod pod;

use std::fs;
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use stayput_api::{Code, Cursor, Problem, StopRequest};
use stayput_http::https::{Identity, ONLY_1_3, Tls};
use stayput_http::manager_client::{Address, ClientError, Credentials, ManagerClient, Token};
use tempfile::TempDir;
use tokio_rustls::TlsAcceptor;

use crate::support::fake_manager::{FakeManager, Reply, Script, running};
use crate::support::pki::Pki;

fn wait<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(future)
}

fn always(code: u16, body: impl serde::Serialize) -> Script {
    Script::Always(Reply::json(code, body))
}

/// A client of a manager with this script, on a unix socket.
fn over_socket(script: Script) -> (TempDir, FakeManager, ManagerClient) {
    let dir = TempDir::new().expect("a directory");
    let (fake, path) = FakeManager::on_socket(dir.path(), script);
    let client = ManagerClient::new(Address::Socket(path)).expect("a client");
    (dir, fake, client)
}

/// A manager whose certificate is signed by this CA.
fn address(pki: &Pki, port: u16) -> Address {
    Address::Url {
        url: format!("https://127.0.0.1:{port}"),
        server_name: None,
        credentials: Credentials { tls: Some(pki.tls()), token: None },
    }
}

fn with(address: Address, change: impl FnOnce(&mut Credentials)) -> Address {
    match address {
        Address::Url { url, server_name, mut credentials } => {
            change(&mut credentials);
            Address::Url { url, server_name, credentials }
        }
        socket @ Address::Socket(_) => socket,
    }
}

#[test]
fn tells_done_from_under_way_and_keeps_the_body() {
    let mut status = serde_json::to_value(running(1)).expect("JSON");
    status["from_the_future"] = true.into();
    for (code, done) in [(200, true), (202, false)] {
        let (_dir, _fake, client) = over_socket(always(code, &status));
        let answer = wait(client.stop(&StopRequest::default(), None)).expect("an answer");
        assert_eq!((answer.done, &answer.status), (done, &running(1)));
        assert_eq!(answer.body, serde_json::to_vec(&status).expect("JSON"));
    }
}

#[test]
fn a_long_poll_tells_nothing_new_from_news() {
    let nothing = Reply { code: 204, content_type: "", body: String::new(), sequence: None };
    let (_dir, fake, client) = over_socket(Script::Always(nothing));
    let poll = |cursor: &str| {
        let cursor = Cursor(cursor.into());
        wait(client.status_after(&cursor, Duration::from_secs(2)))
    };
    assert!(poll("b7f1:1&x").expect("an answer").is_none());
    assert_eq!(fake.seen()[0].line, "GET /es/status?after=b7f1:1%26x&timeout=2000ms");

    let (_dir, _fake, client) = over_socket(always(200, running(1)));
    let poll = |cursor: &str| {
        let cursor = Cursor(cursor.into());
        wait(client.status_after(&cursor, Duration::from_secs(2)))
    };
    assert!(poll("b7f1:0").expect("an answer").is_some());
    // Otherwise a follower would send requests without a pause.
    assert!(matches!(poll("b7f1:1"), Err(ClientError::Protocol(_))));
}

#[test]
fn a_refusal_keeps_its_problem() {
    let problem = Problem::new(Code::StaleSequence, "43 was accepted");
    let (_dir, _fake, client) = over_socket(always(409, &problem));
    match wait(client.stop(&StopRequest::default(), None)) {
        Err(ClientError::Refused(refused)) => {
            assert_eq!(*refused.problem, problem);
            assert_eq!(refused.to_string(), "43 was accepted (stale_sequence, HTTP 409)");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_newer_managers_refusal_is_told_by_its_own_words() {
    let body = serde_json::json!({"code": "moon_phase", "detail": "wait", "status": 409});
    let (_dir, _fake, client) = over_socket(always(409, body));
    match wait(client.status()) {
        Err(ClientError::Protocol(text)) => {
            assert!(text.to_string().contains("moon_phase: wait"), "{text}")
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn silence_ends_and_leaves_open_what_happened() {
    let (_dir, _fake, client) = over_socket(Script::Silence);
    let client = client.with_answer_timeout(Duration::from_millis(50));
    match wait(client.stop(&StopRequest::default(), None)) {
        Err(ClientError::Unanswered(text)) => {
            assert!(text.to_string().contains("may have acted on the request"), "{text}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_torn_or_endless_answer_is_no_answer() {
    let status = serde_json::to_string(&running(1)).expect("JSON");
    let torn = format!("HTTP/1.1 200 OK\r\ncontent-length: 99999\r\n\r\n{status}");
    let endless = format!("HTTP/1.1 200 OK\r\n\r\n{}", " ".repeat(5 << 20));
    for bytes in [torn, endless, "hello\n".into(), String::new()] {
        let dir = TempDir::new().expect("a directory");
        let path = dir.path().join("s");
        let listener = std::os::unix::net::UnixListener::bind(&path).expect("a socket");
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a connection");
            let mut request = [0; 1024];
            let _ = std::io::Read::read(&mut stream, &mut request);
            // The client may have closed the connection before it got the whole answer.
            let _ = stream.write_all(bytes.as_bytes());
        });
        let client = ManagerClient::new(Address::Socket(path)).expect("a client");
        let outcome = wait(client.status());
        assert!(matches!(outcome, Err(ClientError::Unanswered(_))), "{outcome:?}");
        server.join().expect("no panic");
    }
}

#[test]
fn over_tls_with_a_token_that_is_renewed() {
    let pki = Pki::new();
    let (fake, port) = FakeManager::on_port(Some(pki.acceptor()), always(200, running(1)));
    let token = pki.file("token");
    let address = with(address(&pki, port), |credentials| {
        credentials.token = Some(Token::File(token.clone()))
    });
    let client = ManagerClient::new(address).expect("a client");
    for text in ["one.two.three\n", "four.five.six"] {
        fs::write(&token, text).expect("a file");
        wait(client.status()).expect("an answer");
        let shown = fake.seen().pop().expect("a request").authorization;
        assert_eq!(shown, Some(format!("Bearer {}", text.trim())));
    }
    for text in ["", " \n", "two tokens", "line\nline", "\u{7f}"] {
        fs::write(&token, text).expect("a file");
        match wait(client.status()) {
            Err(ClientError::Credentials(error)) => {
                let message = error.to_string();
                assert!(message.contains(&*token.to_string_lossy()), "{message}");
                assert!(text.trim().is_empty() || !message.contains(text), "{message}");
            }
            other => panic!("{text:?}: {other:?}"),
        }
    }
    assert_eq!(fake.seen().len(), 2, "nothing is sent without the token");
}

#[test]
fn a_manager_of_another_ca_is_not_talked_to() {
    let (ours, theirs) = (Pki::new(), Pki::new());
    let (fake, port) = FakeManager::on_port(Some(theirs.acceptor()), always(200, running(1)));
    let client = ManagerClient::new(address(&ours, port)).expect("a client");
    match wait(client.status()) {
        Err(ClientError::Untrusted(text)) => {
            assert!(text.to_string().contains("not signed by the ca of the test"), "{text}");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(fake.seen(), []);
}

#[test]
fn a_self_signed_ca_as_the_managers_certificate_is_told_with_advice() {
    let mut params = CertificateParams::new(["127.0.0.1".to_owned()]).expect("parameters");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().expect("a key");
    let certificate = params.self_signed(&key).expect("a certificate");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate.der().clone()],
            PrivateKeyDer::try_from(key.serialize_der()).expect("a key"),
        )
        .expect("a pair");
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let (_fake, port) = FakeManager::on_port(Some(acceptor), always(200, running(1)));
    let pki = Pki::new();
    fs::write(pki.file("ca"), certificate.pem()).expect("a file");
    match wait(ManagerClient::new(address(&pki, port)).expect("a client").status()) {
        Err(ClientError::Untrusted(text)) => {
            let text = text.to_string();
            assert!(text.contains("CA:FALSE") && !text.contains("OtherError"), "{text}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_client_certificate_is_shown() {
    let pki = Pki::new();
    let (_fake, port) = FakeManager::on_port(Some(pki.acceptor()), always(200, running(1)));
    let address = with(address(&pki, port), |credentials| {
        credentials.tls = Some(pki.identified());
    });
    wait(ManagerClient::new(address).expect("a client").status()).expect("an answer");
}

#[test]
fn what_cannot_be_used_is_told_before_anything_is_sent() {
    let (pki, other) = (Pki::new(), Pki::new());
    let identity = |certificate, key| Identity { certificate, key };
    for (ca, identity, part) in [
        (pki.pem("key"), None, "the key of the test holds no CERTIFICATE in PEM"),
        (pki.pem("ca"), Some(identity(pki.pem("key"), pki.pem("key"))), "holds no CERTIFICATE"),
        (pki.pem("ca"), Some(identity(pki.pem("cert"), pki.pem("cert"))), "no private key in PEM"),
        (pki.pem("ca"), Some(identity(pki.pem("cert"), other.pem("key"))), "used together"),
    ] {
        let error = Tls::new(&ca, identity.as_ref(), ONLY_1_3).expect_err(part);
        assert!(error.to_string().contains(part), "{error}");
    }
    let no_ca = with(address(&pki, 1), |credentials| credentials.tls = None);
    match ManagerClient::new(no_ca) {
        Err(ClientError::Credentials(text)) => {
            assert!(text.to_string().contains("give --ca FILE"), "{text}")
        }
        unexpected => panic!("{unexpected:?}"),
    }
}

#[test]
fn plain_http_on_loopback() {
    let (_fake, port) = FakeManager::on_port(None, always(200, running(1)));
    let credentials = Credentials::default();
    let url = format!("http://127.0.0.1:{port}");
    let address = Address::Url { url, server_name: None, credentials };
    wait(ManagerClient::new(address).expect("a client").status()).expect("an answer");
}
