//! curl as a client: over TLS with a token, over the socket without both.

use std::path::Path;
use std::process::Command;

use super::http::Answer;

/// How curl reaches a manager.
#[derive(Debug, Clone)]
pub(crate) struct Curl {
    options: Vec<String>,
    base: String,
}

impl Curl {
    /// Over TLS, trusting `ca`.
    pub(crate) fn tls(port: u16, ca: &Path) -> Self {
        let options = ["--cacert", ca.to_str().expect("UTF-8")].map(str::to_owned).into();
        Self { options, base: format!("https://localhost:{port}") }
    }

    /// The same at another address than the one in the certificate.
    pub(crate) fn tls_at(address: &str, port: u16, ca: &Path) -> Self {
        let mut curl = Self::tls(port, ca);
        let way = format!("localhost:{port}:{address}:{port}");
        curl.options.extend(["--connect-to".to_owned(), way]);
        curl
    }

    /// In plain text at loopback.
    pub(crate) fn plain(port: u16) -> Self {
        Self { options: vec![], base: format!("http://127.0.0.1:{port}") }
    }

    /// Over the socket.
    pub(crate) fn socket(path: &Path) -> Self {
        let options = ["--unix-socket", path.to_str().expect("UTF-8")].map(str::to_owned).into();
        Self { options, base: "http://localhost".to_owned() }
    }

    /// The same with a token.
    pub(crate) fn bearer(&self, token: &str) -> Self {
        let mut curl = self.clone();
        curl.options.extend(["-H".to_owned(), format!("Authorization: Bearer {token}")]);
        curl
    }

    #[track_caller]
    pub(crate) fn get(&self, target: &str) -> Answer {
        self.run(target, &[])
    }

    #[track_caller]
    pub(crate) fn post(&self, target: &str, body: &str) -> Answer {
        self.run(target, &["--json", body])
    }

    #[track_caller]
    pub(crate) fn run(&self, target: &str, more: &[&str]) -> Answer {
        let output = Command::new("curl")
            .args([
                "--silent",
                "--show-error",
                "--max-time",
                "360",
                "--write-out",
                "\n%{http_code}",
            ])
            .args(&self.options)
            .args(more)
            .arg(format!("{}{target}", self.base))
            .output()
            .expect("curl can be executed");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "curl {target}: {errors}");
        let text = String::from_utf8(output.stdout).expect("UTF-8");
        let (body, code) = text.rsplit_once('\n').expect("a code");
        let body = serde_json::from_str(body).unwrap_or_else(|_| body.into());
        Answer { status: code.parse().expect("a number"), body }
    }
}
