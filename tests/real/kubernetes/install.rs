//! `deploy/` on a real apiserver: accepted without a warning, and the rights are exactly those
//! needed.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use stayput_restart::annotation;

use super::plain_set::plain_set;
use crate::support::kubernetes::apiserver::ApiServer;
use crate::support::kubernetes::kubectl::Kubectl;
use crate::support::skip;
use crate::support::wait::eventually;

fn deploy() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy")
}

fn applied(kubectl: &Kubectl, option: &str, path: &Path) -> String {
    let path = path.to_str().expect("a path in UTF-8");
    // Users would see a warning.
    kubectl.run(&["apply", "--warnings-as-errors", option, path])
}

#[test] // proves RESTART-4, RESTART-105, RESTART-155, UPDATE-8, UPDATE-54, UPDATE-18, DECLARE-17, MANIFEST-28, MANIFEST-32, MANIFEST-33, OPERATE-12
fn installed_with_one_command() {
    const TEST: &str = "kubernetes::install::installed_with_one_command";
    let Ok(server) = ApiServer::start().map_err(|why| skip(TEST, &why)) else { return };
    let admin = server.admin();
    applied(admin, "-k", &deploy());
    let name = "customresourcedefinition/searchclusters.stayput.dev";
    admin.run(&["wait", "--for=condition=Established", "--timeout=60s", name]);
    let again = applied(admin, "-k", &deploy());
    // The selector of a budget is always replaced as a whole.
    let is_same =
        |line: &str| line.ends_with("unchanged") || line.starts_with("poddisruptionbudget");
    assert!(again.lines().all(is_same), "{again}");
    the_pods_are_restricted(admin);
    a_namespace_gives_it_its_rights(&server);
    it_may_do_what_it_needs_and_no_more(admin);
    super::operators::are_read_and_not_written(admin);
    it_patches_annotations_of_pods_only(admin);
    it_patches_what_an_update_needs_of_pods_of_stateful_sets(admin);
    it_deletes_pods_only_with_a_role_of_its_own(admin);
    people_have_their_roles(admin);
    the_variants_give_the_same_rights(admin);
    the_example(admin);
    the_declared_examples(admin);
    the_patch_fits_a_stateful_set(admin);
    super::certificate_by_hand::follows_the_document(&server);
    super::crd::bad_objects_are_refused_with_field_and_remedy(admin);
    super::crd::some_things_stay_as_they_are(admin);
    super::crd::what_is_left_out_has_defaults(admin);
    super::crd::limits_are_numbers_or_parts(admin);
    super::crd::status_and_spec_are_apart(admin);
    super::crd::the_list_says_what_is_happening(admin);
    super::restricted::pods_stay_restricted(admin);
    if let Err(why) = super::operators::take_what_we_write(admin) {
        skip("kubernetes::operators::take_what_we_write", &why);
    }
    if let Err(why) = super::eck::makes_pods_that_start(&server) {
        skip("kubernetes::eck::makes_pods_that_start", &why);
    }
    if let Err(why) = super::helm::post_rendered(admin) {
        skip("kubernetes::helm::post_rendered", &why);
    }
}

/// A pod from the template.
fn one_pod(admin: &Kubectl) -> Value {
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
    pod
}

/// The namespace enforces PodSecurity `restricted`: a pod from the template is accepted.
fn the_pods_are_restricted(admin: &Kubectl) {
    let mut pod = one_pod(admin);
    let dry = ["create", "--dry-run=server", "--warnings-as-errors", "-f", "-"];
    admin.attempt(&dry, &pod.to_string()).expect("a restricted pod");
    pod["spec"]["containers"][0]["securityContext"]["allowPrivilegeEscalation"] = json!(true);
    let refused = admin.attempt(&dry, &pod.to_string()).expect_err("the namespace enforces it");
    assert!(refused.contains("violates PodSecurity"), "{refused}");
}

