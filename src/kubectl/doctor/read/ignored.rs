//! Values of the annotation `stayput.dev/ignore` on objects that nobody watches.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use kube::ResourceExt;
use stayput_kube_access::workload::unwatched;
use stayput_pod_update::{IGNORE, Ignore, Source, SourceKind};

use crate::apiserver::objects::Asked;

/// The annotations of the objects that can be read.
pub(crate) async fn read(
    ask: &Asked<'_>,
    pods: &[Pod],
    manager_port: u16,
) -> BTreeMap<Source, Ignore> {
    let named = pods.iter().flat_map(|pod| unwatched(pod, manager_port));
    let named: BTreeSet<Source> = named.map(|one| one.source).collect();
    let mut ignored = BTreeMap::new();
    for source in named {
        let annotations = match source.kind {
            SourceKind::Secret => {
                let found = ask.find::<Secret>("secrets", &source.name).await;
                found.ok().flatten().map(|secret| secret.annotations().clone())
            }
            SourceKind::ConfigMap => {
                let found = ask.find::<ConfigMap>("configmaps", &source.name).await;
                found.ok().flatten().map(|map| map.annotations().clone())
            }
        };
        if let Some(annotations) = annotations {
            ignored.insert(source, Ignore::parse(annotations.get(IGNORE).map(String::as_str)));
        }
    }
    ignored
}
