//! A manager with a TLS listener and an RSA certificate, and curl as its client.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use super::manager::Manager;
use super::pod::Pod;
use crate::support::program::finish;

/// Extensions of a certificate that is its own CA.
const EXTENSIONS: &str = "[req]\ndistinguished_name=dn\nx509_extensions=ext\n[dn]\n[ext]\n\
    subjectAltName=IP:127.0.0.1\nbasicConstraints=CA:FALSE\n";

pub(super) struct Secured {
    pub(super) manager: Manager,
    pub(super) port: u16,
    pub(super) pod: Pod,
}

impl Secured {
    /// Starts it with these further options; `change` may wrap the command.
    pub(super) fn start(options: &[&str], change: impl FnOnce(Command) -> Command) -> Self {
        let pod = Pod::new();
        let path = |name: &str| pod.path(name).display().to_string();
        pod.write("extensions", EXTENSIONS);
        pod.write("jwt", &"k".repeat(64));
        let mut openssl = Command::new("openssl");
        openssl.args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]);
        openssl.args(["-subj", "/CN=stayput", "-config", &path("extensions")]);
        let made = finish(openssl.args(["-keyout", &path("key.pem"), "-out", &path("cert.pem")]));
        assert_eq!(made.code, 0, "{}", made.stderr);
        let own = [
            "--listen",
            "127.0.0.1:0",
            "--tls-cert",
            &path("cert.pem"),
            "--tls-key",
            &path("key.pem"),
            "--jwt-key",
            &path("jwt"),
            "--jwt-audience",
            "crowd",
        ];
        let options: Vec<&str> = own.iter().chain(options).copied().collect();
        let manager = pod.spawn(&mut change(pod.command(&options, &["sleep", "600"])));
        manager.until("ready", |status| status["ready"] == true);
        let port = manager.port();
        Self { manager, port, pod }
    }

    pub(super) fn certificate(&self) -> PathBuf {
        self.pod.path("cert.pem")
    }

    /// The status that curl with these options gets for a path of the API; 000 without an answer.
    pub(super) fn curl(&self, options: &[&str], path: &str) -> String {
        let mut curl = Command::new("curl");
        curl.args(["-sS", "-o", "/dev/null", "-w", "%{http_code}", "--cacert"]);
        curl.arg(self.certificate()).args(options);
        finish(curl.arg(format!("https://127.0.0.1:{}{path}", self.port))).stdout
    }

    /// How many descriptors the manager has open.
    pub(super) fn descriptors(&self) -> usize {
        fs::read_dir(format!("/proc/{}/fd", self.manager.pid())).expect("a process").count()
    }
}
