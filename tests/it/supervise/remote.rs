//! A real manager as the reconciler uses it: by address, with a fixed name, with all credentials in
//! memory, and with tokens for one pod.

use std::time::{Duration, Instant, SystemTime};

use stayput_api::{Code, State, StopRequest};
use stayput_http::jwt::{Grant, Scopes, mint, pod_audience};
use stayput_http::manager_client::{Address, ClientError, Credentials, ManagerClient, Token};

use super::manager::Manager;
use super::pod::Pod;
use crate::support::pki::Pki;

const NAMESPACE: &str = "search";
const UID: &str = "0b4a1f6e-8e5c-4c1e-9a55-2f1f0c9d1b7a";
const SHARED: &[u8] = b"0123456789abcdef0123456789abcdef";

/// A manager that accepts both kinds of keys and client certificates; its certificate is only for
/// `stayput`.
struct Remote {
    manager: Manager,
    port: u16,
    pki: Pki,
    private: String,
    _pod: Pod,
}

impl Remote {
    fn start() -> Self {
        let pod = Pod::new();
        let pki = Pki::named(&["stayput"]);
        let pair = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).expect("a key");
        pod.write("shared", &String::from_utf8_lossy(SHARED));
        pod.write("public", &pair.public_key_pem());
        let path = |path: std::path::PathBuf| path.display().to_string();
        let options = [
            ("--listen", "127.0.0.1:0".to_owned()),
            ("--tls-cert", path(pki.file("cert"))),
            ("--tls-key", path(pki.file("key"))),
            ("--jwt-key", path(pod.path("shared"))),
            ("--jwt-public-key", path(pod.path("public"))),
            ("--client-ca", path(pki.file("ca"))),
            ("--allow-client", "stayput=read".to_owned()),
        ];
        let options: Vec<String> =
            options.into_iter().flat_map(|(option, value)| [option.to_owned(), value]).collect();
        let mut command = pod.command(&options, &["sleep", "600"]);
        command.env("STAYPUT_POD_NAMESPACE", NAMESPACE).env("STAYPUT_POD_NAME", "logs-0");
        let manager = pod.spawn(command.env("STAYPUT_POD_UID", UID));
        manager.until("ready and written down", |status| {
            status["ready"] == true && status["manager"]["durable"] == true
        });
        let port = manager.port();
        Self { manager, port, pki, private: pair.serialize_pem(), _pod: pod }
    }

    fn client(&self, token: Option<String>) -> ManagerClient {
        let tls = if token.is_some() { self.pki.tls() } else { self.pki.identified() };
        let address = Address::Url {
            url: format!("https://127.0.0.1:{}", self.port),
            server_name: Some("stayput".into()),
            credentials: Credentials { tls: Some(tls), token: token.map(Token::Text) },
        };
        ManagerClient::new(address).expect("a client")
    }
}

fn token(key: &[u8], uid: &str) -> String {
    let grant = Grant {
        subject: "stayput-reconciler".into(),
        scopes: Scopes::CONTROL,
        audience: pod_audience(NAMESPACE, uid),
        ttl: Duration::from_secs(60),
    };
    mint(key, &grant, SystemTime::now()).expect("a token")
}

fn wait<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(future)
}

#[test]
fn a_minted_token_opens_the_manager_of_its_pod_and_no_other() {
    let remote = Remote::start();
    for key in [SHARED, remote.private.as_bytes()] {
        let client = remote.client(Some(token(key, UID))).for_pod(UID);
        let answer = wait(client.status()).expect("an answer");
        assert_eq!(answer.status.state, State::Running);
        assert!(answer.date.is_some(), "what its clock says: {answer:?}");
        let another = remote.client(Some(token(key, "another"))).for_pod(UID);
        match wait(another.status()) {
            Err(ClientError::Refused(refused)) => {
                assert_eq!(refused.problem.code, Code::Unauthenticated);
                assert!(refused.date.is_some(), "what its clock says: {refused:?}");
            }
            other => panic!("{other:?}"),
        }
        let mistaken = remote.client(Some(token(key, UID))).for_pod("another");
        assert!(matches!(wait(mistaken.status()), Err(ClientError::WrongPod(_))));
        match wait(mistaken.stop(&StopRequest::default(), None)) {
            Err(ClientError::Refused(refused)) => {
                assert_eq!(refused.problem.code, Code::WrongPod);
            }
            other => panic!("{other:?}"),
        }
    }
    let client = remote.client(Some(token(SHARED, UID))).for_pod(UID);
    let stop = StopRequest { sequence: Some(7), ..StopRequest::default() };
    let stopped = wait(client.stop(&stop, Some(Duration::from_secs(60)))).expect("an answer");
    assert!(stopped.done && stopped.status.manager.durable, "{stopped:?}");
    let status = remote.manager.status();
    assert_eq!((&status["state"], &status["sequence"]), (&"stopped".into(), &7.into()));
    assert_eq!(status["last_request"]["by"], "jwt:stayput-reconciler");
}

#[test] // proves ACCESS-5
fn why_a_token_was_refused_is_in_the_log_and_does_not_fill_it() {
    let remote = Remote::start();
    let begin = Instant::now();
    let wrong = token(SHARED, "another");
    for _ in 0..30 {
        let answer = wait(remote.client(Some(wrong.clone())).status());
        assert!(matches!(answer, Err(ClientError::Refused(_))), "{answer:?}");
    }
    remote.manager.until_logged("credentials refused");
    let log = remote.manager.log();
    let lines: Vec<&str> = log.lines().filter(|it| it.contains("credentials refused")).collect();
    let expected = format!("another audience: 'stayput:{NAMESPACE}/another'");
    assert!(lines[0].contains("INFO") && lines[0].contains(&expected), "{lines:#?}");
    assert!(lines[0].contains(&pod_audience(NAMESPACE, UID)), "{lines:#?}");
    // One in ten seconds.
    assert!(lines.len() as u64 <= 1 + begin.elapsed().as_secs() / 10, "{lines:#?}");
    assert!(!log.contains(&wrong), "the token is in the log");
}

#[test]
fn a_client_certificate_from_memory_may_do_what_its_name_is_allowed_to() {
    let remote = Remote::start();
    let client = remote.client(None).for_pod(UID);
    let cursor = wait(client.status()).expect("an answer").status.cursor;
    let nothing = wait(client.status_after(&cursor, Duration::from_millis(1))).expect("an answer");
    assert!(nothing.is_none(), "{nothing:?}");
    match wait(client.stop(&StopRequest::default(), None)) {
        Err(ClientError::Refused(refused)) => assert_eq!(refused.problem.code, Code::Forbidden),
        other => panic!("{other:?}"),
    }
}
