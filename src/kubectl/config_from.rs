//! The sources of the engines' config, in one line for the whole cluster.

use std::collections::BTreeSet;

use super::cluster_view::ClusterView;

/// Maximum number of objects in the line.
const SHOWN: usize = 5;

/// The objects, and their problems, if the cluster has pods.
pub(super) fn config_from(view: &ClusterView) -> Option<String> {
    // Many pods have an object each, named after the pod.
    let of_all = |name: &String, pod: &str| name.replace(pod, "{pod}");
    let objects: BTreeSet<String> = view
        .pods
        .iter()
        .flat_map(|pod| pod.config_from.iter().map(|name| of_all(name, &pod.name)))
        .collect();
    let mut parts = Vec::new();
    if !objects.is_empty() {
        let how = view.sources_from.map(|from| format!(" ({from})")).unwrap_or_default();
        let more = match objects.len().saturating_sub(SHOWN) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let shown: Vec<String> = objects.into_iter().take(SHOWN).collect();
        parts.push(format!("{}{more}{how}", shown.join(", ")));
    }
    let unknown = view.pods.iter().find_map(|pod| pod.config_unknown.as_ref());
    parts.extend(unknown.map(|reason| format!("not known: {reason}")));
    let report = view.status.as_ref().map(|status| &status.report);
    parts.extend(report.and_then(|report| report.source_absent.clone()));
    (!parts.is_empty()).then(|| parts.join("; "))
}
