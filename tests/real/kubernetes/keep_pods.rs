//! `deploy/keep-pods` on a real apiserver: who can delete which pod, and what a refusal says.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::support::kubernetes::apiserver::ApiServer;
use crate::support::kubernetes::kubectl::Kubectl;
use crate::support::skip;
use crate::support::wait::eventually;

const ECK: &str = "system:serviceaccount:elastic-system:elastic-operator";
const OURS: &str = "system:serviceaccount:stayput:stayput-reconciler";
const PODS: [&str; 3] = ["logs-es-default-0", "logs-es-default-1", "logs-es-default-2"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).into()
}

#[test] // proves UPDATE-89, UPDATE-90
fn nobody_named_deletes_a_labelled_pod() {
    let server = match ApiServer::start() {
        Ok(server) => server,
        Err(why) => {
            return skip("kubernetes::keep_pods::nobody_named_deletes_a_labelled_pod", &why);
        }
    };
    let admin = server.admin();
    admin.run(&["create", "namespace", "search"]);
    for name in PODS {
        admin.apply(&json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": name,
                "namespace": "search",
                "labels": { "elasticsearch.k8s.elastic.co/cluster-name": "logs" },
            },
            "spec": { "containers": [{ "name": "elasticsearch", "image": "engine:1" }] },
        }));
    }
    // No refusal below is one of a role.
    let roles = ["create", "clusterrolebinding", "everybody", "--clusterrole=cluster-admin"];
    admin.run(&[&roles[..], &["--group=system:authenticated"]].concat());

    let commands = commands();
    let [install, label, check, release] = commands.each_ref().map(Vec::as_slice);
    eventually("the role counts, and nothing keeps the pod yet", || type_in(admin, check).ok());
    type_in(admin, install).expect("a policy");
    type_in(admin, label).expect("labels of living pods");
    let why = eventually("the policy counts", || type_in(admin, check).err());
    says_what_to_do(&why, ECK);

    others_are_not_kept(admin);
    no_request_goes_past_the_label(admin);
    people_can_be_named(&server);
    our_own_deletion_is_refused_before_a_stop(admin);

    type_in(admin, release).expect("the label goes");
    deletes(admin, ECK, PODS[0]).expect("the label is gone");
    deletes(admin, ECK, PODS[1]).expect_err("this one has its label");
}

/// The commands under "Pods that nobody deletes" of `docs/operators.md`, word by word.
fn commands() -> [Vec<String>; 4] {
    let document = fs::read_to_string(root().join("docs/operators.md")).expect("a document");
    let heading = "\n### Pods that nobody deletes\n";
    let (_, section) = document.split_once(heading).expect("the section");
    let section = section.split("\n#").next().expect("its text");
    let blocks = section.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next());
    let lines = blocks.flat_map(str::lines).map(|line| {
        let words = line.strip_prefix("kubectl ").expect("a command of kubectl");
        words.split_whitespace().map(str::to_owned).collect()
    });
    let lines: Vec<Vec<String>> = lines.collect();
    lines.try_into().expect("four commands")
}

fn type_in(kubectl: &Kubectl, words: &[String]) -> Result<String, String> {
    kubectl.attempt(&words.iter().map(String::as_str).collect::<Vec<_>>(), "")
}

/// Tries to delete a pod; it stays.
fn deletes(kubectl: &Kubectl, user: &str, pod: &str) -> Result<String, String> {
    let line = ["--namespace", "search", "delete", "pod", pod, "--dry-run=server", "--as", user];
    kubectl.attempt(&line, "")
}

/// A refusal names the user, the label, and the command that takes it away.
#[track_caller]
fn says_what_to_do(why: &str, user: &str) {
    let remedy = "kubectl --namespace search label pod logs-es-default-0 stayput.dev/keep-pod-";
    for part in ["is forbidden: ", user, "stayput restarts them in place", remedy] {
        assert!(why.contains(part), "{part}: {why}");
    }
    // The reconciler tells it from a role that it lacks.
    assert!(why.contains("ValidatingAdmissionPolicy") && !why.contains(" cannot "), "{why}");
}

