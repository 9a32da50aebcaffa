//! Which certificates are taken, and which versions and cipher suites are spoken.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use rcgen::{CertifiedKey, KeyPair, generate_simple_self_signed};
use rustls::pki_types::ServerName;
use rustls::version::{TLS12, TLS13};
use rustls::{
    CipherSuite, ClientConfig, ClientConnection, Connection, RootCertStore, ServerConnection,
    SupportedProtocolVersion,
};

use super::*;

fn pair(name: &str) -> CertifiedKey<KeyPair> {
    generate_simple_self_signed([name.to_owned()]).unwrap()
}

#[test]
fn a_pair_that_belongs_together_is_taken_and_every_other_named() {
    let (one, other) = (pair("a"), pair("b"));
    let (cert, key) = (one.cert.pem(), one.signing_key.serialize_pem());
    let (cert, key) = (cert.as_bytes(), key.as_bytes());
    let config = |cert, key, ca| server_config(cert, key, ca, TlsMin::V1_3);
    assert!(config(cert, key, None).is_ok());
    let ca = other.cert.pem();
    assert!(config(cert, key, Some(ca.as_bytes())).is_ok());

    let refusal = |cert, key, ca| config(cert, key, ca).unwrap_err().to_string();
    let wrong_key = other.signing_key.serialize_pem();
    assert!(refusal(cert, wrong_key.as_bytes(), None).contains("not the certificate's"));
    assert!(refusal(b"", key, None).contains("holds no CERTIFICATE"));
    assert!(refusal(key, cert, None).contains("holds no CERTIFICATE"));
    assert!(refusal(cert, b"", None).contains("no private key"));
    assert!(refusal(cert, key, Some(b"")).contains("client CA file holds no CERTIFICATE"));
    let torn = &cert[..cert.len() - 40];
    assert!(refusal(torn, key, None).contains("certificate file"));
}

/// The cipher suite on which a client with these versions and the listener agree.
fn agreed(
    min: TlsMin,
    versions: &[&'static SupportedProtocolVersion],
) -> Result<CipherSuite, rustls::Error> {
    let pair = pair("a");
    let key = pair.signing_key.serialize_pem();
    let config = server_config(pair.cert.pem().as_bytes(), key.as_bytes(), None, min).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(pair.cert.der().clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let client = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(versions)
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("a").unwrap();
    let mut client: Connection = ClientConnection::new(Arc::new(client), name).unwrap().into();
    let mut server: Connection = ServerConnection::new(Arc::new(config)).unwrap().into();
    while client.is_handshaking() || server.is_handshaking() {
        pass(&mut client, &mut server)?;
        pass(&mut server, &mut client)?;
    }
    Ok(server.negotiated_cipher_suite().unwrap().suite())
}

/// Passes on what one side wants to send.
fn pass(from: &mut Connection, to: &mut Connection) -> Result<(), rustls::Error> {
    while from.wants_write() {
        let mut sent = Vec::new();
        from.write_tls(&mut sent).unwrap();
        to.read_tls(&mut sent.as_slice()).unwrap();
        to.process_new_packets()?;
    }
    Ok(())
}

#[test]
fn tls_1_2_is_spoken_only_where_it_was_asked_for() {
    assert!(agreed(TlsMin::V1_3, &[&TLS13]).is_ok());
    assert!(matches!(agreed(TlsMin::V1_3, &[&TLS12]), Err(rustls::Error::PeerIncompatible(_))));
    let suite = agreed(TlsMin::V1_2, &[&TLS12]).unwrap();
    assert!(format!("{suite:?}").starts_with("TLS_ECDHE_ECDSA_WITH_"), "{suite:?}");
    // Whoever speaks both uses the newer one.
    let suite = agreed(TlsMin::V1_2, &[&TLS12, &TLS13]).unwrap();
    assert!(format!("{suite:?}").starts_with("TLS13_"), "{suite:?}");
}

#[test]
fn tls_1_2_has_modern_suites_only() {
    let pair = pair("a");
    let key = pair.signing_key.serialize_pem();
    let config =
        server_config(pair.cert.pem().as_bytes(), key.as_bytes(), None, TlsMin::V1_2).unwrap();
    for suite in &config.crypto_provider().cipher_suites {
        let name = format!("{:?}", suite.suite());
        let ephemeral = name.starts_with("TLS13_") || name.starts_with("TLS_ECDHE_");
        let authenticated = name.contains("_GCM_") || name.contains("_CHACHA20_POLY1305_");
        assert!(ephemeral && authenticated, "{name}");
    }
}

#[test] // proves ACCESS-14
fn a_pair_is_kept_for_its_owner_and_no_link_is_followed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tls.json");
    assert!(load(&path).unwrap().is_none());
    let (one, two) = (Pair::new(b"a\nb", b"key"), Pair::new(b"c", b"key"));
    for pair in [&one, &two, &two] {
        save(&path, pair).unwrap();
        assert!(load(&path).unwrap().as_ref() == Some(pair));
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
    let other = directory.path().join("other");
    fs::rename(&path, &other).unwrap();
    symlink(&other, &path).unwrap();
    load(&path).unwrap_err();
    save(&path, &one).unwrap();
    assert!(load(&path).unwrap() == Some(one));
    assert!(load(&other).unwrap() == Some(two), "what a link pointed to stays");
}

#[test]
fn what_cannot_be_read_is_replaced_and_never_waited_for() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tls.json");
    nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
    load(&path).unwrap_err();
    let pair = Pair::new(b"a", b"b");
    save(&path, &pair).unwrap();
    assert!(load(&path).unwrap() == Some(pair.clone()));
    fs::write(&path, "torn").unwrap();
    load(&path).unwrap_err();
    save(&path, &pair).unwrap();
    assert!(load(&path).unwrap() == Some(pair));
}

const DAY: u64 = 24 * 3600;

#[test]
fn the_end_is_said_in_time() {
    // `date -d 2026-01-01T00:00:00Z +%s`, and 100 days later.
    let end = 1_767_225_600 + 100 * DAY;
    let validity = Validity { not_before: 1_767_225_600, not_after: end };
    assert_eq!(problem(validity, end - 10 * DAY - 1), None);
    assert_eq!(validity.until_change(end - 11 * DAY), Some(Duration::from_secs(DAY)));
    let soon = problem(validity, end - 10 * DAY).unwrap();
    assert!(soon.contains("expires at 2026-04-11T00:00:00Z"), "{soon}");
    assert_eq!(validity.until_change(end), Some(Duration::from_secs(1)));
    assert!(problem(validity, end + 1).unwrap().contains("has expired"));
    assert_eq!(validity.until_change(end + 1), None);
}
