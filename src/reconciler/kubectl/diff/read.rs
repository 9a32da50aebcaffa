//! Reads what `diff` compares.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use stayput_reuse::Abilities;

use super::{Diff, NotComparable, Owner, PodDiff, Revision, of_pod};
use crate::kubectl::apiserver;
use crate::kubectl::pod_view::PodView;
use crate::kubectl::selection::{self, SelectionError};
use crate::kubectl::session::Session;
use crate::workload::{
    ContainerPorts, REVISION_LABEL, container_with, is_on_delete, ordinal, unseen_generation,
};

/// The annotation with the container that `kubectl exec` takes.
const DEFAULT_CONTAINER: &str = "kubectl.kubernetes.io/default-container";

/// All pods of the SearchCluster, each against what its owner wants.
pub(in crate::kubectl) async fn read(
    session: &Session,
    name: Option<&str>,
) -> Result<Diff, SelectionError> {
    let cluster = selection::cluster(session, name).await?;
    let mut pods = apiserver::pods(&session.client, &cluster).await?;
    pods.sort_by_key(ResourceExt::name_any);
    let abilities = Abilities { resize: apiserver::serves_resize(session).await? };
    let port = cluster.spec.manager.port;
    let label = cluster.spec.pods.node_name_label.as_deref();

    let mut objects = Objects { session, sets: BTreeMap::new(), revisions: BTreeMap::new() };
    let mut compared = Vec::new();
    for pod in &pods {
        let update = match objects.of_pod(pod).await? {
            Ok((owner, actual)) => {
                let container = engine_container(pod, port);
                Ok(of_pod(&owner, &actual, ordinal(&pod.name_any()), &container, abilities))
            }
            Err(reason) => Err(reason),
        };
        let node = PodView::from_object(pod, label).node;
        compared.push(PodDiff { pod: pod.name_any(), node, update });
    }
    let rolls = |set: &&StatefulSet| !is_on_delete(set);
    Ok(Diff {
        namespace: cluster.namespace().unwrap_or_default(),
        cluster: cluster.name_any(),
        pods: compared,
        rolling: objects.sets.values().flatten().filter(rolls).map(ResourceExt::name_any).collect(),
    })
}

/// What was read, by name, each once; nothing where it is not there.
struct Objects<'a> {
    session: &'a Session,
    sets: BTreeMap<String, Option<StatefulSet>>,
    revisions: BTreeMap<String, Option<Revision>>,
}

impl Objects<'_> {
    async fn of_pod(
        &mut self,
        pod: &Pod,
    ) -> Result<Result<(Owner, Revision), NotComparable>, SelectionError> {
        let controllers =
            pod.owner_references().iter().filter(|owner| owner.controller == Some(true));
        let Some(owner) = controllers.into_iter().find(|owner| owner.kind == "StatefulSet") else {
            return Ok(Err(NotComparable::NoStatefulSet));
        };
        let name = owner.name.clone();
        let Some(set) = self.set(&name).await?.filter(|set| set.uid() == Some(owner.uid.clone()))
        else {
            return Ok(Err(NotComparable::OwnerGone(name)));
        };
        let status = set.status.as_ref();
        let update = status.and_then(|status| status.update_revision.clone());
        let Some(update) = update.filter(|_| unseen_generation(&set).is_none()) else {
            return Ok(Err(NotComparable::NotObserved(name)));
        };
        let Some(made_from) = pod.labels().get(REVISION_LABEL) else {
            return Ok(Err(NotComparable::NoRevision));
        };
        let Some(actual) = self.revision(made_from).await? else {
            return Ok(Err(NotComparable::RevisionGone(made_from.clone())));
        };
        let Some(wanted) = self.revision(&update).await? else {
            return Ok(Err(NotComparable::RevisionGone(update)));
        };
        Ok(Ok((Owner::new(&set, wanted), actual)))
    }

    async fn set(&mut self, name: &str) -> Result<Option<StatefulSet>, SelectionError> {
        if !self.sets.contains_key(name) {
            let found = apiserver::stateful_set(self.session, name).await?;
            self.sets.insert(name.to_owned(), found);
        }
        Ok(self.sets.get(name).cloned().flatten())
    }

    async fn revision(&mut self, name: &str) -> Result<Option<Revision>, SelectionError> {
        if !self.revisions.contains_key(name) {
            let found = apiserver::controller_revision(self.session, name).await?;
            self.revisions.insert(name.to_owned(), found.as_ref().map(Revision::from_object));
        }
        Ok(self.revisions.get(name).cloned().flatten())
    }
}

/// The container in which the manager runs: the one that names its port, or else the one that
/// `kubectl exec` takes.
fn engine_container(pod: &Pod, manager_port: u16) -> String {
    let by_annotation = || pod.annotations().get(DEFAULT_CONTAINER).cloned();
    let first = || Some(pod.spec.as_ref()?.containers.first()?.name.clone());
    let by_port = container_with(&ContainerPorts::of(pod), manager_port).map(str::to_owned);
    by_port.or_else(by_annotation).or_else(first).unwrap_or_default()
}
