//! kubectl with one kubeconfig, as a user of the cluster runs it.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::pki::{Identity, text};

/// A user of a cluster.
#[derive(Debug, Clone)]
pub(crate) struct Kubectl {
    program: PathBuf,
    kubeconfig: PathBuf,
}

impl Kubectl {
    /// With a kubeconfig written to `file`.
    pub(crate) fn new(
        program: &Path,
        file: PathBuf,
        url: &str,
        authority: &Path,
        identity: &Identity,
    ) -> Self {
        // A kubeconfig may be JSON, which is YAML.
        let kubeconfig = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "test",
            "contexts": [{ "name": "test", "context": { "cluster": "test", "user": "test" } }],
            "clusters": [{
                "name": "test",
                "cluster": { "server": url, "certificate-authority": authority },
            }],
            "users": [{
                "name": "test",
                "user": {
                    "client-certificate": identity.certificate,
                    "client-key": identity.key,
                },
            }],
        });
        std::fs::write(&file, kubeconfig.to_string()).expect("a kubeconfig");
        Self { program: program.to_owned(), kubeconfig: file }
    }

    pub(crate) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Its output, or its error.
    pub(crate) fn attempt(&self, args: &[&str], input: &str) -> Result<String, String> {
        // Nothing from the caller's home: its kubeconfig and caches must not be used.
        let home = self.kubeconfig.parent().expect("a directory");
        let mut child = Command::new(&self.program)
            .args(["kubectl", "--kubeconfig", text(&self.kubeconfig)])
            .args(args)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", home)
            // It ends before there is anything to collect.
            .env("GOGC", "off")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("kubectl can be executed");
        let mut stdin = child.stdin.take().expect("a pipe");
        // It may end without reading everything; then its output has the reason.
        let _ = stdin.write_all(input.as_bytes());
        drop(stdin);
        let output = child.wait_with_output().expect("kubectl is ours");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
    }

    #[track_caller]
    pub(crate) fn run(&self, args: &[&str]) -> String {
        self.attempt(args, "").unwrap_or_else(|error| panic!("kubectl {args:?}: {error}"))
    }

    /// The output of `kubectl … -o json`.
    #[track_caller]
    pub(crate) fn json(&self, args: &[&str]) -> Value {
        let printed = self.run(&[args, &["--output", "json"]].concat());
        serde_json::from_str(&printed).unwrap_or_else(|_| panic!("not JSON: {printed}"))
    }

    /// `kubectl apply`, server-side, of an object or a list of them.
    #[track_caller]
    pub(crate) fn apply(&self, object: &Value) {
        let args = ["apply", "--server-side", "--filename", "-"];
        let printed = self.attempt(&args, &object.to_string());
        printed.unwrap_or_else(|error| panic!("kubectl apply: {error}\n{object:#}"));
    }
}
