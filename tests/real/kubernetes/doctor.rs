//! `kubectl stayput doctor` on a real apiserver: what it reads of the installation, and what the
//! apiserver's own authorisation, defaults and answers make of it. No kubelet and no reconciler runs.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use stayput_kube_access::cluster::missing_fields;

use super::install::can;
use crate::support::kubernetes::apiserver::ApiServer;
use crate::support::kubernetes::kubectl::Kubectl;
use crate::support::skip;
use crate::support::wait::eventually;

/// The exit code, and the severity by code and object.
fn doctor(admin: &Kubectl) -> (i32, BTreeMap<String, String>) {
    let (code, printed) = run(admin, &["-o", "json"]);
    let printed: Value = serde_json::from_slice(&printed).expect("JSON");
    let findings = printed["clusters"][0]["findings"].as_array().expect("a list").iter();
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let findings = findings.map(|finding| {
        println!("{finding:#}");
        (
            format!("{} {}", text(&finding["code"]), text(&finding["object"])),
            text(&finding["severity"]),
        )
    });
    (code, findings.collect())
}

/// The exit code, and what is printed.
fn run(admin: &Kubectl, options: &[&str]) -> (i32, Vec<u8>) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kubectl-stayput"));
    command.env("KUBECONFIG", admin.kubeconfig());
    // Nobody answers there.
    command.args(["doctor", "logs", "-n", "search", "--reconciler", "http://127.0.0.1:1"]);
    let output = command.args(options).output().expect("it can be run");
    (output.status.code().expect("it ends by itself"), output.stdout)
}

/// What the apiserver publishes of the definition has each field, as a reconciler reads it at its start.
fn published(admin: &Kubectl) {
    let path = "/openapi/v3/apis/stayput.dev/v1alpha1";
    let schema = eventually("the definition is published", || {
        let text = admin.attempt(&["get", "--raw", path], "").ok()?;
        let document: Value = serde_json::from_str(&text).ok()?;
        let is_it = |schema: &&Value| {
            schema["x-kubernetes-group-version-kind"][0]["kind"] == "SearchCluster"
        };
        document["components"]["schemas"].as_object()?.values().find(is_it).cloned()
    });
    assert_eq!(missing_fields([&schema]), None);
}

#[test] // proves DOCTOR-1, DOCTOR-5
fn a_good_installation_and_a_broken_one() {
    let server = match ApiServer::start() {
        Ok(server) => server,
        Err(why) => return skip("kubernetes::doctor::a_good_installation_and_a_broken_one", &why),
    };
    let admin = server.admin();
    let deploy = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy");
    let path = |name: &str| deploy.join(name).to_str().expect("UTF-8").to_owned();
    admin.run(&["apply", "-k", &path("")]);
    let definition = "customresourcedefinition/searchclusters.stayput.dev";
    admin.run(&["wait", "--for=condition=Established", "--timeout=60s", definition]);
    published(admin);
    admin.run(&["create", "namespace", "search"]);
    // Its controller does not run.
    admin.run(&["create", "serviceaccount", "default", "--namespace", "search"]);
    admin.run(&["apply", "-f", &path("example/searchcluster.yaml")]);
    // As `init` gives them.
    let rights =
        ["--clusterrole=stayput-reconciler", "--serviceaccount=stayput:stayput-reconciler"];
    let binding = ["create", "rolebinding", "stayput-clusters", "--namespace", "search"];
    admin.run(&[&binding[..], &rights].concat());
    // The authorizer uses a watch, so it may not have seen the bindings yet.
    let rights = ["watch searchclusters.stayput.dev", "get secrets"];
    eventually("the bindings count", || {
        rights.iter().all(|right| can(admin, right, "search")).then_some(())
    });
    let (code, good) = doctor(admin);
    assert_eq!(code, 1);
    // What is missing is said: reconciler, pods, the CAs that the example names.
    for (finding, severity) in [
        ("leader Lease/stayput-reconciler", "error"),
        ("reconciler Deployment/stayput-reconciler", "error"),
        ("no_pods SearchCluster/logs", "error"),
        ("not_processed SearchCluster/logs", "error"),
        ("no_snapshot SearchCluster/logs", "unknown"),
    ] {
        assert_eq!(good.get(finding).map(String::as_str), Some(severity), "{finding}: {good:#?}");
    }
    // The definition as the apiserver gives it back, the roles and the policies are right.
    let is_wrong = |finding: &String| {
        ["definition", "rights", "network", "clock", "version", "budget", "invalid_spec"]
            .iter()
            .any(|code| finding.starts_with(&format!("{code} ")))
    };
    let wrong: Vec<&String> = good.keys().filter(|finding| is_wrong(finding)).collect();
    assert!(wrong.is_empty(), "{wrong:?}");

    admin.run(&["delete", "rolebinding", "stayput-clusters", "--namespace", "search"]);
    eventually("the binding is gone", || (!can(admin, "get secrets", "search")).then_some(()));
    let old = json!([{"op": "remove", "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/\
                      properties/stopped"}]);
    admin.run(&["patch", definition, "--type=json", "--patch", &old.to_string()]);
    admin.apply(&json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "logs-0", "namespace": "search", "labels": {"app": "logs"}},
        "spec": {"containers": [{"name": "opensearch", "image": "opensearchproject/opensearch:2.19.3"}]},
    }));
    admin.apply(&json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy",
        "metadata": {"name": "closed", "namespace": "search"},
        "spec": {"podSelector": {}, "policyTypes": ["Ingress"]},
    }));
    let (code, broken) = doctor(admin);
    assert_eq!(code, 1);
    for finding in [
        "rights ServiceAccount/stayput-reconciler",
        "definition CustomResourceDefinition/searchclusters.stayput.dev",
        "network NetworkPolicy/closed",
        "no_manager Pod/logs-0",
    ] {
        assert_eq!(
            broken.get(finding).map(String::as_str),
            Some("error"),
            "{finding}: {broken:#?}"
        );
    }
    let page = String::from_utf8(run(admin, &[]).1).expect("UTF-8");
    assert!(page.contains("create rolebinding stayput-clusters"), "{page}");
}
