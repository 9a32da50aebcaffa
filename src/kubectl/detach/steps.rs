//! The steps of `detach`, in their order.

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use stayput_kube_access::cluster::{ALLOW, SearchCluster};

use crate::detach::clean::{named, removal};
use crate::view::ClusterView;

/// One sentence for each step; `ends` is true if restarts are ended.
pub(crate) fn steps(
    view: &ClusterView,
    cluster: &SearchCluster,
    pods: &[Pod],
    ends: bool,
) -> Vec<String> {
    let under_way = view.restart().map(|restart| restart.request.id.clone());
    let queued = view.queued().map(|request| request.id.clone());
    let requested = view.requested().and_then(Result::ok).map(|request| request.id);
    let restarts = [requested, queued, under_way].into_iter().flatten().filter(|_| ends);
    let mut steps: Vec<String> = restarts
        .map(|id| format!("restart {id} is cancelled, and its end is waited for"))
        .collect();
    steps.push(format!(
        "SearchCluster {}/{} is deleted once the reconciler has undone its changes",
        view.namespace, view.name
    ));
    let marked = pods.iter().filter(|pod| removal(pod.annotations()).is_some());
    let marked: Vec<String> = marked.map(ResourceExt::name_any).collect();
    if !marked.is_empty() {
        steps.push(format!("annotations of stayput are taken off the pods {}", marked.join(", ")));
    }
    let secrets: Vec<String> = named(cluster, pods).into_iter().collect();
    if !secrets.is_empty() {
        let (name, secrets) = (&view.name, secrets.join(", "));
        steps.push(format!(
            "{name} is taken out of the annotation {ALLOW} of the Secrets {secrets}"
        ));
    }
    steps
}
