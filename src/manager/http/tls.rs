//! The TLS side of the listener: built from PEM, with ring and nothing taken from the process.

use std::sync::Arc;

use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{RootCertStore, ServerConfig};

use stayput_net::pem;

/// Builds the configuration. With `client_ca`, clients are asked for a certificate and may go
/// without (the kubelet's probes have none); which route needs one is decided per request.
///
/// # Errors
/// A sentence that says which document is wrong and what to do, without the files' names.
pub(super) fn server_config(
    certificate: &[u8],
    key: &[u8],
    client_ca: Option<&[u8]>,
) -> Result<ServerConfig, String> {
    let chain = pem::certificates("the certificate file", certificate)?;
    let key = pem::private_key("the key file", key)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider.clone())
        // Named, because kube in the same build makes rustls' own choice a wider one.
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(|error| format!("TLS cannot be set up: {error}"))?;
    let builder = match client_ca {
        None => builder.with_no_client_auth(),
        Some(ca) => {
            let mut roots = RootCertStore::empty();
            for root in pem::certificates("the client CA file", ca)? {
                roots.add(root).map_err(|error| {
                    format!("the client CA file holds a certificate that cannot be used: {error}")
                })?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
                .allow_unauthenticated()
                .build()
                .map_err(|error| format!("the client CA file cannot be used: {error}"))?;
            builder.with_client_cert_verifier(verifier)
        }
    };
    let mut config = builder.with_single_cert(chain, key).map_err(|error| match error {
        rustls::Error::InconsistentKeys(_) => {
            "the key is not the certificate's: give the pair that was issued together".to_owned()
        }
        error => format!("certificate and key cannot be used: {error}"),
    })?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    // Clients are few and keep their connections; remembered sessions would only cost memory, and
    // a resumed one would skip the check of the client's certificate.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(config)
}

#[cfg(test)]
mod tests {
    use rcgen::generate_simple_self_signed;

    use super::*;

    #[test]
    fn a_pair_that_belongs_together_is_taken_and_every_other_named() {
        let one = generate_simple_self_signed(["a".to_owned()]).unwrap();
        let other = generate_simple_self_signed(["b".to_owned()]).unwrap();
        let (cert, key) = (one.cert.pem(), one.signing_key.serialize_pem());
        let (cert, key) = (cert.as_bytes(), key.as_bytes());
        assert!(server_config(cert, key, None).is_ok());
        assert!(server_config(cert, key, Some(other.cert.pem().as_bytes())).is_ok());

        let refusal = |cert, key, ca| server_config(cert, key, ca).unwrap_err();
        let wrong_key = other.signing_key.serialize_pem();
        assert!(refusal(cert, wrong_key.as_bytes(), None).contains("not the certificate's"));
        assert!(refusal(b"", key, None).contains("holds no CERTIFICATE"));
        assert!(refusal(key, cert, None).contains("holds no CERTIFICATE"));
        assert!(refusal(cert, b"", None).contains("no private key"));
        assert!(refusal(cert, key, Some(b"")).contains("client CA file holds no CERTIFICATE"));
        let torn = &cert[..cert.len() - 40];
        assert!(refusal(torn, key, None).contains("certificate file"));
    }

    /// Without this feature rustls has no 1.2 to speak.
    #[test]
    fn tls_1_2_is_not_spoken_whatever_else_is_in_the_build() {
        use rustls::pki_types::ServerName;
        use rustls::{ClientConfig, ClientConnection, ServerConnection};

        let pair = generate_simple_self_signed(["a".to_owned()]).unwrap();
        let key = pair.signing_key.serialize_pem();
        let greeted = |version| {
            let mut roots = RootCertStore::empty();
            roots.add(pair.cert.der().clone()).unwrap();
            let provider = Arc::new(rustls::crypto::ring::default_provider());
            let client = ClientConfig::builder_with_provider(provider)
                .with_protocol_versions(&[version])
                .unwrap()
                .with_root_certificates(roots)
                .with_no_client_auth();
            let name = ServerName::try_from("a").unwrap();
            let mut client = ClientConnection::new(Arc::new(client), name).unwrap();
            let mut hello = Vec::new();
            client.write_tls(&mut hello).unwrap();
            let config = server_config(pair.cert.pem().as_bytes(), key.as_bytes(), None).unwrap();
            let mut server = ServerConnection::new(Arc::new(config)).unwrap();
            server.read_tls(&mut hello.as_slice()).unwrap();
            server.process_new_packets()
        };
        assert!(greeted(&rustls::version::TLS13).is_ok());
        assert!(matches!(
            greeted(&rustls::version::TLS12),
            Err(rustls::Error::PeerIncompatible(_))
        ));
    }
}
