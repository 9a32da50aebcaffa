//! What belongs to a SearchCluster that is taken out of our hands stays, by the real garbage collector:
//! with `detach`, and by the way out that `detach` prints for a declared cluster. No reconciler runs: the
//! objects are made here, with the owner that it gives them.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::kubernetes::kubectl::Kubectl;
use crate::support::wait::eventually;

/// In the namespace `search`.
pub(super) fn stay(admin: &Kubectl) {
    let definition = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/base/crd.yaml");
    // It may be there already, from the Helm chart.
    admin.run(&[
        "apply",
        "--server-side",
        "--force-conflicts",
        "-f",
        definition.to_str().expect("UTF-8"),
    ]);
    let example = "examples/kubernetes/declared-laptop.yaml";
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join(example);
    admin.run(&["-n", "search", "apply", "-f", example.to_str().expect("UTF-8")]);
    owned(admin, "logs");
    let refused = detach(admin, "logs").expect_err("it is declared");
    let way_out = "kubectl -n search delete searchcluster logs --cascade=orphan";
    assert!(refused.contains(&format!("`{way_out}`")), "{refused}");
    let words: Vec<&str> = way_out.split(' ').skip(1).collect();
    admin.run(&words);
    remains(admin, "logs");

    attached(admin, "others");
    owned(admin, "others");
    detach(admin, "others").expect("no restart is under way");
    remains(admin, "others");

    // Without that, the garbage collector does take it.
    attached(admin, "lost");
    owned(admin, "lost");
    admin.run(&["-n", "search", "delete", "searchcluster", "lost"]);
    eventually("it is gone with its owner", || {
        admin.attempt(&["-n", "search", "get", "configmap", "lost"], "").err()
    });
}

fn attached(admin: &Kubectl, name: &str) {
    admin.apply(&json!({
        "apiVersion": "stayput.dev/v1alpha1", "kind": "SearchCluster",
        "metadata": {"name": name, "namespace": "search"},
        "spec": {
            "pods": {"selector": {"matchLabels": {"app": name}}},
            "engine": {"scheme": "http"},
            "manager": {"caSecret": "ca", "auth": {"serviceAccountToken": {}}},
        },
    }));
}

fn get(admin: &Kubectl, kind: &str, name: &str) -> Value {
    admin.json(&["-n", "search", "get", kind, name])
}

/// A StatefulSet without pods, and a ConfigMap, of which the garbage collector knows.
fn owned(admin: &Kubectl, name: &str) {
    let uid = get(admin, "searchcluster", name)["metadata"]["uid"].take();
    objects(admin, name, name, &uid);
    // The collector takes these, whose owner never was, and it sees objects of one kind in their order.
    let seen = format!("{name}-seen");
    objects(admin, &seen, name, &json!("00000000-0000-4000-8000-000000000000"));
    for kind in ["statefulset", "configmap"] {
        eventually("the collector has seen all", || {
            admin.attempt(&["-n", "search", "get", kind, &seen], "").err()
        });
    }
}

fn objects(admin: &Kubectl, name: &str, owner: &str, uid: &Value) {
    let owner = json!([{
        "apiVersion": "stayput.dev/v1alpha1", "kind": "SearchCluster", "name": owner, "uid": uid,
        "controller": true, "blockOwnerDeletion": true,
    }]);
    let metadata = json!({"name": name, "namespace": "search", "ownerReferences": owner});
    admin.apply(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}));
    admin.apply(&json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": metadata,
        "spec": {
            "replicas": 0, "serviceName": name,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "engine", "image": "engine"}]},
            },
        },
    }));
}

/// The SearchCluster is gone, and nothing else.
fn remains(admin: &Kubectl, name: &str) {
    eventually("the SearchCluster is gone", || {
        admin.attempt(&["-n", "search", "get", "searchcluster", name], "").err()
    });
    // The collector takes off owners that are gone; what it was to delete would be marked by then.
    for kind in ["statefulset", "configmap"] {
        let metadata = get(admin, kind, name)["metadata"].take();
        assert!(metadata.get("ownerReferences").is_none(), "{kind}: {metadata:#}");
        assert!(metadata.get("deletionTimestamp").is_none(), "{kind}: {metadata:#}");
    }
}

/// Its output, or its error.
fn detach(admin: &Kubectl, name: &str) -> Result<String, String> {
    let output = Command::new(env!("CARGO_BIN_EXE_kubectl-stayput"))
        .args(["--namespace", "search", "detach", name, "--yes"])
        .env("KUBECONFIG", admin.kubeconfig())
        .output()
        .expect("kubectl-stayput can be executed");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    if output.status.success() { Ok(text(output.stdout)) } else { Err(text(output.stderr)) }
}
