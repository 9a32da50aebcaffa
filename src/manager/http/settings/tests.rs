//! Settings that are open or cannot work are refused, and valid ones are not.

use super::*;

fn loopback() -> HttpSettings {
    HttpSettings { listen: Some(parse_listen("127.0.0.1:0").unwrap()), ..HttpSettings::default() }
}

fn with_tls() -> HttpSettings {
    HttpSettings {
        listen: Some(parse_listen(":9199").unwrap()),
        tls_cert: Some("tls.crt".into()),
        tls_key: Some("tls.key".into()),
        ..HttpSettings::default()
    }
}

fn pod() -> Pod {
    Pod { namespace: Some("search".into()), name: None, uid: Some("u-1".into()) }
}

#[track_caller]
fn refused(settings: &HttpSettings, part: &str) {
    let errors = settings.validate();
    assert!(errors.iter().any(|error| error.contains(part)), "no {part:?} in {errors:#?}");
}

#[track_caller]
fn accepted(settings: &HttpSettings) {
    assert_eq!(settings.validate(), Vec::<&str>::new());
}

#[test]
fn nothing_and_a_socket_alone_are_sound() {
    accepted(&HttpSettings::default());
    accepted(&HttpSettings { socket: Some("s".into()), ..HttpSettings::default() });
}

#[test] // proves ACCESS-1
fn a_listener_does_not_start_open() {
    refused(&with_tls(), "who calls");
    refused(&loopback(), "--listen needs --tls-cert");
    accepted(&HttpSettings { insecure_no_auth: true, ..loopback() });
    refused(&HttpSettings { insecure_no_auth: true, ..with_tls() }, "loopback");
    let keys = HttpSettings { jwt_key: Some("key".into()), pod: pod(), ..loopback() };
    refused(&keys, "clear text");
    refused(&HttpSettings { insecure_no_auth: true, ..keys }, "pointless");
}

#[test]
fn a_certificate_needs_its_key() {
    refused(&HttpSettings { tls_key: None, ..with_tls() }, "belong together");
    refused(&HttpSettings { tls_cert: None, ..with_tls() }, "belong together");
}

#[test]
fn a_tls_version_needs_tls_and_is_one_of_two() {
    let min = |text: &str| text.parse::<TlsMin>();
    assert_eq!((min("1.2"), min("1.3")), (Ok(TlsMin::V1_2), Ok(TlsMin::V1_3)));
    for bad in ["", "1", "1.1", "1.4", "TLS1.2", "tls1.3", "12", " 1.2"] {
        assert!(min(bad).unwrap_err().to_string().contains("1.3 and 1.2"), "{bad}");
    }
    assert_eq!(TlsMin::default(), TlsMin::V1_3);
    refused(&HttpSettings { tls_min: Some(TlsMin::V1_2), ..loopback() }, "--tls-min needs");
    let keys = HttpSettings { jwt_key: Some("key".into()), pod: pod(), ..with_tls() };
    accepted(&HttpSettings { tls_min: Some(TlsMin::V1_2), ..keys });
}

#[test]
fn own_tokens_need_an_audience() {
    let settings = HttpSettings { jwt_key: Some("key".into()), ..with_tls() };
    refused(&settings, "--jwt-audience");
    accepted(&HttpSettings { pod: pod(), ..settings.clone() });
    accepted(&HttpSettings { jwt_audience: Some("a".into()), ..settings.clone() });
    let half = Pod { uid: None, ..pod() };
    refused(&HttpSettings { pod: half, ..settings }, "--jwt-audience");
}

#[test]
fn a_key_set_needs_issuer_audience_and_subjects() {
    let settings = HttpSettings { jwks: Some("jwks".into()), ..with_tls() };
    refused(&settings, "--jwt-issuer");
    refused(&settings, "--jwt-audience");
    refused(&settings, "--allow-subject");
    accepted(&HttpSettings {
        jwt_issuer: Some("https://issuer".into()),
        jwt_audience: Some("stayput".into()),
        allow_subject: vec![("system:serviceaccount:a:b".into(), Scopes::READ)],
        ..settings
    });
    refused(&HttpSettings { jwt_issuer: Some("i".into()), ..with_tls() }, "--jwks");
}

#[test]
fn client_certificates_need_a_ca_and_names() {
    refused(&HttpSettings { client_ca: Some("ca".into()), ..with_tls() }, "--allow-client");
    let names = vec![("reconciler".to_owned(), Scopes::CONTROL)];
    refused(&HttpSettings { allow_client: names.clone(), ..with_tls() }, "--client-ca");
    let both = HttpSettings { client_ca: Some("ca".into()), allow_client: names, ..with_tls() };
    accepted(&both);
    let plain = HttpSettings { tls_cert: None, tls_key: None, ..both };
    refused(&plain, "--listen needs --tls-cert");
    refused(&HttpSettings { listen: None, ..plain }, "only with TLS");
}

#[test]
fn listen_addresses() {
    assert_eq!(parse_listen(":9199").unwrap().to_string(), "[::]:9199");
    assert_eq!(parse_listen("127.0.0.1:1").unwrap().to_string(), "127.0.0.1:1");
    assert_eq!(parse_listen("[::1]:1").unwrap().to_string(), "[::1]:1");
    for bad in ["", ":", "9199", ":99999", "localhost:1", "1.2.3.4"] {
        assert!(parse_listen(bad).unwrap_err().to_string().contains("9199"), "{bad}");
    }
}
