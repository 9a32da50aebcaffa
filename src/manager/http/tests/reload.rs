//! Keys and certificates that change under a running server.

use std::os::unix::fs::symlink;
use std::path::Path;

use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;

use super::world::{Signer, World, eventually, token, write_certificates};
use crate::errors::Errors;
use crate::http::Limits;

async fn served(world: &World) -> Option<CertificateDer<'static>> {
    let stream = world.tls_stream(None).await.ok()?;
    stream.get_ref().1.peer_certificates()?.first().cloned().map(CertificateDer::into_owned)
}

async fn metric(world: &World, line: &str) -> bool {
    let text = world.unix().await.get("/metrics", None).await.body;
    String::from_utf8_lossy(&text).lines().any(|own| own == line)
}

/// A volume as kubelet makes it: the files are links through `..data`, which is swapped.
fn mount(directory: &Path) {
    swap(directory, "one", write_certificates);
    for name in ["tls.crt", "tls.key", "ca.crt"] {
        let _ = std::fs::remove_file(directory.join(name));
        symlink(Path::new("..data").join(name), directory.join(name)).unwrap();
    }
}

fn swap(directory: &Path, generation: &str, fill: impl FnOnce(&Path)) {
    let real = directory.join(format!("..{generation}"));
    std::fs::create_dir(&real).unwrap();
    fill(&real);
    symlink(format!("..{generation}"), directory.join("..data_tmp")).unwrap();
    std::fs::rename(directory.join("..data_tmp"), directory.join("..data")).unwrap();
}

#[tokio::test]
async fn a_renewed_certificate_is_served_and_old_connections_end() {
    let world = World::with(Limits::default(), |settings| {
        mount(settings.tls_cert.as_ref().unwrap().parent().unwrap());
    })
    .await;
    let before = served(&world).await.unwrap();
    let mut client = world.tls(None).await;
    assert_eq!(client.get("/livez", None).await.status, 200);
    swap(world.directory.path(), "two", write_certificates);
    let after = CertificateDer::from_pem_file(world.path("tls.crt")).unwrap();
    assert_ne!(before, after);
    eventually(async || served(&world).await.as_ref() == Some(&after)).await;
    eventually(async || client.send("GET", "/livez", None, "").await.is_err()).await;
}

#[tokio::test]
async fn a_broken_certificate_keeps_the_old_one_and_is_reported() {
    let world = World::new().await;
    let before = served(&world).await.unwrap();
    let whole = std::fs::read(world.path("tls.crt")).unwrap();
    std::fs::write(world.path("tls.crt"), "broken").unwrap();
    eventually(async || metric(&world, "stayput_key_reload_failed 1").await).await;
    assert_eq!(served(&world).await.unwrap(), before);
    assert_eq!(world.tls(None).await.get("/es/status", Some(&token("es:read"))).await.status, 200);
    std::fs::write(world.path("tls.crt"), whole).unwrap();
    eventually(async || metric(&world, "stayput_key_reload_failed 0").await).await;
    std::fs::remove_file(world.path("tls.key")).unwrap();
    eventually(async || metric(&world, "stayput_key_reload_failed 1").await).await;
    assert_eq!(served(&world).await.unwrap(), before);
}

#[tokio::test]
async fn a_new_key_takes_over_and_the_old_one_s_tokens_are_forgotten() {
    let world = World::new().await;
    let old = token("es:read");
    let mut client = world.tls(None).await;
    assert_eq!(client.get("/es/status", Some(&old)).await.status, 200);
    let secret = b"fedcba9876543210fedcba9876543210";
    std::fs::write(world.path("jwt.key.new"), secret).unwrap();
    std::fs::rename(world.path("jwt.key.new"), world.path("jwt.key")).unwrap();
    eventually(async || client.get("/es/status", Some(&old)).await.status == 401).await;
    let claims = serde_json::json!({"aud": super::world::AUDIENCE, "scope": "es:read",
        "exp": std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs() + 60});
    let new = Signer::Shared(secret.to_vec()).token(&serde_json::json!({"alg": "HS256"}), &claims);
    assert_eq!(client.get("/es/status", Some(&new)).await.status, 200);
    // A broken key changes nothing.
    std::fs::write(world.path("jwt.key"), "short").unwrap();
    eventually(async || metric(&world, "stayput_key_reload_failed 1").await).await;
    assert_eq!(client.get("/es/status", Some(&new)).await.status, 200);
    assert_eq!(client.get("/es/status", Some(&old)).await.status, 401);
}

#[tokio::test]
async fn what_is_wrong_at_the_start_is_said_all_at_once() {
    let directory = tempfile::tempdir().unwrap();
    write_certificates(directory.path());
    let file = |name: &str| Some(directory.path().join(name));
    std::fs::write(directory.path().join("short"), "short").unwrap();
    let settings = crate::http::HttpSettings {
        listen: Some(([127, 0, 0, 1], 0).into()),
        tls_cert: file("tls.crt"),
        tls_key: file("reader.key"),
        jwt_key: file("short"),
        jwks: file("missing"),
        jwt_issuer: Some("i".into()),
        jwt_audience: Some("a".into()),
        allow_subject: vec![("s".into(), stayput_net::jwt::Scopes::READ)],
        ..Default::default()
    };
    let errors = crate::http::Server::bind(settings, Limits::default(), &Errors::default())
        .await
        .unwrap_err();
    assert_eq!(errors.len(), 3, "{errors:#?}");
    for (error, parts) in errors.iter().map(ToString::to_string).zip([
        ["tls.crt", "not the certificate's"],
        ["short", "at least 32"],
        ["missing", "cannot be read"],
    ]) {
        assert!(parts.iter().all(|part| error.contains(part)), "{error}");
    }
}