pub(super) fn can(admin: &Kubectl, what: &str, namespace: &str) -> bool {
    let account = "--as=system:serviceaccount:stayput:stayput-reconciler";
    let (verb, resource) = what.split_once(' ').expect("a verb and a resource");
    let mut args = vec!["auth", "can-i", verb];
    args.extend(resource.split(' '));
    args.extend(["--namespace", namespace, account]);
    // It exits with 1 for "no"; a mistyped resource would only cause a warning.
    admin.attempt(&args, "").is_ok_and(|answer| answer == "yes")
}

const NEEDED: [&str; 17] = [
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
    "watch statefulsets.apps",
    "get controllerrevisions.apps",
    "patch pods --subresource=resize",
    "list endpointslices.discovery.k8s.io",
    "watch endpointslices.discovery.k8s.io",
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

/// In a namespace that has given it nothing, it only finds SearchClusters and writes what is missing. Who has
/// the role `admin` there gives it the rest, also what that role itself has not.
fn a_namespace_gives_it_its_rights(server: &ApiServer) {
    let admin = server.admin();
    for namespace in ["search", "other"] {
        admin.run(&["create", "namespace", namespace]);
    }
    eventually("the bindings count", || can(admin, NEEDED[0], "search").then_some(()));
    bound_alone(admin, "other");
    let person = ["--namespace=search", "--user=bob", "--clusterrole"];
    // kube-controller-manager, which does not run here, makes `admin` of these two and others.
    for (name, role) in
        [("one", "stayput-searchclusters-admin"), ("two", "system:aggregate-to-admin")]
    {
        admin.run(&[&["create", "rolebinding", name][..], &person, &[role]].concat());
    }
    let bob = server.user("bob", "people");
    let account = "--serviceaccount=stayput:stayput-reconciler";
    let bind = |role: &str| {
        let role = format!("--clusterrole={role}");
        let names = ["create", "rolebinding", "stayput-clusters", &role, account];
        bob.attempt(&[&names[..], &["--namespace=search"]].concat(), "")
    };
    eventually("the binding counts", || bind("stayput-reconciler").ok());
    let refused = bind("cluster-admin").expect_err("bob has less");
    assert!(refused.contains("orbidden"), "{refused}");
    // Pods of below are in this one.
    let role = "--clusterrole=stayput-reconciler";
    let own = ["create", "rolebinding", "stayput-clusters", role, account];
    admin.run(&[&own[..], &["--namespace=stayput"]].concat());
}

/// It finds SearchClusters in this namespace, and may do nothing else there.
fn bound_alone(admin: &Kubectl, namespace: &str) {
    for what in NEEDED {
        let reads_pods = ["get pods", "list pods", "watch pods"].contains(&what);
        let is_needed = reads_pods || what.contains(" searchclusters.");
        assert_eq!(can(admin, what, namespace), is_needed, "{what}");
    }
}

fn it_may_do_what_it_needs_and_no_more(admin: &Kubectl) {
    // The authorizer uses a watch, so it may not have seen the bindings yet.
    eventually("the binding counts", || can(admin, NEEDED[7], "search").then_some(()));
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

/// RBAC alone would let it change labels and images.
fn it_patches_annotations_of_pods_only(admin: &Kubectl) {
    let mut pod = one_pod(admin);
    pod["metadata"]["annotations"] = json!({"theirs": "1", "stayput.dev/nudge": "a"});
    admin.attempt(&["create", "-f", "-"], &pod.to_string()).expect("a pod");
    let account = "--as=system:serviceaccount:stayput:stayput-reconciler";
    let patch = |changed: Value| {
        let patch = changed.to_string();
        let args = ["patch", "pod", "one", "--namespace", "stayput", "--type=merge", account];
        let args = [&args[..], &["--patch", &patch]].concat();
        admin.attempt(&args, "")
    };
    let annotate =
        |key: &str, value: Value| patch(json!({"metadata": {"annotations": {key: value}}}));
    // The apiserver sees a new policy a moment later.
    let mut value = 1;
    let refused = eventually("the policy counts", || {
        // A value that is there already is never refused.
        value += 1;
        annotate("theirs", json!(value.to_string())).err()
    });
    assert!(refused.contains("only its own annotations"), "{refused}");
    for (changed, message) in [
        (json!({"metadata": {"annotations": {"theirs": null}}}), "only its own annotations"),
        (json!({"metadata": {"annotations": {"new": "1"}}}), "only its own annotations"),
        (json!({"metadata": {"annotations": null}}), "only its own annotations"),
        (json!({"metadata": {"labels": {"app.kubernetes.io/name": "x"}}}), "change labels"),
        (json!({"metadata": {"labels": {"controller-revision-hash": "x"}}}), "change labels"),
        (json!({"metadata": {"finalizers": ["x.example/y"]}}), "finalizers or owners"),
        (json!({"spec": {"activeDeadlineSeconds": 1}}), "change the spec"),
    ] {
        let refused = patch(changed.clone()).expect_err("it is refused");
        assert!(refused.contains(message), "{changed}: {refused}");
    }
    for key in [annotation::PHASE, annotation::SHOWN, annotation::LAST_RESTART, annotation::NUDGE] {
        annotate(key, json!("b")).expect("its own");
        annotate(key, json!(null)).expect("its own");
    }
    // Others are not concerned.
    let label = json!({"metadata": {"labels": {"theirs": "2"}}}).to_string();
    admin.run(&["patch", "pod", "one", "--namespace", "stayput", "--type=merge", "-p", &label]);
    admin.run(&["delete", "pod", "one", "--namespace", "stayput", "--grace-period=0", "--force"]);
}

/// A pod that a StatefulSet owns, which was made of the revision `a`, and in which a manager runs.
fn owned_pod(admin: &Kubectl) -> Value {
    let mut pod = without_manager(admin, "owned");
    let uid = json!({"fieldRef": {"fieldPath": "metadata.uid"}});
    pod["spec"]["containers"][0]["env"] = json!([{"name": "STAYPUT_POD_UID", "valueFrom": uid}]);
    pod
}

/// The same pod with no manager in it.
fn without_manager(admin: &Kubectl, name: &str) -> Value {
    let mut pod = one_pod(admin);
    pod["metadata"]["name"] = json!(name);
    pod["metadata"]["labels"]["controller-revision-hash"] = json!("a");
    pod["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "apps/v1", "kind": "StatefulSet", "name": "logs", "uid": "u",
        "controller": true,
    }]);
    pod
}