/// Whoever is not named, and pods that are not kept.
fn others_are_not_kept(admin: &Kubectl) {
    let system = ["statefulset-controller", "generic-garbage-collector", "pod-garbage-collector"];
    let system = system.map(|name| format!("system:serviceaccount:kube-system:{name}"));
    for user in system.iter().map(String::as_str).chain(["alice", OURS]) {
        deletes(admin, user, PODS[0]).unwrap_or_else(|why| panic!("{user}: {why}"));
    }
    let set = |label: &str| {
        let line = ["--namespace", "search", "label", "pod", PODS[1], "--overwrite", label];
        admin.run(&line);
    };
    for label in ["stayput.dev/keep-pod=false", "stayput.dev/keep-pod-"] {
        set(label);
        deletes(admin, ECK, PODS[1]).unwrap_or_else(|why| panic!("{label}: {why}"));
    }
    set("stayput.dev/keep-pod=true");
    // A pod that is being deleted: nothing of it can be kept.
    let finalizers = |value: serde_json::Value| {
        let patch = json!({"metadata": {"finalizers": value}}).to_string();
        let line = ["--namespace", "search", "patch", "pod", PODS[2], "--type=merge", "--patch"];
        admin.run(&[&line[..], &[&patch]].concat());
    };
    finalizers(json!(["stayput.test/kept"]));
    admin.run(&["--namespace", "search", "delete", "pod", PODS[2], "--wait=false"]);
    deletes(admin, ECK, PODS[2]).expect("somebody has deleted it already");
    finalizers(json!(null));
}

/// Requests for many pods are refused, too; an eviction is none of them.
fn no_request_goes_past_the_label(admin: &Kubectl) {
    for user in [
        ECK,
        "system:serviceaccount:opensearch-operator-system:opensearch-operator",
        "system:serviceaccount:opensearch-operator-system:opensearch-operator-controller-manager",
    ] {
        says_what_to_do(&deletes(admin, user, PODS[0]).expect_err("it is kept"), user);
    }
    let all = "/api/v1/namespaces/search/pods?dryRun=All&labelSelector=stayput.dev%2Fkeep-pod";
    let collection = |user: &str| admin.attempt(&["delete", "--raw", all, "--as", user], "");
    let why = collection(ECK).expect_err("each of them is kept");
    assert!(why.contains("stayput-keep-pods"), "{why}");
    collection("alice").expect("she is not named");
    let eviction = json!({
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": { "name": PODS[0], "namespace": "search" },
        "deleteOptions": { "dryRun": ["All"] },
    });
    let path = format!("/api/v1/namespaces/search/pods/{}/eviction", PODS[0]);
    let evict = ["create", "--raw", &path, "--filename", "-", "--as", ECK];
    admin.attempt(&evict, &eviction.to_string()).expect("only a budget limits evictions");
}

/// Applies the policy with another name in its list.
fn name_in_place_of_eck(admin: &Kubectl, name: &str) {
    let file = root().join("deploy/keep-pods/admission-policy.yaml");
    let policy = fs::read_to_string(file).expect("a file");
    let eck = "system:serviceaccounts:elastic-system";
    assert!(policy.contains(eck), "{policy}");
    admin.attempt(&["apply", "--filename", "-"], &policy.replace(eck, name)).expect("a policy");
}

/// A tired hand is held back by its own name or by that of its group.
fn people_can_be_named(server: &ApiServer) {
    let alice = server.user("alice", "search-team");
    let line = ["--namespace", "search", "delete", "pod", PODS[0], "--dry-run=server"];
    let delete = || alice.attempt(&line, "");
    for name in ["alice", "search-team"] {
        name_in_place_of_eck(server.admin(), name);
        says_what_to_do(&eventually("she is named", || delete().err()), "alice");
        name_in_place_of_eck(server.admin(), "nobody");
        eventually("she is not named", || delete().ok());
    }
}

/// The reconciler asks the same before it stops a node. `tests/it/reconciler/templates/forbidden.rs` shows
/// what it makes of the answer.
fn our_own_deletion_is_refused_before_a_stop(admin: &Kubectl) {
    name_in_place_of_eck(admin, OURS);
    let why = eventually("it is named", || deletes(admin, OURS, PODS[0]).err());
    says_what_to_do(&why, OURS);
    admin.run(&["apply", "--kustomize", "deploy/keep-pods"]);
    eventually("the usual list counts", || deletes(admin, ECK, PODS[0]).err());
}
