//! Keys and certificates that change under a running server.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;

use super::world::{Client, Signer, World, eventually, token, write_certificates};
use crate::errors::Errors;
use crate::http::Limits;
use crate::process::KeptListener;

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

#[tokio::test] // proves ACCESS-10
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
        allow_subject: vec![("s".into(), stayput_http::jwt::Scopes::READ)],
        ..Default::default()
    };
    let server = crate::http::Server::bind(
        settings,
        Limits::default(),
        &Errors::default(),
        KeptListener::default(),
        None,
    )
    .await
    .unwrap();
    let faults = server.faults();
    assert_eq!(faults.len(), 3, "{faults:#?}");
    for (error, parts) in faults.iter().zip([
        ["tls.crt", "not the certificate's"],
        ["short", "at least 32"],
        ["missing", "cannot be read"],
    ]) {
        assert!(parts.iter().all(|part| error.contains(part)), "{error}");
    }
}

/// Changes a file so that inotify tells nothing: it stays open.
fn write_untold(path: &Path, content: &[u8]) -> File {
    let mut file = OpenOptions::new().write(true).truncate(true).open(path).unwrap();
    file.write_all(content).unwrap();
    file
}

/// A paused clock would go on by itself while the network is waited for.
async fn let_time_pass() {
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(11)).await;
    tokio::time::resume();
}

const OTHER_SECRET: &[u8] = b"fedcba9876543210fedcba9876543210";

#[tokio::test] // proves ACCESS-11
async fn a_replaced_key_lets_nobody_in_where_changes_are_not_told() {
    let world = World::new().await;
    let old = token("es:read");
    assert_eq!(world.unix().await.get("/es/status", Some(&old)).await.status, 200);
    let _open = write_untold(&world.path("jwt.key"), OTHER_SECRET);
    let_time_pass().await;
    // Files that are not read in time, on a busy machine, count with a later request.
    eventually(async || world.unix().await.get("/es/status", Some(&old)).await.status == 401).await;
}

#[tokio::test] // proves ACCESS-11
async fn a_replaced_client_ca_lets_nobody_in_where_changes_are_not_told() {
    let world = World::new().await;
    let mut client = world.tls(Some("reconciler")).await;
    assert_eq!(client.get("/es/status", None).await.status, 200);
    let other = tempfile::tempdir().unwrap();
    write_certificates(other.path());
    let ca = std::fs::read(other.path().join("ca.crt")).unwrap();
    let _open = write_untold(&world.path("ca.crt"), &ca);
    let_time_pass().await;
    eventually(async || client.get("/es/status", None).await.status == 401).await;
}

#[tokio::test]
async fn a_new_certificate_is_served_where_changes_are_not_told() {
    let world = World::new().await;
    let other = tempfile::tempdir().unwrap();
    write_certificates(other.path());
    let open = ["tls.crt", "tls.key", "ca.crt"].map(|name| {
        write_untold(&world.path(name), &std::fs::read(other.path().join(name)).unwrap())
    });
    let_time_pass().await;
    let new = CertificateDer::from_pem_file(world.path("tls.crt")).unwrap();
    eventually(async || served(&world).await.unwrap() == new).await;
    drop(open);
}

#[tokio::test] // proves ACCESS-10
async fn what_is_taken_away_lets_nobody_in_until_it_is_back() {
    let world = World::new().await;
    let token = token("es:read");
    let mut client = world.tls(Some("reconciler")).await;
    let trusted = world.path("trusted.crt");
    std::fs::copy(world.path("ca.crt"), &trusted).unwrap();
    for (name, by) in [("jwt.key", Some(token.as_str())), ("ca.crt", None)] {
        // None: a connection with the certificates from before was closed.
        let ask = async || {
            let mut client = match by {
                Some(_) => world.unix().await,
                None => {
                    let stream = world.tls_stream_trusting(Some("reconciler"), &trusted).await;
                    Client::over(stream.ok()?).await
                }
            };
            client.send("GET", "/es/status", by, "").await.ok().map(|answer| answer.status.as_u16())
        };
        assert_eq!(ask().await, Some(200));
        let whole = std::fs::read(world.path(name)).unwrap();
        std::fs::remove_file(world.path(name)).unwrap();
        let is_gone = |error: &stayput_api::ManagerError| {
            error.code == "key_files" && !error.message.contains("does not answer")
        };
        eventually(async || world.errors.list().iter().any(is_gone)).await;
        if by.is_none() {
            // A connection may be closed instead.
            let new = world.tls_stream_trusting(Some("reconciler"), &trusted).await.unwrap();
            let mut new = Client::over(new).await;
            for client in [&mut client, &mut new] {
                let answer = client.send("GET", "/es/status", None, "").await;
                assert!(answer.is_err() || answer.unwrap().status == 401);
            }
        } else {
            assert_eq!(ask().await, Some(401));
        }
        std::fs::write(world.path(name), whole).unwrap();
        eventually(async || ask().await == Some(200) && world.errors.list().is_empty()).await;
    }
}

