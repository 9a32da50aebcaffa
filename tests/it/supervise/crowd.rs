//! Peers without credentials keep out neither the kubelet's probes nor the engine's stop.

use std::io::Write;
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore};

use super::secured::Secured;

const CROWD: usize = 400;

/// The first message of a TLS client: enough for the server to sign.
fn hello() -> Vec<u8> {
    let provider = rustls::crypto::ring::default_provider();
    let config = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    let name = ServerName::try_from("stayput").unwrap();
    let mut client = ClientConnection::new(Arc::new(config), name).unwrap();
    let mut sent = Vec::new();
    client.write_tls(&mut sent).unwrap();
    sent
}

/// Probes as the kubelet does without further settings: an answer within a second, three attempts.
fn assert_kubelet_is_content(secured: &Secured) {
    for path in ["/livez", "/readyz"] {
        let answered = (0..3).any(|_| secured.curl(&["-m", "1"], path) == "200");
        assert!(answered, "{path}: {}", secured.manager.log());
    }
}

fn evicted(secured: &Secured) -> usize {
    let metrics = secured.manager.get("/metrics").body;
    let name = "stayput_http_connections_evicted_total ";
    let value = metrics
        .as_str()
        .expect("text")
        .lines()
        .find_map(|line| line.strip_prefix(name))
        .expect("the metric");
    value.parse().unwrap()
}

#[test] // proves ACCESS-7
fn four_hundred_handshakes_at_once() {
    let secured = Secured::start(&[], |command| command);
    let hello = hello();
    let mut crowd = Vec::new();
    for _ in 0..CROWD {
        let mut stream = TcpStream::connect(("127.0.0.1", secured.port)).unwrap();
        stream.write_all(&hello).unwrap();
        crowd.push(stream);
    }
    assert_kubelet_is_content(&secured);
    assert!(evicted(&secured) >= CROWD - 96, "all that have no place are closed");
}

#[test] // proves ACCESS-8
fn four_hundred_connections_leave_descriptors_for_stop_and_start() {
    const LIMIT: usize = 64;
    let secured = Secured::start(&[], |command| {
        let mut limited = Command::new("sh");
        limited.arg("-c").arg(format!("ulimit -n {LIMIT}; exec \"$@\"")).arg("sh");
        limited.arg(command.get_program()).args(command.get_args());
        limited.current_dir(command.get_current_dir().unwrap());
        limited
    });
    let mut crowd = Vec::new();
    let mut local = Vec::new();
    for _ in 0..CROWD {
        crowd.push(TcpStream::connect(("127.0.0.1", secured.port)).unwrap());
        local.push(UnixStream::connect(secured.pod.socket()).unwrap());
    }
    assert_kubelet_is_content(&secured);
    let open = secured.descriptors();
    assert!(open <= LIMIT * 3 / 4, "{open} descriptors of {LIMIT}");
    let stop = secured.manager.post("/es/stop?wait=20s", "{}");
    assert_eq!((stop.code, &stop.body["manager"]["durable"]), (200, &true.into()));
    assert_eq!(secured.manager.post("/es/start?wait=20s", "{}").code, 200);
    assert!(evicted(&secured) > CROWD);
}
