//! Checks what an operator does with the pods of its object while stayput restarts them, or carries out what was
//! edited there.

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::core::DynamicObject;
use serde_json::json;
use stayput_kube_access::cluster::UpdateMode;
use stayput_kube_access::operator_object::{self, PAUSED, has};
use stayput_kube_access::pod::Owner;
use stayput_restart::annotation::{self, ECK_MANAGED as MANAGED, ECK_PAUSE as PAUSE};
use stayput_restart::{OperatorFacts, OperatorState, set_eck_budget};

use crate::doctor::{Facts, Finding};

/// Label of pods whose deletion `deploy/keep-pods` refuses.
const KEEP_POD: &str = "stayput.dev/keep-pod";

pub(crate) fn check_operators(facts: &Facts) -> Vec<Finding> {
    let objects = facts.operated.iter();
    objects
        .flat_map(|((kind, name), found)| match (kind.as_str(), found) {
            ("OpenSearchCluster", _) => opensearch(facts, name),
            ("Elasticsearch", Err(unknown)) => {
                let remedy =
                    format!("kubectl -n {} get elasticsearch {name} -o yaml", facts.namespace());
                let object = format!("{kind}/{name}");
                vec![Finding::unknown("operator", object, &unknown.message, remedy)]
            }
            ("Elasticsearch", Ok(Some(found))) => eck(facts, found),
            ("Elasticsearch", Ok(None)) => Vec::new(),
            _ => another(facts, kind, name),
        })
        .collect()
}

/// Pods whose label is ahead of them: their operator, and `updatedReplicas` of their StatefulSet, count them as
/// updated.
pub(crate) fn check_labels(facts: &Facts) -> Vec<Finding> {
    let pods = facts.known_pods().iter();
    pods.filter_map(|pod| {
        let owner = Owner::of(pod).filter(Owner::is_label_ahead)?;
        let message = format!(
            "it is made from revision {}, and not from {}, which its label names so that its operator keeps it",
            owner.revision, owner.label
        );
        let remedy = format!("kubectl stayput -n {} diff {}", facts.namespace(), facts.name());
        Some(Finding::note("label_ahead", format!("Pod/{}", pod.name_any()), message, remedy))
    })
    .collect()
}

/// True if edited templates are carried out in place.
fn updates(facts: &Facts) -> bool {
    facts.cluster.spec.update.mode == UpdateMode::InPlace
}

/// The command that lets stayput carry edited templates out, or ends that.
fn set_mode(facts: &Facts, mode: &str) -> String {
    let patch = json!({ "spec": { "update": { "mode": mode } } });
    format!(
        "kubectl -n {} patch searchcluster {} --type merge -p '{patch}'",
        facts.namespace(),
        facts.name()
    )
}

/// An operator that makes no engines, such as one for StatefulSets of any kind.
fn another(facts: &Facts, kind: &str, name: &str) -> Vec<Finding> {
    let message = format!(
        "{kind} {name} decides about its pods: stayput carries out edited templates only for an Elasticsearch \
         or an OpenSearchCluster"
    );
    let remedy = set_mode(facts, "off");
    let found = updates(facts)
        .then(|| Finding::error("operator", format!("{kind}/{name}"), message, remedy));
    found.into_iter().collect()
}

fn opensearch(facts: &Facts, name: &str) -> Vec<Finding> {
    let namespace = facts.namespace();
    let deletes = if updates(facts) {
        not_kept(facts).map(|refuse| {
            format!(
                "the operator of OpenSearchCluster {name} deletes pods with the label of an older template. It looks \
                 after each edit, and stayput changes the labels within about a second. To be certain, {refuse}"
            )
        })
    } else {
        Some(format!(
            "the operator of OpenSearchCluster {name} restarts nodes by itself when it changes their template, and \
             cannot be paused for one cluster: change it only while no restart is under way"
        ))
    };
    let recovers = (!is_without_recovery(facts)).then(|| {
        format!(
            "when two pods are not ready it makes its StatefulSet again, so restarts of several nodes at \
             once wait: install it with manager.parallelRecoveryEnabled=false, then confirm: kubectl -n \
             {namespace} annotate searchcluster {} {}=false",
            facts.name(),
            annotation::PARALLEL_RECOVERY
        )
    });
    let remedy = format!("kubectl stayput -n {namespace} status {}", facts.name());
    let message: Vec<String> = deletes.into_iter().chain(recovers).collect();
    let found = (!message.is_empty()).then(|| {
        Finding::note("operator", format!("OpenSearchCluster/{name}"), message.join("; "), remedy)
    });
    found.into_iter().collect()
}

/// The advice to have an operator's deletions refused, unless they are.
fn not_kept(facts: &Facts) -> Option<String> {
    let labelled = |pod: &Pod| pod.labels().get(KEEP_POD).is_some_and(|value| value == "true");
    match &facts.installation.keeps_pods {
        Ok(true) if facts.known_pods().iter().all(labelled) => None,
        Ok(true) => {
            Some(format!("label its pods {KEEP_POD}=true: then deploy/keep-pods refuses that"))
        }
        Ok(false) => Some("install deploy/keep-pods, which refuses that".to_owned()),
        Err(unknown) => Some(format!(
            "have deploy/keep-pods refuse that; it is not known whether it is installed: {}",
            unknown.message
        )),
    }
}

