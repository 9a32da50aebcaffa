//! Which requests are accepted, and how little a refusal shows.

use serde_json::json;

use super::world::{AUDIENCE, Signer, World, token};
use crate::http::Limits;

#[tokio::test]
async fn tokens_open_what_their_scope_says() {
    let world = World::new().await;
    let mut client = world.tls(None).await;
    let (read, control) = (token("es:read"), token("es:control"));

    let status = client.get("/es/status", Some(&read)).await;
    assert_eq!((status.status.as_u16(), &status.json()["state"]), (200, &json!("running")));
    let refused = client.post("/es/stop", Some(&read), "{}").await;
    assert_eq!(refused.problem(), (403, "forbidden".into()));
    assert!(refused.json().get("current").is_none());
    let none = client.get("/es/status", Some(&token("other:read"))).await;
    assert_eq!(none.problem(), (403, "forbidden".into()));
    assert_eq!(client.get("/es/status", Some(&control)).await.status, 200);
    assert_eq!(client.post("/es/stop", Some(&control), "{}").await.status, 202);
    let seen = world.script.lock().unwrap().seen.clone();
    assert_eq!(seen.len(), 1, "only the allowed request reached the supervisor");
    assert!(seen[0].starts_with("jwt:ops StopRequest"), "{seen:?}");
}

#[tokio::test] // proves ACCESS-4
async fn every_kind_of_bad_token_gets_the_same_answer() {
    let world = World::new().await;
    let mut client = world.tls(None).await;
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let claims = |exp: u64, nbf: u64, aud: &str| json!({"aud": aud, "exp": exp, "nbf": nbf, "scope": "es:control"});
    let good = claims(now + 600, now, AUDIENCE);
    let hs256 = json!({"alg": "HS256"});
    let bad = [
        "nonsense".to_owned(),
        "a.b.c".to_owned(),
        Signer::Shared(vec![b'x'; 32]).token(&hs256, &good),
        Signer::shared().token(&hs256, &claims(now - 60, 0, AUDIENCE)),
        Signer::shared().token(&hs256, &claims(now + 600, now + 300, AUDIENCE)),
        Signer::shared().token(&hs256, &claims(now + 7200, now, AUDIENCE)),
        Signer::shared().token(&hs256, &claims(now + 600, now, "stayput:search/u-2")),
        Signer::Unsigned.token(&json!({"alg": "none"}), &good),
        Signer::rsa().token(&json!({"alg": "RS256"}), &good),
        Signer::Shared(vec![b'x'; 32]).token(&json!({"alg": "HS256", "kid": "unknown"}), &good),
    ];
    let without = client.get("/es/status", None).await;
    assert_eq!(without.problem(), (401, "unauthenticated".into()));
    assert_eq!(without.header("www-authenticate"), "Bearer");
    assert!(without.json().get("current").is_none());
    for token in &bad {
        for target in ["/es/status", "/metrics"] {
            let refused = client.get(target, Some(token)).await;
            assert_eq!(refused.status, 401);
            assert_eq!(refused.body, without.body, "the refusal shows no more: {token}");
        }
    }
    assert_eq!(
        client.get("/es/status", Some(&Signer::shared().token(&hs256, &good))).await.status,
        200
    );
}

#[tokio::test] // proves ACCESS-4
async fn client_certificates_open_what_their_names_say() {
    let world = World::new().await;
    let mut reconciler = world.tls(Some("reconciler")).await;
    assert_eq!(reconciler.post("/es/stop", None, "").await.status, 202);
    let mut reader = world.tls(Some("reader")).await;
    assert_eq!(reader.get("/es/status", None).await.status, 200);
    assert_eq!(reader.post("/es/stop", None, "").await.status, 403);
    // Its common name is the reconciler's, which is ignored.
    let mut stranger = world.tls(Some("stranger")).await;
    assert_eq!(stranger.get("/es/status", None).await.status, 401);
    assert_eq!(stranger.get("/livez", None).await.status, 200);
    assert_eq!(stranger.get("/es/status", Some(&token("es:read"))).await.status, 200);
    // A wrong token is refused even with a valid certificate.
    assert_eq!(reconciler.get("/es/status", Some("a.b.c")).await.status, 401);
    let seen = world.script.lock().unwrap().seen.clone();
    assert!(seen[0].starts_with("client:reconciler.search.svc "), "{seen:?}");
}

#[tokio::test]
async fn a_certificate_of_another_ca_does_not_get_through() {
    let world = World::new().await;
    // With TLS 1.3 the client notices it when it reads.
    let got_through = match world.tls_stream(Some("forger")).await {
        Err(_) => false,
        Ok(mut stream) => {
            use tokio::io::{AsyncReadExt, AsyncWriteExt};
            let _ = stream.write_all(b"GET /livez HTTP/1.1\r\nhost: a\r\n\r\n").await;
            stream.read(&mut [0; 64]).await.is_ok_and(|count| count > 0)
        }
    };
    assert!(!got_through);
}

#[tokio::test] // proves ACCESS-4
async fn the_socket_knows_its_peer() {
    let world = World::new().await;
    let mut client = world.unix().await;
    assert_eq!(client.post("/es/start", None, "").await.status, 202);
    let own = nix::unistd::geteuid();
    let seen = world.script.lock().unwrap().seen.clone();
    assert!(seen[0].starts_with(&format!("uid:{own} StartRequest")), "{seen:?}");
}

#[tokio::test]
async fn without_credentials_only_the_probes_are_open() {
    let world = World::new().await;
    let mut client = world.tls(None).await;
    for (target, code) in
        [("/livez", 200), ("/readyz", 200), ("/es/status", 401), ("/metrics", 401)]
    {
        assert_eq!(client.get(target, None).await.status, code, "{target}");
    }
    for target in ["/es/stop", "/es/start", "/es/drain"] {
        assert_eq!(client.post(target, None, "{}").await.status, 401, "{target}");
    }
    let open = World::with(Limits::default(), |settings| settings.open_metrics = true).await;
    assert_eq!(open.tls(None).await.get("/metrics", None).await.status, 200);
}

#[tokio::test]
async fn a_trial_on_loopback_needs_neither_tls_nor_tokens() {
    let world = World::with(Limits::default(), |settings| {
        *settings = crate::http::HttpSettings {
            listen: settings.listen,
            insecure_no_auth: true,
            ..Default::default()
        };
    })
    .await;
    let mut client = world.plain().await;
    // As a web page does whose name `pod` resolves to this machine.
    assert_eq!(client.post("/es/stop", None, "").await.problem(), (403, "forbidden".into()));
    assert!(world.script.lock().unwrap().seen.is_empty());
    client.host = "localhost";
    assert_eq!(client.post("/es/stop", None, "").await.status, 202);
    assert!(world.script.lock().unwrap().seen[0].starts_with("anybody "));
}