/// Images, and labels and annotations together with the label of their revision.
fn it_patches_what_an_update_needs_of_pods_of_stateful_sets(admin: &Kubectl) {
    let pod = owned_pod(admin);
    admin.attempt(&["create", "-f", "-"], &pod.to_string()).expect("a pod");
    let account = "--as=system:serviceaccount:stayput:stayput-reconciler";
    let patch = |operations: Value, more: &[&str]| {
        let patch = operations.to_string();
        let args = ["patch", "pod", "owned", "--namespace", "stayput", "--type=json", account];
        admin.attempt(&[&args[..], more, &["--patch", &patch]].concat(), "")
    };
    let set = |path: &str, value: Value| json!({"op": "add", "path": path, "value": value});
    let label = |key: &str| format!("/metadata/labels/{key}");
    let revision = set(&label("controller-revision-hash"), json!("b"));
    let annotation = set("/metadata/annotations", json!({"theirs": "1"}));
    for (refused, message) in [
        (json!([set(&label("tier"), json!("hot"))]), "change labels"),
        (json!([annotation]), "only its own annotations"),
        (json!([revision, set("/spec/activeDeadlineSeconds", json!(9))]), "nothing but images"),
        (
            json!([revision, set("/spec/tolerations/0", json!({"operator": "Exists"}))]),
            "nothing but",
        ),
        (json!([revision, set("/metadata/finalizers", json!(["x.example/y"]))]), "finalizers"),
    ] {
        let why = patch(refused.clone(), &[]).expect_err("it is refused");
        assert!(why.contains(message), "{refused}: {why}");
    }
    patch(json!([set("/spec/containers/0/image", json!("another:2"))]), &[]).expect("an image");
    let all = json!([revision, set(&label("tier"), json!("hot")), annotation]);
    patch(all, &[]).expect("labels and annotations of a revision");
    // The same kind in another group is somebody else's.
    let mut theirs = pod;
    theirs["metadata"]["name"] = json!("theirs");
    theirs["metadata"]["ownerReferences"][0]["apiVersion"] = json!("apps.kruise.io/v1beta1");
    admin.attempt(&["create", "-f", "-"], &theirs.to_string()).expect("a pod");
    let image = json!([set("/spec/containers/0/image", json!("another:2"))]).to_string();
    let of_theirs = ["patch", "pod", "theirs", "--namespace", "stayput", "--type=json", account];
    let why = admin.attempt(&[&of_theirs[..], &["--patch", &image]].concat(), "");
    let why = why.expect_err("it is refused");
    assert!(why.contains("no StatefulSet owns"), "{why}");
    admin.run(&[
        "delete",
        "pod",
        "theirs",
        "--namespace",
        "stayput",
        "--grace-period=0",
        "--force",
    ]);
    let size = json!([set("/spec/containers/0/resources/requests/memory", json!("40Mi"))]);
    let plain = without_manager(admin, "plain");
    admin.attempt(&["create", "-f", "-"], &plain.to_string()).expect("a pod");
    let of_plain = ["patch", "pod", "plain", "--namespace", "stayput", "--type=json", account];
    let why = admin.attempt(&[&of_plain[..], &["--patch", &image]].concat(), "");
    let why = why.expect_err("it is refused");
    assert!(why.contains("no manager runs"), "{why}");
    // kubectl reads what it patches; the reconciler does not, and has no right to.
    let role = ["create", "role", "reader", "--verb=get", "--resource=pods/resize"];
    admin.run(&[&role[..], &["--namespace", "stayput"]].concat());
    let to = ["--role=reader", "--serviceaccount=stayput:stayput-reconciler"];
    let binding = ["create", "rolebinding", "reader", "--namespace", "stayput"];
    admin.run(&[&binding[..], &to].concat());
    eventually("another size", || patch(size.clone(), &["--subresource=resize"]).ok());
    let resize = ["--subresource=resize", "--patch", &size.to_string()];
    let why = admin.attempt(&[&of_plain[..], &resize].concat(), "").expect_err("it is refused");
    assert!(why.contains("no manager runs"), "{why}");
    // Through the same door nothing else goes: the apiserver takes only the size from it.
    let beside = json!([set(&label("tier"), json!("warm"))]);
    drop(patch(beside, &["--subresource=resize"]));
    let read = admin.json(&["get", "pod", "owned", "--namespace", "stayput"]);
    assert_eq!(read["metadata"]["labels"]["tier"], "hot", "{read:#}");
    assert_eq!(read["spec"]["containers"][0]["resources"]["requests"]["memory"], "40Mi");
    admin.run(&["delete", "role,rolebinding", "reader", "--namespace", "stayput"]);
}

