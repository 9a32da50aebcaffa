//! Notes about objects that the engine's container mounts and nobody watches: a change of them restarts
//! nothing, and a person should know that.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use stayput_kube_access::workload::{Set, unwatched};
use stayput_pod_update::{Ignore, Source, SourceKind, Unwatched};

use crate::doctor::facts::Facts;
use crate::doctor::finding::Finding;

pub(crate) fn check(facts: &Facts) -> Vec<Finding> {
    let named = facts.cluster.check().ok().map(|checked| checked.sources);
    let is_named = |pod: &Pod, source: &Source| {
        named.as_ref().is_some_and(|named| named.objects(&pod.name_any()).contains(source))
    };
    let port = facts.cluster.completed_spec().manager.port;
    let mut found: BTreeMap<Unwatched, Vec<String>> = BTreeMap::new();
    for pod in facts.known_pods().iter().filter(|pod| !is_operated(facts, pod)) {
        let counts = |one: &Unwatched| {
            facts.ignored.get(&one.source) != Some(&Ignore::Everything)
                && !is_named(pod, &one.source)
        };
        for one in unwatched(pod, port).into_iter().filter(counts) {
            found.entry(one).or_default().push(format!("Pod/{}", pod.name_any()));
        }
    }
    found.iter().map(|(one, pods)| finding(facts, pods, one)).collect()
}

fn finding(facts: &Facts, pods: &[String], one: &Unwatched) -> Finding {
    let Unwatched { source, path } = one;
    let kind = match source.kind {
        SourceKind::Secret => "secret",
        SourceKind::ConfigMap => "configmap",
    };
    let (name, namespace) = (&source.name, facts.namespace());
    Finding::error(
        "not_watched",
        pods.join(", "),
        format!(
            "{source}, mounted at {path}, is read by the engine's container and not watched: a change \
             restarts nothing. To have it restart nodes, add --config NAME={path} to the manager. If \
             the engine reads it by itself, there is nothing to do. The annotation stayput.dev/ignore=true on \
             it ends this note; then no cluster of this namespace counts a change of it"
        ),
        format!("kubectl -n {namespace} describe {kind} {name}"),
    )
    .into_note()
}

/// True if an operator decides about the pod's mounts, and restarts it for them.
fn is_operated(facts: &Facts, pod: &Pod) -> bool {
    pod.owner_references().iter().any(|owner| match facts.sets.get(&owner.name) {
        Some(Ok(Some(set))) => Set::of(set).operator.is_some(),
        Some(Ok(None) | Err(_)) | None => false,
    })
}
