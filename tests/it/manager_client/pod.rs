//! A client for the manager of one pod, reached by its address.

use std::time::Duration;

use stayput_api::{Cursor, StartRequest, StopRequest};
use stayput_http::manager_client::{Address, ClientError, Credentials, ManagerClient, Token};
use tokio::time::timeout;

use super::{always, over_socket, wait};
use crate::support::fake_manager::{FakeManager, Script, running};
use crate::support::pki::Pki;

fn uid() -> String {
    running(1).manager.pod.uid.expect("a uid")
}

#[test]
fn requests_carry_the_pod_and_keep_one_they_name_themselves() {
    let (_dir, fake, client) = over_socket(always(200, running(1)));
    let client = client.for_pod(uid());
    wait(client.stop(&StopRequest::default(), None)).expect("an answer");
    wait(client.start(&StartRequest::default(), None)).expect("an answer");
    let own = StopRequest { pod: Some("other".into()), ..StopRequest::default() };
    wait(client.stop(&own, None)).expect("an answer");
    let pod = |(_, body): &(String, String)| {
        let body: serde_json::Value = serde_json::from_str(body).expect("JSON");
        body["pod"].as_str().map(str::to_owned)
    };
    let pods: Vec<_> = fake.posts().iter().map(pod).collect();
    assert_eq!(pods, [Some(uid()), Some(uid()), Some("other".into())]);
}

#[test]
fn the_answer_of_another_pod_or_of_none_is_not_taken() {
    let mut without_uid = running(1);
    without_uid.manager.pod.uid = None;
    for (status, part) in [
        (running(1), "belongs to the pod with uid 0b4a1f6e-"),
        (without_uid, "does not know its pod, so it is not certain that it is another:"),
    ] {
        let (_dir, _fake, client) = over_socket(always(200, status));
        let client = client.for_pod("another");
        let cursor = Cursor("b7f1:0".into());
        let answers = [
            wait(client.status()).map(Some),
            wait(client.status_after(&cursor, Duration::ZERO)),
            wait(client.stop(&StopRequest::default(), None)).map(Some),
        ];
        for answer in answers {
            match answer {
                Err(ClientError::WrongPod(text)) => {
                    assert!(text.to_string().contains(part), "{text}")
                }
                other => panic!("{other:?}"),
            }
        }
    }
}

#[test]
fn a_manager_is_reached_by_address_under_the_name_of_its_certificate() {
    let pki = Pki::named(&["stayput"]);
    let (fake, port) = FakeManager::on_port(Some(pki.acceptor()), always(200, running(1)));
    let ask = |name: Option<&str>| {
        let token = Some(Token::Text("a.b.c".into()));
        let credentials = Credentials { tls: Some(pki.tls()), token };
        let url = format!("https://127.0.0.1:{port}");
        let server_name = name.map(str::to_owned);
        let client = ManagerClient::new(Address::Url { url, server_name, credentials });
        wait(client.expect("a client").status())
    };
    ask(Some("stayput")).expect("an answer");
    for (name, shown) in [(None, "127.0.0.1"), (Some("elsewhere"), "elsewhere")] {
        match ask(name) {
            Err(ClientError::Untrusted(text)) => {
                assert!(
                    text.to_string().contains(&format!("is not for the name \"{shown}\"")),
                    "{text}"
                );
            }
            other => panic!("{other:?}"),
        }
    }
    let seen = fake.seen();
    assert_eq!(seen.len(), 1, "the token is sent to no other server");
    assert_eq!(seen[0].authorization.as_deref(), Some("Bearer a.b.c"));
}

#[test]
fn no_secret_is_in_what_debug_shows() {
    let pki = Pki::new();
    let token = Some(Token::Text("header.payload.signature".into()));
    let credentials = Credentials { tls: Some(pki.identified()), token };
    let url = "https://127.0.0.1:1".into();
    let address = Address::Url { url, server_name: None, credentials };
    let key = std::fs::read_to_string(pki.file("key")).expect("a file");
    let secret = key.lines().nth(1).expect("a line");
    let shown = format!("{address:?} {:?}", pki.pem("key"));
    let client = ManagerClient::new(address).expect("a client");
    let shown = format!("{shown} {client:?}");
    assert!(!shown.contains("payload") && !shown.contains(secret), "{shown}");
    assert!(shown.contains("the ca of the test"), "{shown}");
}

#[test]
fn a_poll_that_is_given_up_ends_on_both_sides_and_loses_nothing() {
    let dir = tempfile::TempDir::new().expect("a directory");
    let script = Script::Story { first: Box::new(running(1)), acts: [].into() };
    let (fake, path) = FakeManager::on_socket(dir.path(), script);
    let client = ManagerClient::new(Address::Socket(path)).expect("a client");
    wait(async {
        let first = client.status().await.expect("an answer").status.cursor;
        let minute = Duration::from_secs(60);
        {
            let mut poll = std::pin::pin!(client.status_after(&first, minute));
            // Dropped only when the manager has received it.
            while fake.seen().len() < 2 {
                assert!(timeout(Duration::from_millis(1), &mut poll).await.is_err());
            }
        }
        fake.ended(2).await;
        fake.goes_on(running(2));
        let next = client.status_after(&first, minute).await.expect("an answer");
        assert_eq!(next.expect("news").status, running(2));
    });
}