/// `deploy/replace` is not a part of `deploy/`.
fn it_deletes_pods_only_with_a_role_of_its_own(admin: &Kubectl) {
    let account = "--as=system:serviceaccount:stayput:stayput-reconciler";
    let delete = |name: &str| {
        let args = ["delete", "pod", name, "--namespace", "stayput", "--wait=false", account];
        admin.attempt(&args, "")
    };
    // What the reconciler asks before it stops a node.
    let try_to_delete = |name: &str| {
        let dry = ["delete", "pod", name, "--namespace", "stayput", "--dry-run=server", account];
        admin.attempt(&dry, "")
    };
    assert!(try_to_delete("owned").expect_err("it has no role").contains("forbidden"));
    assert!(delete("owned").expect_err("it has no role").contains("forbidden"));
    applied(admin, "-k", &deploy().join("replace"));
    eventually("the binding counts", || can(admin, "delete pods", "search").then_some(()));
    admin.attempt(&["create", "-f", "-"], &one_pod(admin).to_string()).expect("a pod");
    let may_not = eventually("the policy counts", || match delete("one") {
        Err(why) => Some(why),
        Ok(_) => {
            admin.attempt(&["create", "-f", "-"], &one_pod(admin).to_string()).expect("a pod");
            None
        }
    });
    assert!(may_not.contains("no StatefulSet owns"), "{may_not}");
    let may_not = try_to_delete("one").expect_err("the policy counts for it, too");
    assert!(may_not.contains("no StatefulSet owns"), "{may_not}");
    // By these words a refusal of admission is told from one of the apiserver's own rules.
    assert!(may_not.contains("ValidatingAdmissionPolicy"), "{may_not}");
    let create = |pod: &Value, dry_run: &[&str]| {
        let args = [&["create", "-f", "-", account], dry_run].concat();
        admin.attempt(&args, &pod.to_string())
    };
    let mut another = one_pod(admin);
    let there = create(&another, &["--dry-run=server"]).expect_err("there is one of its name");
    assert!(there.contains("AlreadyExists"), "{there}");
    another["metadata"]["name"] = "another".into();
    create(&another, &["--dry-run=server"]).expect("it would be taken");
    let delete_another = ["delete", "pod", "another", "--namespace", "stayput", "--now"];
    let may_not = eventually("the policy allows dry runs alone", || match create(&another, &[]) {
        Err(why) => Some(why),
        Ok(_) => {
            admin.run(&delete_another);
            None
        }
    });
    assert!(may_not.contains("creates pods by a dry run only"), "{may_not}");
    another["spec"]["priorityClassName"] = "absent".into();
    let refused = create(&another, &["--dry-run=server"]).expect_err("no such class");
    assert!(refused.contains("absent"), "{refused}");
    // What could refuse a pod is asked before its name.
    another["metadata"]["name"] = "one".into();
    let refused = create(&another, &["--dry-run=server"]).expect_err("no such class");
    assert!(refused.contains("absent"), "{refused}");
    let may_not = try_to_delete("plain").expect_err("no manager runs in it");
    assert!(may_not.contains("no manager runs"), "{may_not}");
    admin.run(&["delete", "pod", "plain", "--namespace", "stayput", "--grace-period=0", "--force"]);
    try_to_delete("owned").expect("it may be deleted");
    delete("owned").expect("a pod of a StatefulSet");
    admin.run(&["delete", "pod", "one", "--namespace", "stayput", "--grace-period=0", "--force"]);
    admin.run(&["delete", "-k", deploy().join("replace").to_str().expect("a path in UTF-8")]);
    eventually("the binding is gone", || (!can(admin, "delete pods", "search")).then_some(()));
}

