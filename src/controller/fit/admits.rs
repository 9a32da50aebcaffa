//! Rules that keep a pod off a Kubernetes node, however much room there is: a cordon, taints, node selector
//! and node affinity.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    Node, NodeSelectorRequirement, NodeSelectorTerm, PodSpec, Taint, Toleration,
};

/// Taint of a cordoned node.
const CORDONED: &str = "node.kubernetes.io/unschedulable";

/// Reasons why the node does not take a pod with this spec, with remedies.
pub(super) fn refusals(node: &Node, wanted: &PodSpec) -> Vec<String> {
    let name = node.metadata.name.as_deref().unwrap_or_default();
    let tolerations = wanted.tolerations.as_deref().unwrap_or_default();
    let spec = node.spec.clone().unwrap_or_default();
    let mut refusals = Vec::new();
    let cordon = taint(CORDONED, "NoSchedule");
    if spec.unschedulable == Some(true) && !is_tolerated(&cordon, tolerations) {
        refusals.push(format!("the node is cordoned: `kubectl uncordon {name}`"));
    }
    let taints = spec.taints.iter().flatten().filter(|taint| {
        let keeps_off = matches!(taint.effect.as_str(), "NoSchedule" | "NoExecute");
        keeps_off && taint.key != CORDONED && !is_tolerated(taint, tolerations)
    });
    refusals.extend(taints.map(|taint| {
        format!("the node has the taint {}, which it does not tolerate", describe(taint))
    }));
    let labels = node.metadata.labels.clone().unwrap_or_default();
    for (key, value) in wanted.node_selector.iter().flatten() {
        if labels.get(key) != Some(value) {
            refusals.push(format!(
                "its nodeSelector asks for {key}={value}, which the node does not have"
            ));
        }
    }
    let affinity = wanted.affinity.as_ref().and_then(|affinity| affinity.node_affinity.as_ref());
    let required = affinity
        .and_then(|affinity| affinity.required_during_scheduling_ignored_during_execution.as_ref());
    if required.is_some_and(|required| {
        !required.node_selector_terms.iter().any(|term| is_met(term, name, &labels))
    }) {
        refusals.push("its node affinity asks for other nodes".to_owned());
    }
    refusals
}

fn taint(key: &str, effect: &str) -> Taint {
    Taint { key: key.to_owned(), effect: effect.to_owned(), ..Taint::default() }
}

fn describe(taint: &Taint) -> String {
    let value = taint.value.as_ref().filter(|value| !value.is_empty());
    let value = value.map_or(String::new(), |value| format!("={value}"));
    format!("{}{value}:{}", taint.key, taint.effect)
}

fn is_tolerated(taint: &Taint, tolerations: &[Toleration]) -> bool {
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    tolerations.iter().any(|one| {
        let (key, effect) = (text(&one.key), text(&one.effect));
        let is_any_value = one.operator.as_deref() == Some("Exists");
        (effect.is_empty() || effect == taint.effect)
            && (key == taint.key || key.is_empty() && is_any_value)
            && (is_any_value || text(&one.value) == text(&taint.value))
    })
}

/// True if all conditions of the term hold; a term without conditions selects no node.
pub(super) fn is_met(
    term: &NodeSelectorTerm,
    name: &str,
    labels: &BTreeMap<String, String>,
) -> bool {
    let by_label = term.match_expressions.iter().flatten();
    let by_field = term.match_fields.iter().flatten();
    let has_any = by_label.clone().next().is_some() || by_field.clone().next().is_some();
    has_any
        && by_label.into_iter().all(|one| holds(one, labels.get(&one.key).map(String::as_str)))
        && by_field.into_iter().all(|one| {
            let value = (one.key == "metadata.name").then_some(name);
            holds(one, value)
        })
}

fn holds(condition: &NodeSelectorRequirement, value: Option<&str>) -> bool {
    let values = condition.values.as_deref().unwrap_or_default();
    let is_among = value.is_some_and(|value| values.iter().any(|one| one == value));
    let numbers =
        || -> Option<(i64, i64)> { Some((value?.parse().ok()?, values.first()?.parse().ok()?)) };
    match condition.operator.as_str() {
        "In" => is_among,
        "NotIn" => !is_among,
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        "Gt" => numbers().is_some_and(|(value, least)| value > least),
        "Lt" => numbers().is_some_and(|(value, most)| value < most),
        _ => false,
    }
}
