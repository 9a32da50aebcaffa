//! What we write for operators, against the definitions that they install. The apiserver checks fields and
//! types; `eck.rs` has what ECK itself makes of it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

use crate::support::kubernetes::apiserver::part;
use crate::support::kubernetes::kubectl::Kubectl;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).into()
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Rights of the reconciler on the objects of operators, whose kinds this apiserver does not know: `auth can-i` would
/// leave out their group.
pub(super) fn are_read_and_not_written(admin: &Kubectl) {
    for (group, resource) in [
        ("elasticsearch.k8s.elastic.co", "elasticsearches"),
        ("opensearch.org", "opensearchclusters"),
        ("opensearch.opster.io", "opensearchclusters"),
    ] {
        for verb in ["get", "watch", "list", "patch", "update", "delete"] {
            let asked = json!({
                "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
                "spec": {
                    "user": "system:serviceaccount:stayput:stayput-reconciler",
                    "resourceAttributes": {
                        "namespace": "search", "verb": verb, "group": group, "resource": resource,
                    },
                },
            });
            let create = ["create", "--filename", "-", "--output", "jsonpath={.status.allowed}"];
            let allowed = admin.attempt(&create, &asked.to_string()).expect("an answer");
            assert_eq!(allowed == "true", ["get", "watch"].contains(&verb), "{verb} {resource}");
        }
    }
}

/// `Err` names what is missing here. Needs the namespaces `stayput` and `search`.
pub(super) fn take_what_we_write(admin: &Kubectl) -> Result<(), String> {
    let definitions = part("STAYPUT_CRDS")?;
    for file in ["eck.yaml", "podmonitors.yaml", "prometheusrules.yaml"] {
        let file = definitions.join(file);
        // Too large for the annotation that a client-side apply writes.
        admin.run(&["apply", "--server-side", "--filename", file.to_str().expect("UTF-8")]);
    }
    for name in [
        "elasticsearches.elasticsearch.k8s.elastic.co",
        "podmonitors.monitoring.coreos.com",
        "prometheusrules.monitoring.coreos.com",
    ] {
        let name = format!("customresourcedefinition/{name}");
        admin.run(&["wait", "--for=condition=Established", "--timeout=60s", &name]);
    }
    eck(admin);
    prometheus(admin);
    Ok(())
}

fn apply(admin: &Kubectl, manifest: &str) -> Result<String, String> {
    let strictly = ["apply", "--validate=strict", "--warnings-as-errors", "--filename", "-"];
    admin.attempt(&strictly, manifest)
}

#[track_caller]
fn is_taken(admin: &Kubectl, manifest: &str) {
    apply(admin, manifest).unwrap_or_else(|why| panic!("{why}\n{manifest}"));
}

/// That the definitions are those of the operator: a field that it does not have is refused.
#[track_caller]
fn is_refused(admin: &Kubectl, manifest: &str, [field, wrong]: [&str; 2]) {
    assert!(manifest.contains(field), "{manifest}");
    let why = apply(admin, &manifest.replace(field, wrong)).expect_err("an unknown field");
    assert!(why.contains("unknown field"), "{why}");
}

/// The example of an Elasticsearch that has the manager.
pub(super) fn example() -> String {
    text(&root().join("examples/kubernetes/eck.yaml"))
}

fn plain() -> PathBuf {
    root().join("src/inject/tests/manifests/eck.yaml")
}

/// An Elasticsearch into which `inject` has put the manager.
pub(super) fn injected() -> String {
    let mut inject = Command::new(env!("CARGO_BIN_EXE_kubectl-stayput"));
    let output = inject.args(["inject", "--open-metrics"]).arg(plain()).output();
    let output = output.expect("it can be executed");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

fn eck(admin: &Kubectl) {
    let injected = injected();
    is_taken(admin, &text(&plain()));
    is_taken(admin, &injected);
    is_refused(admin, &injected, ["podTemplate:", "podTemplates:"]);
    is_taken(admin, &example());
    let get = ["get", "elasticsearch", "logs", "--namespace", "search"];
    let logs = admin.json(&get);
    let container = &logs["spec"]["nodeSets"][0]["podTemplate"]["spec"]["containers"][0];
    assert_eq!(container["command"][0], "/stayput/stayput", "{logs:#}");
}

fn prometheus(admin: &Kubectl) {
    let folder = root().join("deploy/monitoring");
    let kustomized = admin.run(&["kustomize", folder.to_str().expect("UTF-8")]);
    is_taken(admin, &kustomized);
    is_refused(admin, &kustomized, ["expr:", "expression:"]);
    let managers = text(&folder.join("example/managers.yaml"));
    is_taken(admin, &managers);
    is_refused(admin, &managers, ["tlsConfig:", "tls:"]);
    // Pods that name no port of ours.
    let document = text(&root().join("docs/monitoring.md"));
    let (_, rest) = document.split_once("```yaml\n").expect("a block");
    let (relabelings, _) = rest.split_once("```").expect("its end");
    let other = managers.replace("port: stayput", "port: http");
    is_taken(admin, &(other + relabelings));
}