/// SearchClusters are part of the roles that every namespace's users have: kube-controller-manager
/// combines all roles with these labels.
fn people_have_their_roles(admin: &Kubectl) {
    let may = |role: &str, verb: &str| {
        let label = format!("rbac.authorization.k8s.io/aggregate-to-{role}=true");
        let roles = admin.json(&["get", "clusterroles", "--selector", &label]);
        let roles = roles["items"].as_array().cloned().unwrap_or_default();
        let mut rules = roles.iter().filter_map(|role| role["rules"].as_array()).flatten();
        rules.any(|rule| {
            let has = |field: &str, value: &str| {
                rule[field].as_array().is_some_and(|all| all.iter().any(|one| one == value))
            };
            has("apiGroups", "stayput.dev")
                && has("resources", "searchclusters")
                && has("verbs", verb)
        })
    };
    for role in ["view", "edit", "admin"] {
        assert!(may(role, "watch"), "{role}");
        assert_eq!(may(role, "patch"), role != "view", "{role}");
    }
}

/// The variants: every namespace, and one that is named in the installation.
fn the_variants_give_the_same_rights(admin: &Kubectl) {
    admin.run(&["delete", "rolebinding/stayput-clusters", "--namespace", "search"]);
    eventually("the binding is gone", || (!can(admin, NEEDED[7], "search")).then_some(()));
    applied(admin, "-k", &deploy().join("all-namespaces"));
    eventually("the binding counts", || can(admin, NEEDED[7], "search").then_some(()));
    for what in NEEDED {
        assert!(can(admin, what, "other"), "it may not {what}");
    }
    admin.run(&["delete", "clusterrolebinding/stayput-reconciler"]);
    admin.run(&["delete", "clusterrolebinding/stayput-reconciler-searchclusters"]);
    eventually("the bindings are gone", || {
        let is_left = can(admin, NEEDED[0], "other") || can(admin, NEEDED[7], "search");
        (!is_left).then_some(())
    });
    applied(admin, "-k", &deploy().join("namespaced"));
    eventually("the binding counts", || can(admin, NEEDED[7], "search").then_some(()));
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
    assert_eq!(secret["metadata"]["annotations"][stayput_kube_access::cluster::ALLOW], "logs");
    admin.run(&["delete", "scl", "logs", "--namespace", "search"]);
}

