//! Checks the parts of stayput: a reconciler that works and has its rights, and that it reaches managers and engine.

use kube::ResourceExt;
use stayput_kube_access::names::reconciler::{MAKES, RESTARTS, Rights};
use stayput_kube_access::pod::ready;
use stayput_restart::Pod;

use crate::doctor::checks::{reinstall, versions};
use crate::doctor::{Facts, Finding, Right};
use crate::leader::{NAME, NAMESPACE};

pub(crate) fn check_reconciler(facts: &Facts) -> Vec<Finding> {
    let mut found: Vec<Finding> = lease(facts).into_iter().collect();
    let object = format!("Deployment/{NAME}");
    let get = format!("kubectl -n {NAMESPACE} get pods,events");
    match &facts.installation.pods {
        Err(unknown) => {
            found.push(Finding::unknown("reconciler", object, &unknown.message, get));
        }
        Ok(pods) if pods.is_empty() => {
            let message = format!("no pod of the reconciler is in namespace {NAMESPACE}");
            found.push(Finding::error("reconciler", object, message, reinstall(facts)));
        }
        Ok(pods) => {
            found.extend(pods.iter().filter(|pod| ready(pod).is_none()).map(|pod| {
                let (name, message) = (pod.name_any(), "it is not ready");
                let remedy = format!("kubectl -n {NAMESPACE} logs {name}");
                Finding::warning("reconciler", format!("Pod/{name}"), message, remedy)
            }));
        }
    }
    found
}

/// A finding if none of the replicas is the leader.
fn lease(facts: &Facts) -> Option<Finding> {
    let log = format!("kubectl -n {NAMESPACE} logs deployment/{NAME}");
    let object = format!("Lease/{NAME}");
    if let Err(unknown) = &facts.installation.lease {
        return Some(Finding::unknown("leader", object, &unknown.message, log));
    }
    let why = facts.why_no_reconciler()?;
    let message = format!("{why}; no node is restarted, and no debt is undone");
    Some(Finding::error("leader", object, message, log))
}

pub(crate) fn check_rights(facts: &Facts) -> Vec<Finding> {
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
        Finding::unknown("rights", object, message, remedy)
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
    let bind = |Rights { binding, cluster_role }| {
        format!(
            "kubectl -n {} create rolebinding {binding} --clusterrole={cluster_role} \
             --serviceaccount={NAMESPACE}:{NAME}",
            facts.namespace()
        )
    };
    let mut commands = Vec::new();
    // The usual installation reads pods everywhere; only a binding lets it change them.
    if lacks("patch", "pods") {
        commands.push(bind(RESTARTS));
    }
    if lacks("list", "persistentvolumeclaims") {
        commands.push("kubectl apply -f deploy/declared.yaml".to_owned());
        commands.push(bind(MAKES));
    }
    if commands.is_empty() { reinstall(facts) } else { commands.join("\n") }
}

pub(crate) fn check_managers(facts: &Facts) -> Vec<Finding> {
    let (namespace, name) = (facts.namespace(), facts.name());
    let status = format!("kubectl stayput -n {namespace} status {name}");
    match &facts.snapshot {
        Ok(taken) => {
            taken.saved.snapshot.pods.iter().flat_map(|pod| of_pod(namespace, pod)).collect()
        }
        Err(unknown) => {
            let message =
                format!("cannot check whether managers and engine answer: {}", unknown.message);
            let unknown = Finding::unknown("no_snapshot", facts.object(), message, reach(facts));
            let unreachable =
                facts.cluster.status.as_ref().map_or(0, |status| status.report.counts.unreachable);
            let counted = (unreachable > 0).then(|| {
                let message = format!("{unreachable} managers do not answer the reconciler");
                Finding::error("manager_unreachable", facts.object(), message, status)
            });
            [unknown].into_iter().chain(counted).collect()
        }
    }
}

/// How to reach the reconciler; if none works, how to find out why.
fn reach(facts: &Facts) -> String {
    if facts.why_no_reconciler().is_some() {
        return format!("kubectl -n {NAMESPACE} logs deployment/{NAME}");
    }
    format!(
        "kubectl -n {NAMESPACE} port-forward \"pod/$(kubectl -n {NAMESPACE} get lease {NAME} -o \
         jsonpath={{.spec.holderIdentity}})\" 9198; and beside it: kubectl stayput -n {} doctor {} \
         --reconciler http://127.0.0.1:9198",
        facts.namespace(),
        facts.name()
    )
}

fn of_pod(namespace: &str, pod: &Pod) -> Vec<Finding> {
    let object = format!("Pod/{}", pod.name);
    let container = pod.container.as_ref().map(|name| format!(" -c {name}")).unwrap_or_default();
    let log = format!("kubectl -n {namespace} logs {}{container} --tail 50", pod.name);
    let manager = match (&pod.manager, &pod.not_started) {
        (Err(_), Some(not_started)) => {
            let message = format!("it has never started: {not_started}");
            let describe = format!("kubectl -n {namespace} describe pod {}", pod.name);
            return vec![Finding::error("pod_not_started", object, message, describe)];
        }
        (Err(unknown), None) => {
            return vec![Finding::error("manager_unreachable", object, &unknown.message, log)];
        }
        (Ok(manager), _) => manager,
    };
    let mut found = Vec::new();
    if let Some(other) = manager.pod_uid.as_ref().filter(|uid| **uid != pod.uid) {
        let message = format!(
            "the manager of another pod (uid {other}) answers at its address; or \
             STAYPUT_POD_UID is wrong"
        );
        found.push(Finding::error("wrong_pod", &object, message, &log));
    }
    if !manager.durable {
        let message = "its manager cannot keep its journal: a node that is to stay stopped may start \
                       again";
        found.push(Finding::error("not_durable", &object, message, &log));
    }
    if let Some(mismatch) = &manager.live_mismatch {
        found.push(Finding::error("live_mismatch", &object, mismatch, &log));
    }
    if let Some(archive) = &manager.ignored_archive {
        let message = format!(
            "its engine does not use the archive of classes {archive} and starts slower: the file is \
             missing, or was made with another JVM or other jars"
        );
        let remedy = "make it again with the image that the pod has now: stayput warm, in the build of \
                      that image; one that `inject --warm` made is remade with the next pod";
        found.push(Finding::note("archive_not_used", &object, message, remedy));
    }
    found
}

pub(crate) fn check_engine(facts: &Facts) -> Vec<Finding> {
    // Without a snapshot the group of the managers says that nothing is known.
    let Ok(taken) = &facts.snapshot else { return Vec::new() };
    let Err(unknown) = &taken.saved.snapshot.engine else { return Vec::new() };
    let (namespace, name) = (facts.namespace(), facts.name());
    let remedy = format!("kubectl -n {namespace} get searchcluster {name} -o yaml");
    let message = format!("the engine does not answer the reconciler: {}", unknown.message);
    vec![Finding::error("engine_unreachable", facts.object(), message, remedy)]
}
