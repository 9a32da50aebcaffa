//! Checks the rights of the reconciler in the namespace of the SearchCluster.

use crate::doctor::checks::{reinstall, versions};
use crate::doctor::facts::{Facts, Right};
use crate::doctor::finding::Finding;
use crate::leader::{NAME, NAMESPACE};

pub(crate) fn check(facts: &Facts) -> Vec<Finding> {
    let object = "ServiceAccount/stayput-reconciler";
    let mut denied = Vec::new();
    let mut unknown = None;
    for (right, answer) in &facts.rights {
        match answer {
            Ok(true) => {}
            Ok(false) => denied.push(right),
            Err(why) => unknown = Some(&why.message),
        }
    }
    let namespace = facts.namespace();
    let denied = (!denied.is_empty()).then(|| {
        let all: Vec<String> = denied.iter().map(ToString::to_string).collect();
        let message = format!("it may not {} in namespace {namespace}", all.join(", "));
        Finding::error("rights", object, message, remedy(facts, &denied))
    });
    let unknown = unknown.map(|message| {
        let remedy = format!(
            "kubectl -n {namespace} auth can-i patch pods \
             --as=system:serviceaccount:stayput:stayput-reconciler"
        );
        Finding::error("rights", object, message, remedy).into_unknown()
    });
    denied.into_iter().chain(unknown).collect()
}

/// Where the namespace gives no rights at all, a binding is missing; else the role is an older one.
fn remedy(facts: &Facts, denied: &[&Right]) -> String {
    let lacks = |verb, resource| {
        let wanted = (verb, resource, "");
        denied.iter().any(|right| (right.verb, right.resource, right.subresource) == wanted)
    };
    if versions::newer(facts).is_some() {
        return reinstall(facts);
    }
    let bind = |binding, role| {
        format!(
            "kubectl -n {} create rolebinding {binding} --clusterrole={role} \
             --serviceaccount={NAMESPACE}:{NAME}",
            facts.namespace()
        )
    };
    let mut commands = Vec::new();
    // The usual installation reads pods everywhere; only a binding lets it change them.
    if lacks("patch", "pods") {
        commands.push(bind("stayput-clusters", "stayput-reconciler"));
    }
    if lacks("list", "persistentvolumeclaims") {
        commands.push("kubectl apply -f deploy/declared.yaml".to_owned());
        commands.push(bind("stayput-declared", "stayput-reconciler-declared"));
    }
    if commands.is_empty() { reinstall(facts) } else { commands.join("\n") }
}
