//! Asks engines with TLS and a password.

use std::process::Command;

use serde_json::Value;

/// A client of engines whose certificate has one name.
pub(super) struct TlsClient {
    authority: tempfile::NamedTempFile,
    name: &'static str,
    user: String,
    addresses: Vec<String>,
}

impl TlsClient {
    /// As the user `elastic`; `authority` is the CA of the certificate for `name`.
    pub(super) fn new(
        name: &'static str,
        authority: &str,
        password: &str,
        addresses: impl IntoIterator<Item = String>,
    ) -> Self {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), authority).expect("a file");
        let (user, addresses) = (format!("elastic:{password}"), addresses.into_iter().collect());
        Self { authority: file, name, user, addresses }
    }

    fn curl(&self, address: &str, target: &str, more: &[&str]) -> Result<String, String> {
        let name = self.name;
        let output = Command::new("curl")
            .args(["--silent", "--show-error", "--max-time", "30", "--cacert"])
            .arg(self.authority.path())
            .args(["--resolve", &format!("{name}:9200:{address}")])
            .args(more)
            .arg(format!("https://{name}:9200/{target}"))
            .output()
            .expect("curl can be executed");
        if output.status.success() {
            Ok(String::from_utf8(output.stdout).expect("UTF-8"))
        } else {
            Err(String::from_utf8_lossy(&output.stderr).trim().to_owned())
        }
    }

    /// The answer of the first node that has one; none if no node answers with success.
    pub(super) fn ask(&self, method: &str, target: &str, body: Option<&Value>) -> Option<Value> {
        let body = body.map(Value::to_string);
        let mut line = vec!["--fail", "--user", &self.user, "--request", method];
        if let Some(body) = &body {
            line.extend(["--header", "content-type: application/json", "--data", body]);
        }
        let mut answer = Err("no address".to_owned());
        for address in &self.addresses {
            answer = answer.or_else(|_| self.curl(address, target, &line));
        }
        let answer = answer.inspect_err(|why| println!("{target}: {why}")).ok()?;
        Some(serde_json::from_str(&answer).expect("JSON"))
    }

    /// The code of the first node's answer to a client without a password.
    pub(super) fn status_without_a_password(&self) -> String {
        let line = ["--output", "/dev/null", "--write-out", "%{http_code}"];
        self.curl(&self.addresses[0], "_cluster/health", &line).expect("an answer")
    }
}
