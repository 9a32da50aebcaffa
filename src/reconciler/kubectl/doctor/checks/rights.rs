//! Checks the rights of the reconciler in the namespace of the SearchCluster.

use super::{Facts, Finding, reinstall};

pub(super) fn check(facts: &Facts) -> Vec<Finding> {
    let object = "ServiceAccount/stayput-reconciler";
    let mut denied = Vec::new();
    let mut unknown = None;
    for (right, answer) in &facts.rights {
        match answer {
            Ok(true) => {}
            Ok(false) => denied.push(right.to_string()),
            Err(why) => unknown = Some(&why.message),
        }
    }
    let namespace = facts.namespace();
    let denied = (!denied.is_empty()).then(|| {
        Finding::error(
            "rights",
            object,
            format!("it may not {} in namespace {namespace}", denied.join(", ")),
            reinstall(facts),
        )
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
