//! PodSecurity `restricted`, as the apiserver checks it, of pods that `inject` has changed.

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::support::kubernetes::kubectl::Kubectl;

const LOCKED: &str = "allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}";
const NON_ROOT: &str = "runAsNonRoot: true";
const PROFILE: &str = "seccompProfile: {type: RuntimeDefault}";

/// What the whole pod says, and what the engine's container says.
fn manifest(pod: &str, container: &str) -> String {
    format!(
        "apiVersion: apps/v1
kind: StatefulSet
metadata: {{name: logs}}
spec:
  serviceName: logs
  selector: {{matchLabels: {{app: logs}}}}
  template:
    metadata: {{labels: {{app: logs}}}}
    spec:
      securityContext: {{{pod}}}
      containers:
        - name: opensearch
          image: opensearchproject/opensearch:3.2.0
          securityContext: {{{container}}}
          volumeMounts:
            - {{name: config, mountPath: /usr/share/opensearch/config/opensearch.yml, subPath: opensearch.yml}}
      volumes:
        - name: config
          secret: {{secretName: logs-config}}
"
    )
}

fn inject(manifest: &str, options: &[&str]) -> String {
    let mut child = Command::new(env!("CARGO_BIN_EXE_kubectl-stayput"))
        .arg("inject")
        .args(options)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it can be executed");
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin.write_all(manifest.as_bytes()).expect("it is read");
    drop(stdin);
    let output = child.wait_with_output().expect("its end");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// Whether the namespace, which enforces `restricted`, accepts a pod of this StatefulSet.
fn accepted(admin: &Kubectl, manifest: &str) -> Result<String, String> {
    let read = ["create", "--dry-run=client", "--output", "json", "--filename", "-"];
    let set = admin.attempt(&read, manifest)?;
    let set: Value = serde_json::from_str(&set).map_err(|error| error.to_string())?;
    let pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "logs-0", "namespace": "stayput"},
        "spec": set["spec"]["template"]["spec"],
    });
    let dry = ["create", "--dry-run=server", "--warnings-as-errors", "--filename", "-"];
    admin.attempt(&dry, &pod.to_string())
}

pub(super) fn pods_stay_restricted(admin: &Kubectl) {
    for (pod, container) in [
        (format!("{NON_ROOT}, {PROFILE}"), LOCKED.to_owned()),
        (PROFILE.to_owned(), format!("{LOCKED}, {NON_ROOT}")),
        (NON_ROOT.to_owned(), format!("{LOCKED}, {PROFILE}, runAsUser: 1000")),
        (String::new(), format!("{LOCKED}, {NON_ROOT}, {PROFILE}")),
    ] {
        let manifest = manifest(&pod, &container);
        accepted(admin, &manifest).expect("it is restricted before");
        for options in [&[][..], &["--assigned-user"], &["--warm", "--open-metrics"]] {
            let injected = inject(&manifest, options);
            accepted(admin, &injected).unwrap_or_else(|why| panic!("{why}\n{injected}"));
        }
    }
    let loose = manifest(NON_ROOT, LOCKED);
    let refused = accepted(admin, &inject(&loose, &[])).expect_err("no profile");
    assert!(refused.contains("violates PodSecurity"), "{refused}");
}