#[tokio::test] // proves ACCESS-20
async fn a_volume_that_hangs_keeps_the_keys_and_nobody_waits_for_it() {
    let world = World::new().await;
    let token = token("es:read");
    let fifo = world.path("fifo");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
    // Opening it takes as long as nobody writes.
    std::fs::rename(&fifo, world.path("jwt.key")).unwrap();
    eventually(async || {
        world.errors.list().iter().any(|error| error.message.contains("does not answer"))
    })
    .await;
    assert_eq!(world.unix().await.get("/es/status", Some(&token)).await.status, 200);
    let mut writer = OpenOptions::new().write(true).open(world.path("jwt.key")).unwrap();
    std::fs::write(world.path("jwt.key.new"), super::world::SHARED).unwrap();
    std::fs::rename(world.path("jwt.key.new"), world.path("jwt.key")).unwrap();
    writer.write_all(super::world::SHARED).unwrap();
    drop(writer);
    eventually(async || world.errors.list().is_empty()).await;
}

#[tokio::test] // proves ACCESS-11
async fn links_to_other_directories_and_directories_made_anew_are_followed() {
    let vault = tempfile::tempdir().unwrap();
    let versions = ["v1", "v2"].map(|name| vault.path().join(name));
    for version in &versions {
        std::fs::create_dir(version).unwrap();
        write_certificates(version);
    }
    symlink("v1", vault.path().join("current")).unwrap();
    let world = World::with(Limits::default(), |settings| {
        let directory = settings.tls_cert.as_ref().unwrap().parent().unwrap().to_owned();
        symlink(vault.path().join("current"), directory.join("keys")).unwrap();
        settings.tls_cert = Some(directory.join("keys/tls.crt"));
        settings.tls_key = Some(directory.join("keys/tls.key"));
        settings.client_ca = Some(directory.join("keys/ca.crt"));
    })
    .await;
    let serves = async |certificate: &Path| {
        let wanted = CertificateDer::from_pem_file(certificate).unwrap();
        std::fs::copy(certificate.parent().unwrap().join("ca.crt"), world.path("ca.crt")).unwrap();
        eventually(async || served(&world).await.as_ref() == Some(&wanted)).await;
    };
    serves(&versions[0].join("tls.crt")).await;
    symlink("v2", vault.path().join("new")).unwrap();
    std::fs::rename(vault.path().join("new"), vault.path().join("current")).unwrap();
    serves(&versions[1].join("tls.crt")).await;
    std::fs::remove_dir_all(&versions[1]).unwrap();
    eventually(async || !world.errors.list().is_empty()).await;
    std::fs::create_dir(&versions[1]).unwrap();
    write_certificates(&versions[1]);
    serves(&versions[1].join("tls.crt")).await;
    // The new directory is watched as the old one was.
    write_certificates(&versions[1]);
    serves(&versions[1].join("tls.crt")).await;
    eventually(async || world.errors.list().is_empty()).await;
}

#[tokio::test] // proves ACCESS-12
async fn a_certificate_that_expires_soon_is_reported_with_its_date() {
    let day = Duration::from_secs(24 * 3600);
    let end = std::time::SystemTime::now() + day;
    let world = World::with(Limits::default(), |settings| {
        let mut params = rcgen::CertificateParams::default();
        params.not_before = (end - 90 * day).into();
        params.not_after = end.into();
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        std::fs::write(settings.tls_cert.as_ref().unwrap(), certificate.pem()).unwrap();
        std::fs::write(settings.tls_key.as_ref().unwrap(), key.serialize_pem()).unwrap();
    })
    .await;
    eventually(async || !world.errors.list().is_empty()).await;
    let error = world.errors.list().remove(0);
    assert_eq!(error.code, "certificate");
    let date = humantime::format_rfc3339_seconds(end);
    assert!(error.message.contains(&format!("expires at {date}:")), "{error:?}");
    let text = world.unix().await.get("/metrics", None).await.body;
    let text = String::from_utf8_lossy(&text).into_owned();
    assert!(text.contains("stayput_certificate_expiry_timestamp_seconds"), "{text}");
}
