//! Checks that the reconciler reaches each manager, and may send it requests.

use stayput_restart::Pod;

use crate::doctor::facts::Facts;
use crate::doctor::finding::Finding;
use crate::leader::{NAME, NAMESPACE};

pub(crate) fn check(facts: &Facts) -> Vec<Finding> {
    let (namespace, name) = (facts.namespace(), facts.name());
    let status = format!("kubectl stayput -n {namespace} status {name}");
    match &facts.snapshot {
        Ok(taken) => {
            taken.saved.snapshot.pods.iter().flat_map(|pod| of_pod(namespace, pod)).collect()
        }
        Err(unknown) => {
            let message =
                format!("cannot check whether managers and engine answer: {}", unknown.message);
            let unknown = Finding::error("no_snapshot", facts.object(), message, reach(facts));
            let unreachable =
                facts.cluster.status.as_ref().map_or(0, |status| status.report.counts.unreachable);
            let counted = (unreachable > 0).then(|| {
                let message = format!("{unreachable} managers do not answer the reconciler");
                Finding::error("manager_unreachable", facts.object(), message, status)
            });
            [unknown.into_unknown()].into_iter().chain(counted).collect()
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
        found.push(Finding::error("archive_not_used", &object, message, remedy).into_note());
    }
    found
}
