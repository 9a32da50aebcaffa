//! Checks for others that may take nodes down: evictions, as in a drain of a Kubernetes node.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelectorRequirement;
use kube::ResourceExt;
use stayput_restart::shell_word;

use crate::doctor::facts::Facts;
use crate::doctor::finding::Finding;
use crate::doctor::network::selects;

pub(crate) fn check(facts: &Facts) -> Vec<Finding> {
    let (namespace, name) = (facts.namespace(), facts.name());
    let get = format!("kubectl -n {namespace} get poddisruptionbudgets");
    let budgets = match &facts.budgets {
        Ok(budgets) => budgets,
        Err(unknown) => {
            let finding = Finding::error("budget", facts.object(), &unknown.message, get);
            return vec![finding.into_unknown()];
        }
    };
    let mut found = Vec::new();
    for pod in facts.known_pods() {
        let of_pod: Vec<String> = budgets
            .iter()
            .filter(|budget| {
                let selector = budget.spec.as_ref().and_then(|spec| spec.selector.as_ref());
                selector.is_some_and(|selector| selects(selector, pod.labels()))
            })
            .map(ResourceExt::name_any)
            .collect();
        match of_pod.as_slice() {
            [] => found.push(
                Finding::error(
                    "no_budget",
                    facts.object(),
                    "no PodDisruptionBudget selects its pods: a drain of a Kubernetes node may take \
                     a second node down while one is restarted",
                    format!(
                        "kubectl -n {namespace} create poddisruptionbudget {name} \
                         --max-unavailable=1 --selector={}",
                        shell_word(&selector(facts))
                    ),
                )
                .into_note(),
            ),
            [_] => {}
            several => found.push(
                Finding::error(
                    "several_budgets",
                    format!("Pod/{}", pod.name_any()),
                    format!("{} select it: Kubernetes can evict no such pod", several.join(" and ")),
                    get.clone(),
                )
                .into_warning(),
            ),
        }
    }
    found.dedup();
    found
}

fn selector(facts: &Facts) -> String {
    let spec = facts.cluster.completed_spec();
    let selector = &spec.pods.selector;
    let labels = selector.match_labels.iter().flatten();
    let labels = labels.map(|(key, value)| format!("{key}={value}"));
    let all: Vec<String> =
        labels.chain(selector.match_expressions.iter().flatten().map(requirement)).collect();
    all.join(",")
}

/// A requirement in the syntax of kubectl's options.
fn requirement(one: &LabelSelectorRequirement) -> String {
    let key = &one.key;
    let values = one.values.iter().flatten().map(String::as_str).collect::<Vec<_>>().join(",");
    match one.operator.as_str() {
        "In" => format!("{key} in ({values})"),
        "NotIn" => format!("{key} notin ({values})"),
        "DoesNotExist" => format!("!{key}"),
        _ => key.clone(),
    }
}
