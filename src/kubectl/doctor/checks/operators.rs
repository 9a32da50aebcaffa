//! Checks that the operator of the pods does not restart nodes by itself as well.
//!
//! From github.com/elastic/cloud-on-k8s (pkg/apis/common/v1/common.go, pkg/controller/common/unmanaged.go)
//! and github.com/opensearch-project/opensearch-k8s-operator (pkg/reconcilers/rollingRestart.go).

use kube::ResourceExt;
use kube::core::DynamicObject;
use stayput_kube_access::cluster::UpdateMode;
use stayput_restart::annotation;

use crate::doctor::facts::Facts;
use crate::doctor::finding::Finding;

/// Annotation with which ECK edits no StatefulSet and restarts nothing, and goes on to renew
/// certificates. ECK before 3.5 does not know it.
const PAUSE: &str = "eck.k8s.elastic.co/pause-orchestration";
/// The condition by which ECK confirms [`PAUSE`].
const PAUSED: &str = "OrchestrationPaused";
/// Annotation with which ECK does nothing at all.
const MANAGED: &str = "eck.k8s.elastic.co/managed";

pub(crate) fn check(facts: &Facts) -> Vec<Finding> {
    let mut found: Vec<Finding> =
        facts.operated.keys().filter_map(|(kind, name)| of_object(facts, kind, name)).collect();
    let updates = facts.cluster.spec.update.mode == UpdateMode::InPlace;
    if let Some((kind, name)) = facts.operated.keys().next().filter(|_| updates) {
        let (namespace, cluster) = (facts.namespace(), facts.name());
        found.push(Finding::error(
            "operator_updates",
            facts.object(),
            format!(
                "spec.update.mode is inPlace, and the operator of {kind} {name} replaces pods by itself \
                 when their template changes"
            ),
            format!(
                "kubectl -n {namespace} patch searchcluster {cluster} --type merge -p \
                 '{{\"spec\":{{\"update\":{{\"mode\":\"off\"}}}}}}'"
            ),
        ));
    }
    found
}

fn of_object(facts: &Facts, kind: &str, name: &str) -> Option<Finding> {
    let namespace = facts.namespace();
    let object = format!("{kind}/{name}");
    let annotate = |annotation: &str| {
        format!(
            "kubectl -n {namespace} annotate --overwrite {} {name} {annotation}",
            kind.to_lowercase()
        )
    };
    if kind != "Elasticsearch" {
        let mut message = format!(
            "the operator of {kind} {name} restarts nodes by itself when it changes their template, and \
             cannot be paused for one cluster: change it only while no restart is under way"
        );
        if !is_without_recovery(facts) {
            message.push_str(&format!(
                "; when two pods are not ready it makes its StatefulSet again, so restarts of several nodes at \
                 once wait: install it with manager.parallelRecoveryEnabled=false, then confirm: kubectl -n \
                 {namespace} annotate searchcluster {} {}=false",
                facts.name(),
                annotation::PARALLEL_RECOVERY
            ));
        }
        let remedy = format!("kubectl stayput -n {namespace} status {}", facts.name());
        return Some(Finding::error("operator", object, message, remedy).into_note());
    }
    let found = match &facts.operated[&(kind.to_owned(), name.to_owned())] {
        Err(unknown) => {
            let remedy = format!("kubectl -n {namespace} get elasticsearch {name} -o yaml");
            return Some(
                Finding::error("operator", object, &unknown.message, remedy).into_unknown(),
            );
        }
        Ok(found) => found.as_ref()?,
    };
    let is = |key: &str, value: &str| found.annotations().get(key).is_some_and(|it| it == value);
    if is(MANAGED, "false") {
        let message = format!(
            "{MANAGED} is false: ECK does nothing at all, and does not renew certificates either; from \
             ECK 3.5 on {PAUSE} pauses only its restarts"
        );
        let remedy = annotate(&format!("{PAUSE}=true {MANAGED}-"));
        return Some(Finding::error("operator_unmanaged", object, message, remedy).into_warning());
    }
    if !is(PAUSE, "true") {
        let message = format!(
            "ECK restarts nodes by itself when their template changes: leave the Elasticsearch {name} as it is \
             while a restart is under way, or pause ECK. Paused or not, it deletes shutdown records and voting \
             exclusions, so its nodes are stopped with the allocation setting"
        );
        let remedy = annotate(&format!("{PAUSE}=true"));
        return Some(Finding::error("operator", object, message, remedy).into_warning());
    }
    if is_paused(found) {
        return None;
    }
    let message = format!(
        "{PAUSE} is true, but ECK does not say that it is paused (condition {PAUSED}): ECK before 3.5 does \
         not know it and restarts nodes by itself. Upgrade ECK; or let it do nothing at all for as long as \
         a restart takes, in which it does not renew certificates either"
    );
    let remedy = annotate(&format!("{MANAGED}=false"));
    Some(Finding::error("operator", object, message, remedy).into_warning())
}

/// True if a person has confirmed that the OpenSearch operator does not recover clusters by itself.
fn is_without_recovery(facts: &Facts) -> bool {
    let annotations = facts.cluster.annotations();
    annotations.get(annotation::PARALLEL_RECOVERY).is_some_and(|value| value == "false")
}

/// True if ECK reports that it is paused.
fn is_paused(found: &DynamicObject) -> bool {
    let mut conditions = found.data["status"]["conditions"].as_array().into_iter().flatten();
    conditions.any(|one| one["type"] == PAUSED && one["status"] == "True")
}
