//! Checks the owners of the pods: one that replaces them by itself is a finding.

use kube::ResourceExt;
use stayput_kube_access::cluster::UpdateMode;
use stayput_kube_access::workload::{REVISION_LABEL, Set, is_stateful_set, replaces};
use stayput_restart::shell_word;

use crate::doctor::facts::Facts;
use crate::doctor::finding::Finding;

pub(crate) fn check(facts: &Facts) -> Vec<Finding> {
    let mut found: Vec<Finding> = facts.sets.keys().flat_map(|name| of_set(facts, name)).collect();
    for pod in facts.known_pods() {
        let controller = pod.owner_references().iter().find(|owner| owner.controller == Some(true));
        let (namespace, name) = (facts.namespace(), pod.name_any());
        match controller {
            None => found.push(
                Finding::error(
                    "no_owner",
                    format!("Pod/{name}"),
                    "nothing owns it: nobody makes it again if its node is lost",
                    format!("kubectl -n {namespace} get pods -o yaml"),
                )
                .into_note(),
            ),
            Some(owner) if !is_stateful_set(owner) => found.push(Finding::error(
                "other_owner",
                format!("Pod/{name}"),
                format!(
                    "{} {} owns it, which may replace it at any time under another name",
                    owner.kind, owner.name
                ),
                format!(
                    "kubectl -n {namespace} get {} {}",
                    shell_word(&owner.kind.to_lowercase()),
                    shell_word(&owner.name)
                ),
            )),
            Some(_) => {}
        }
    }
    found
}

fn of_set(facts: &Facts, name: &str) -> Vec<Finding> {
    let namespace = facts.namespace();
    let object = format!("StatefulSet/{name}");
    let get = format!("kubectl -n {namespace} get statefulset {} -o yaml", shell_word(name));
    let set = match &facts.sets[name] {
        Err(unknown) => {
            return vec![Finding::error("owner", object, &unknown.message, get).into_unknown()];
        }
        Ok(None) => {
            let message = "it is not there, although pods say that it owns them";
            return vec![Finding::error("owner", object, message, get)];
        }
        Ok(Some(set)) => Set::of(set),
    };
    let pods = facts.known_pods().iter().filter(|pod| {
        pod.owner_references().iter().any(|owner| owner.name == name && is_stateful_set(owner))
    });
    let mut found: Vec<Finding> = pods
        .filter_map(|pod| {
            let revision = pod.labels().get(REVISION_LABEL).map_or("", String::as_str);
            let name = pod.name_any();
            let why = replaces(&set, namespace, &name, revision)?;
            let remedy = set.on_delete_command(namespace);
            Some(Finding::error("owner_will_replace", format!("Pod/{name}"), why, remedy))
        })
        .collect();
    // Of an operator's StatefulSet the operator decides.
    if set.replaced_from.is_some() && set.operator.is_none() {
        let finding = Finding::error(
            "replaces_pods",
            object,
            "its update strategy is RollingUpdate: with every edit of its template it replaces its \
             pods by itself, without the rules",
            set.on_delete_command(namespace),
        );
        // Then no edit can be carried out.
        let is_needed = facts.cluster.spec.update.mode == UpdateMode::InPlace;
        found.push(if is_needed { finding } else { finding.into_warning() });
    }
    found
}
