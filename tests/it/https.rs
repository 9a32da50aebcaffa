//! One exchange, and what can go wrong.

use std::net::TcpListener;
use std::path::Path;
use std::time::Duration;

use hyper::body::Bytes;
use hyper::{Request, Response};
use stayput_http::https::{Bounds, ExchangeError, Target, exchange};
use tokio_rustls::TlsAcceptor;

use crate::support::fake_manager::{FakeManager, Reply, Script};
use crate::support::pki::Pki;

const BOUNDS: Bounds = Bounds {
    connect: Duration::from_secs(10),
    whole: Duration::from_secs(10),
    answer: 1 << 20,
    refusal: 1 << 20,
};

fn ask(target: &Target, bounds: Bounds) -> Result<Response<Bytes>, ExchangeError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let request = Request::get("/path?a=b").header("authorization", "Basic eA==");
    let request = request.body(Bytes::new()).expect("a request");
    runtime.expect("a runtime").block_on(exchange(target, request, bounds))
}

fn server(tls: Option<TlsAcceptor>) -> (FakeManager, u16) {
    let reply = Reply { code: 408, content_type: "text/x", body: "y".repeat(1000), sequence: None };
    FakeManager::on_port(tls, Script::Always(reply))
}

#[test]
fn an_answer_is_status_headers_and_body_whatever_the_way() {
    let pki = Pki::named(&["stayput", "127.0.0.1"]);
    let (plain, plain_port) = server(None);
    let (secure, port) = server(Some(pki.acceptor()));
    for (target, shown) in [
        (Target::http("127.0.0.1", plain_port), format!("http://127.0.0.1:{plain_port}")),
        (Target::https("127.0.0.1", port, &pki.tls(), None), format!("https://127.0.0.1:{port}")),
        (
            Target::https("127.0.0.1", port, &pki.tls(), Some("stayput")),
            format!("https://127.0.0.1:{port}"),
        ),
    ] {
        let target = target.expect("a target");
        assert_eq!((target.to_string(), target.socket_path()), (shown, None));
        let response = ask(&target, BOUNDS).expect("an answer");
        assert_eq!(response.status(), 408);
        assert_eq!(response.headers()["content-type"], "text/x");
        assert_eq!(response.body().len(), 1000);
    }
    for seen in [plain.seen(), secure.seen()].concat() {
        assert_eq!(seen.line, "GET /path?a=b");
        assert_eq!(seen.authorization.as_deref(), Some("Basic eA=="));
    }
    let socket = Target::socket("/absent");
    assert_eq!(socket.socket_path(), Some(Path::new("/absent")));
    assert!(matches!(ask(&socket, BOUNDS), Err(ExchangeError::NotConnected(_))));
}

#[test]
fn names_that_are_none_are_refused() {
    let tls = Pki::new().tls();
    for (host, name, part) in [
        ("a b", None, "\"a b\" is neither a DNS name nor an IP address"),
        ("", None, "\"\" is neither"),
        ("127.0.0.1", Some("a b"), "\"a b\" is neither"),
        ("a\n", Some("b"), "\"a\\n\" has characters that no host has"),
    ] {
        let error = Target::https(host, 1, &tls, name).expect_err(host);
        assert!(error.to_string().starts_with(part), "{error}");
    }
    assert!(Target::http("a\r\nb", 1).is_err());
    let literal = Target::http("::1", 9200).expect("a target");
    assert_eq!(literal.to_string(), "http://[::1]:9200");
}

#[test]
fn all_of_it_is_bounded_in_time_and_the_error_tells_whether_it_was_sent() {
    let pki = Pki::new();
    let short = Duration::from_millis(300);
    // Accepts connections and sends nothing: no TLS, no HTTP.
    let mute = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = mute.local_addr().expect("an address").port();
    let secure = Target::https("127.0.0.1", port, &pki.tls(), None).expect("a target");
    for bounds in [Bounds { connect: short, ..BOUNDS }, Bounds { whole: short, ..BOUNDS }] {
        match ask(&secure, bounds) {
            Err(ExchangeError::NotConnected(error)) => {
                assert_eq!(error.to_string(), "no connection within 300ms");
            }
            other => panic!("{other:?}"),
        }
    }
    let plain = Target::http("127.0.0.1", port).expect("a target");
    match ask(&plain, Bounds { whole: short, ..BOUNDS }) {
        Err(ExchangeError::Unanswered(error)) => {
            assert_eq!(error.to_string(), "no answer within 300ms");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn of_a_refusal_no_more_is_read_than_its_beginning() {
    let (_fake, port) = server(None);
    let target = Target::http("127.0.0.1", port).expect("a target");
    let read = |refusal| ask(&target, Bounds { refusal, ..BOUNDS }).expect("a refusal");
    assert_eq!(read(1000).into_body().len(), 1000);
    let cut = read(999);
    assert_eq!((cut.status().as_u16(), cut.into_body().len()), (408, 999));
}

#[test]
fn an_answer_is_bounded_in_size() {
    let body = "y".repeat(1000);
    let reply = Reply { code: 200, content_type: "text/x", body, sequence: None };
    let (_fake, port) = FakeManager::on_port(None, Script::Always(reply));
    let target = Target::http("127.0.0.1", port).expect("a target");
    assert!(ask(&target, Bounds { answer: 1000, ..BOUNDS }).is_ok());
    match ask(&target, Bounds { answer: 999, ..BOUNDS }) {
        Err(ExchangeError::Unanswered(error)) => {
            assert_eq!(error.to_string(), "the answer is larger than 999 bytes");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_server_that_wants_a_certificate_says_so() {
    let pki = Pki::new();
    let acceptor = pki.server(rustls::DEFAULT_VERSIONS, true);
    let (fake, port) = server(Some(acceptor));
    let target = |tls| Target::https("127.0.0.1", port, &tls, None).expect("a target");
    // With TLS 1.3 the client considers itself connected, so it may have sent the request.
    match ask(&target(pki.tls()), BOUNDS) {
        Err(ExchangeError::Unanswered(error)) => {
            assert!(error.to_string().contains("CertificateRequired"), "{error}");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(fake.seen(), []);
    assert!(ask(&target(pki.identified()), BOUNDS).is_ok());
}

#[test]
fn tls_1_2_is_spoken_only_where_it_was_asked_for() {
    use stayput_http::https::{FROM_1_2, ONLY_1_3, Tls};

    let pki = Pki::new();
    let (_old, old_port) = server(Some(pki.server(&[&rustls::version::TLS12], false)));
    let (_young, young_port) = server(Some(pki.server(&[&rustls::version::TLS13], false)));
    let asked = |port, versions| {
        let tls = Tls::new(&pki.pem("ca"), None, versions).expect("TLS");
        ask(&Target::https("127.0.0.1", port, &tls, None).expect("a target"), BOUNDS)
    };
    assert!(asked(old_port, FROM_1_2).is_ok());
    assert!(asked(young_port, FROM_1_2).is_ok());
    assert!(asked(young_port, ONLY_1_3).is_ok());
    assert!(matches!(asked(old_port, ONLY_1_3), Err(ExchangeError::NotConnected(_))));
}