/// Laptop, tiers and zones are taken as they are, without a warning.
fn the_declared_examples(admin: &Kubectl) {
    for file in ["declared-laptop.yaml", "declared-tiers.yaml", "declared-zones.yaml"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/kubernetes").join(file);
        let path = path.to_str().expect("a path in UTF-8");
        let dry = ["apply", "--dry-run=server", "--warnings-as-errors", "--filename", path];
        let said = admin.run(&dry);
        assert_eq!(said.trim_end(), "searchcluster.stayput.dev/logs created (server dry run)");
    }
}

/// `examples/kubernetes/patch.yaml` on a StatefulSet with its own config and with probes that call
/// the engine.
fn the_patch_fits_a_stateful_set(admin: &Kubectl) {
    admin.apply(&plain_set("search"));
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/kubernetes/patch.yaml");
    let file = file.to_str().expect("a path in UTF-8");
    let patch = ["patch", "statefulset", "logs", "--namespace", "search", "--patch-file", file];
    let after = admin.json(&patch);
    let pod = &after["spec"]["template"]["spec"];
    let engine = &pod["containers"][0];
    assert_eq!(engine["command"][1], "run", "{engine:#}");
    assert!(engine.get("startupProbe").is_none(), "{engine:#}");
    for (probe, path) in [("livenessProbe", "/livez"), ("readinessProbe", "/readyz")] {
        assert_eq!(engine[probe]["httpGet"]["path"], path, "{engine:#}");
        assert!(engine[probe].get("tcpSocket").is_none(), "{engine:#}");
    }
    let has = |list: &Value, name: &str| {
        list.as_array().is_some_and(|items| items.iter().any(|item| item["name"] == name))
    };
    assert!(
        has(&engine["env"], "DISABLE_SECURITY_PLUGIN") && has(&engine["env"], "STAYPUT_LISTEN")
    );
    assert!(has(&pod["volumes"], "config") && has(&pod["volumes"], "stayput-state"));
    assert!(
        has(&engine["volumeMounts"], "stayput-config") && has(&pod["initContainers"], "stayput")
    );
    // The engine's own directory: nothing is mounted in there, so that it can write its keystore.
    assert!(!has(&engine["volumeMounts"], "config"), "{engine:#}");
}