/// True if a person has confirmed that the OpenSearch operator does not recover clusters by itself.
fn is_without_recovery(facts: &Facts) -> bool {
    let annotations = facts.cluster.annotations();
    annotations.get(annotation::PARALLEL_RECOVERY).is_some_and(|value| value == "false")
}

fn eck(facts: &Facts, found: &DynamicObject) -> Vec<Finding> {
    let OperatorFacts { max_unavailable: budget, state, .. } = operator_object::facts(found);
    let is_to_pause = has(found, PAUSE, "true");
    let eck = Eck { facts, name: found.name_any(), budget, state, is_to_pause };
    if state == OperatorState::Unmanaged {
        return vec![eck.unmanaged()];
    }
    eck.paused().into_iter().chain(eck.budget()).collect()
}

/// An `Elasticsearch`.
struct Eck<'a> {
    facts: &'a Facts,
    name: String,
    /// How many pods ECK may make unavailable at once, if the object says it.
    budget: Option<i64>,
    state: OperatorState,
    /// True if ECK was asked to pause; it confirms that by its state.
    is_to_pause: bool,
}

impl Eck<'_> {
    fn finding(&self, code: &'static str, message: String, remedy: String) -> Finding {
        Finding::warning(code, format!("Elasticsearch/{}", self.name), message, remedy)
    }

    fn annotate(&self, annotation: &str) -> String {
        format!(
            "kubectl -n {} annotate --overwrite elasticsearch {} {annotation}",
            self.facts.namespace(),
            self.name
        )
    }

    /// The command that sets the number of pods that ECK may delete at the same time.
    fn set_budget(&self, pods: Option<u32>) -> String {
        set_eck_budget(self.facts.namespace(), &self.name, pods)
    }

    fn unmanaged(&self) -> Finding {
        let (besides, annotations) = if updates(self.facts) {
            ("no edit of the Elasticsearch arrives".to_owned(), format!("{MANAGED}-"))
        } else {
            let pauses = format!("from ECK 3.5 on {PAUSE} pauses only its restarts");
            (pauses, format!("{PAUSE}=true {MANAGED}-"))
        };
        let message = format!(
            "{MANAGED} is false: ECK does nothing at all, and does not renew certificates either; {besides}"
        );
        self.finding("operator_unmanaged", message, self.annotate(&annotations))
    }

    /// The finding about ECK that was asked to pause.
    fn paused(&self) -> Option<Finding> {
        if !self.is_to_pause {
            return None;
        }
        if self.state != OperatorState::Paused {
            let message = format!(
                "{PAUSE} is true, but ECK does not say that it is paused (condition {PAUSED}): ECK before 3.5 does \
                 not know it and restarts nodes by itself. Upgrade ECK; or let it do nothing at all for as long as \
                 a restart takes, in which it does not renew certificates either"
            );
            return Some(self.finding(
                "operator",
                message,
                self.annotate(&format!("{MANAGED}=false")),
            ));
        }
        let message = format!(
            "{PAUSE} is true: edits of the Elasticsearch arrive when this annotation is gone"
        );
        let remedy = self.annotate(&format!("{PAUSE}-"));
        updates(self.facts).then(|| self.finding("operator_paused", message, remedy))
    }

    /// The finding about the number of pods that ECK may delete for another template.
    fn budget(&self) -> Option<Finding> {
        if updates(self.facts) {
            (self.budget != Some(0)).then(|| self.deletes_a_pod())
        } else if self.budget == Some(0) {
            Some(self.restarts_nothing())
        } else {
            (!self.is_to_pause).then(|| self.restarts_nodes())
        }
    }

    fn deletes_a_pod(&self) -> Finding {
        let is_now = self.budget.map_or("1, its default".to_owned(), |budget| budget.to_string());
        let message = format!(
            "changeBudget.maxUnavailable is {is_now}: for another template ECK may delete a pod before stayput has \
             changed its label. With 0 it deletes no healthy pod"
        );
        self.finding("operator_budget", message, self.set_budget(Some(0)))
    }

    fn restarts_nothing(&self) -> Finding {
        let message = "changeBudget.maxUnavailable is 0 and spec.update.mode is off: for another template neither ECK \
                       nor stayput restarts a node";
        let remedy = format!(
            "let stayput carry edits out, or ECK again:\n{}\n{}",
            set_mode(self.facts, "inPlace"),
            self.set_budget(None)
        );
        self.finding("operator_budget", message.to_owned(), remedy)
    }

    fn restarts_nodes(&self) -> Finding {
        let message = format!(
            "ECK restarts nodes by itself when their template changes: leave the Elasticsearch {} as it is \
             while a restart is under way, or pause ECK. Paused or not, it deletes shutdown records and voting \
             exclusions, so its nodes are stopped with the allocation setting",
            self.name
        );
        self.finding("operator", message, self.annotate(&format!("{PAUSE}=true")))
    }
}
