//! What a container read when it was started, and when that was.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{Container, Pod};
use serde_json::json;
use stayput_reuse::{Arrival, Started, Use, uses};

/// A running container that has read Secrets or ConfigMaps when it was started: as variables, or as
/// files mounted by `subPath`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct StartFacts {
    pub(in super::super) container: String,
    /// Of the present run; none while it does not run.
    pub(in super::super) started: Option<Started>,
    pub(in super::super) uses: BTreeSet<Use>,
}

impl StartFacts {
    /// Of each container of the pod that has read any.
    pub(super) fn of(pod: &Pod) -> Vec<Self> {
        let Some(spec) = &pod.spec else { return vec![] };
        if !spec.containers.iter().any(may_read) {
            return vec![];
        }
        // As in its template: what admission adds to a pod is read by its containers, too.
        let template = json!({"spec": spec});
        let facts = spec.containers.iter().map(|container| Self {
            container: container.name.clone(),
            started: started(pod, &container.name),
            uses: uses(&template, &container.name)
                .into_iter()
                .filter(|used| used.arrival == Arrival::NewContainer)
                .collect(),
        });
        facts.filter(|facts| !facts.uses.is_empty()).collect()
    }
}

/// Whether it may be one of them; most are not.
fn may_read(container: &Container) -> bool {
    let variable = container.env.iter().flatten().any(|variable| variable.value_from.is_some());
    let by_part = container
        .volume_mounts
        .iter()
        .flatten()
        .any(|mount| mount.sub_path.is_some() || mount.sub_path_expr.is_some());
    variable || by_part || container.env_from.as_ref().is_some_and(|from| !from.is_empty())
}

fn started(pod: &Pod, container: &str) -> Option<Started> {
    let mut statuses = pod.status.as_ref()?.container_statuses.iter().flatten();
    let status = statuses.find(|status| status.name == container)?;
    let at = status.state.as_ref()?.running.as_ref()?.started_at.as_ref()?;
    Some(Started { at: at.0.as_second(), restarts: status.restart_count })
}
