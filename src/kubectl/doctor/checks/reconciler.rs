//! Checks that a reconciler works.

use kube::ResourceExt;

use crate::doctor::checks::reinstall;
use crate::doctor::facts::Facts;
use crate::doctor::finding::Finding;
use crate::leader::{NAME, NAMESPACE};

pub(crate) fn check(facts: &Facts) -> Vec<Finding> {
    let mut found: Vec<Finding> = lease(facts).into_iter().collect();
    let object = format!("Deployment/{NAME}");
    let get = format!("kubectl -n {NAMESPACE} get pods,events");
    match &facts.reconcilers {
        Err(unknown) => {
            found.push(Finding::error("reconciler", object, &unknown.message, get).into_unknown());
        }
        Ok(pods) if pods.is_empty() => {
            let message = format!("no pod of the reconciler is in namespace {NAMESPACE}");
            found.push(Finding::error("reconciler", object, message, reinstall(facts)));
        }
        Ok(pods) => {
            let is_ready = |pod: &&k8s_openapi::api::core::v1::Pod| {
                let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
                let mut all = conditions.into_iter().flatten();
                all.any(|one| one.type_ == "Ready" && one.status == "True")
            };
            found.extend(pods.iter().filter(|pod| !is_ready(pod)).map(|pod| {
                let (name, message) = (pod.name_any(), "it is not ready");
                let remedy = format!("kubectl -n {NAMESPACE} logs {name}");
                Finding::error("reconciler", format!("Pod/{name}"), message, remedy).into_warning()
            }));
        }
    }
    found
}

/// A finding if none of the replicas is the leader.
fn lease(facts: &Facts) -> Option<Finding> {
    let log = format!("kubectl -n {NAMESPACE} logs deployment/{NAME}");
    let finding = |message: &str| Finding::error("leader", format!("Lease/{NAME}"), message, log);
    match &facts.lease {
        Err(unknown) => Some(finding(&unknown.message).into_unknown()),
        Ok(_) => {
            let why = facts.why_no_reconciler()?;
            Some(finding(&format!("{why}; no node is restarted, and no debt is undone")))
        }
    }
}
