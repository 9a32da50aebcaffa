//! `deploy/` on a real apiserver: taken without a warning, and what it may do is what it needs.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::support::kubernetes::apiserver::ApiServer;
use crate::support::kubernetes::kubectl::Kubectl;
use crate::support::skip::skip;
use crate::support::wait::eventually;

fn deploy() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy")
}

fn applied(kubectl: &Kubectl, option: &str, path: &Path) -> String {
    let path = path.to_str().expect("a path in UTF-8");
    // A warning is what people would see, and wonder about.
    kubectl.run(&["apply", "--warnings-as-errors", option, path])
}

#[test]
fn installed_with_one_command() {
    let server = match ApiServer::start() {
        Ok(server) => server,
        Err(why) => return skip("kubernetes::install::installed_with_one_command", &why),
    };
    let admin = server.admin();
    applied(admin, "-k", &deploy());
    let name = "customresourcedefinition/searchclusters.stayput.dev";
    admin.run(&["wait", "--for=condition=Established", "--timeout=60s", name]);
    let again = applied(admin, "-k", &deploy());
    assert!(again.lines().all(|line| line.ends_with("unchanged")), "{again}");
    the_pods_are_restricted(admin);
    it_may_do_what_it_needs_and_no_more(admin);
    in_one_namespace(admin);
    the_example(admin);
    super::crd::bad_objects_are_refused_with_field_and_remedy(admin);
    super::crd::what_is_left_out_has_defaults(admin);
    super::crd::status_and_spec_are_apart(admin);
    super::crd::the_list_says_what_is_happening(admin);
}

/// The namespace enforces PodSecurity `restricted`: a pod from the template is let in.
fn the_pods_are_restricted(admin: &Kubectl) {
    let get = ["get", "deployment", "stayput-reconciler", "--namespace", "stayput"];
    let template = &admin.json(&get)["spec"]["template"];
    let mut pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": template["metadata"],
        "spec": template["spec"],
    });
    pod["metadata"]["name"] = json!("one");
    pod["metadata"]["namespace"] = json!("stayput");
    let dry = ["create", "--dry-run=server", "--warnings-as-errors", "-f", "-"];
    admin.attempt(&dry, &pod.to_string()).expect("a restricted pod");
    pod["spec"]["containers"][0]["securityContext"]["allowPrivilegeEscalation"] = json!(true);
    let refused = admin.attempt(&dry, &pod.to_string()).expect_err("the namespace enforces it");
    assert!(refused.contains("violates PodSecurity"), "{refused}");
}

fn can(admin: &Kubectl, what: &str, namespace: &str) -> bool {
    let account = "--as=system:serviceaccount:stayput:stayput-reconciler";
    let (verb, resource) = what.split_once(' ').expect("a verb and a resource");
    let mut args = vec!["auth", "can-i", verb];
    args.extend(resource.split(' '));
    args.extend(["--namespace", namespace, account]);
    // It ends with 1 for a no; a mistyped resource would only warn.
    admin.attempt(&args, "").is_ok_and(|answer| answer == "yes")
}

const NEEDED: [&str; 12] = [
    "watch searchclusters.stayput.dev",
    "patch searchclusters.stayput.dev",
    "update searchclusters.stayput.dev --subresource=status",
    "get pods",
    "list pods",
    "watch pods",
    "patch pods",
    "get secrets",
    "get configmaps",
    "get statefulsets.apps",
    "create events.events.k8s.io",
    "patch events.events.k8s.io",
];

const NEVER: [&str; 13] = [
    "update searchclusters.stayput.dev",
    "create searchclusters.stayput.dev",
    "delete searchclusters.stayput.dev",
    "create pods",
    "delete pods",
    "create pods --subresource=exec",
    "list secrets",
    "watch secrets",
    "create secrets",
    "patch configmaps",
    "patch statefulsets.apps",
    "create serviceaccounts/other --subresource=token",
    "create rolebindings.rbac.authorization.k8s.io",
];

fn it_may_do_what_it_needs_and_no_more(admin: &Kubectl) {
    // The authorizer watches; it has not always seen the bindings yet.
    eventually("the bindings count", || can(admin, NEEDED[0], "search").then_some(()));
    for what in NEEDED {
        assert!(can(admin, what, "search"), "it may not {what}");
    }
    for what in NEVER {
        assert!(!can(admin, what, "search"), "it may {what}");
    }
    let token = "create serviceaccounts/stayput-reconciler --subresource=token";
    assert!(can(admin, token, "stayput") && !can(admin, token, "search"), "{token}");
    for what in ["create leases", "update leases/stayput-reconciler"] {
        let what = what.replace("leases", "leases.coordination.k8s.io");
        assert!(can(admin, &what, "stayput") && !can(admin, &what, "search"), "{what}");
    }
    assert!(!can(admin, "update leases.coordination.k8s.io/other", "stayput"));
}

/// The same in one namespace alone.
fn in_one_namespace(admin: &Kubectl) {
    for namespace in ["search", "other"] {
        admin.run(&["create", "namespace", namespace]);
    }
    admin.run(&["delete", "clusterrolebinding/stayput-reconciler"]);
    eventually("the binding is gone", || (!can(admin, NEEDED[0], "other")).then_some(()));
    applied(admin, "-k", &deploy().join("namespaced"));
    eventually("the binding counts", || can(admin, NEEDED[0], "search").then_some(()));
    for what in NEEDED {
        assert!(can(admin, what, "search"), "it may not {what}");
        assert!(!can(admin, what, "other"), "it may {what} in another namespace");
    }
    for what in NEVER {
        assert!(!can(admin, what, "search"), "it may {what}");
    }
}

fn the_example(admin: &Kubectl) {
    applied(admin, "-f", &deploy().join("example/searchcluster.yaml"));
    let logs: Value = admin.json(&["get", "scl", "logs", "--namespace", "search"]);
    assert_eq!(logs["spec"]["restart"]["phaseTimeout"], "15m", "{logs:#}");
    let secret = admin.json(&["get", "secret", "logs-admin", "--namespace", "search"]);
    assert_eq!(secret["metadata"]["annotations"][stayput::cluster::ALLOW], "logs");
    admin.run(&["delete", "scl", "logs", "--namespace", "search"]);
}
