//! What the reconciler may not do in the namespace, and which command gives it that.

use stayput_restart::Known;

use crate::doctor::Right;
use crate::doctor::Severity::Error;
use crate::doctor::tests::each;

fn denied(verb: &'static str, resource: &'static str) -> (Right, Known<bool>) {
    (Right { verb, group: "", resource, subresource: "" }, Ok(false))
}

#[test] // proves OPERATE-12
fn rights_of_the_reconciler() {
    each(&[
        (
            "a right that is missing",
            |facts| facts.rights[1].1 = Ok(false),
            Error,
            "rights",
            "ServiceAccount/stayput-reconciler",
            ["may not get secrets in namespace search", "kubectl apply -k deploy/namespaced"],
        ),
        (
            "a namespace that gives it no rights",
            |facts| facts.rights.push(denied("patch", "pods")),
            Error,
            "rights",
            "ServiceAccount/stayput-reconciler",
            [
                "may not patch pods in namespace search",
                "kubectl -n search create rolebinding stayput-clusters \
                 --clusterrole=stayput-reconciler --serviceaccount=stayput:stayput-reconciler",
            ],
        ),
        (
            "a namespace in which it may make no nodes",
            |facts| facts.rights.push(denied("list", "persistentvolumeclaims")),
            Error,
            "rights",
            "ServiceAccount/stayput-reconciler",
            [
                "may not list persistentvolumeclaims in namespace search",
                "kubectl apply -f deploy/declared.yaml\n\
                 kubectl -n search create rolebinding stayput-declared",
            ],
        ),
    ]);
}
