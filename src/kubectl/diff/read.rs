//! Reads the objects for `diff`.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::apps::v1::{ControllerRevision, StatefulSet};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use stayput_kube_access::cluster::SearchCluster;
use stayput_kube_access::workload::{
    ContainerFacts, DEFAULT_CONTAINER, NotComparable, REVISION_LABEL, Revision, Set,
    engine_container, is_stateful_set, update,
};
use stayput_pod_update::{Abilities, UpdateStep};

use crate::apiserver::objects::Asked;
use crate::apiserver::{REVISIONS, STATEFUL_SETS};
use crate::diff::{Diff, PodDiff, Wanted, leaves, with_content};
use crate::options::into_commands;
use crate::selection::SelectionError;
use crate::session::Session;
use crate::view::pod::PodView;
use crate::{apiserver, selection};

/// All pods of the SearchCluster, each compared with the template that its owner wants.
pub(crate) async fn read(session: &Session, name: Option<&str>) -> Result<Diff, SelectionError> {
    let cluster = selection::cluster(session, name).await?;
    let mut pods = apiserver::pods(&session.client, &cluster).await?;
    pods.sort_by_key(ResourceExt::name_any);
    let abilities = Abilities { resize: apiserver::serves_resize(session).await? };
    let port = cluster.spec.manager.port;
    let label = cluster.spec.pods.node_name_label.as_deref();

    let ledger = cluster.status.as_ref().map(|status| &status.ledger);
    let under_way: BTreeSet<&str> = ledger
        .iter()
        .flat_map(|ledger| ledger.under_way())
        .map(|member| member.node.as_str())
        .collect();

    let mut objects = Objects { session, sets: BTreeMap::new(), revisions: BTreeMap::new() };
    let mut compared = Vec::new();
    for pod in &pods {
        let node = PodView::from_object(pod, label, port, None).node;
        // That of a node under way is of its restart, whatever that was requested for.
        let mut reports = cluster.status.iter().flat_map(|status| &status.report.nodes);
        let report = reports.find(|report| report.name == node);
        let report = report.filter(|_| !under_way.contains(node.as_str()));
        let mut is_outdated = false;
        let wanted = match objects.of_pod(&cluster, pod).await? {
            Ok(PodGoal::Leaves(wanted)) => wanted,
            Ok(PodGoal::Revisions([actual, wanted])) => {
                let containers = ContainerFacts::of(pod);
                let default = pod.annotations().get(DEFAULT_CONTAINER).map(String::as_str);
                let container = engine_container(&containers, port, default);
                let update = update([&actual, &wanted], container, abilities);
                is_outdated = update.step > UpdateStep::None;
                Wanted::Update(with_content(update, report))
            }
            Err(reason) => Wanted::Unknown(reason),
        };
        compared.push(PodDiff::new(pod.name_any(), node, wanted, is_outdated));
    }
    let sets = objects.sets.into_values().flatten();
    let rolling: Vec<Set> = sets.filter(|set| set.replaced_from.is_some()).collect();
    let namespace = cluster.namespace().unwrap_or_default();
    let options = session.options_in_shell();
    let on_delete = |set: &Set| into_commands(&set.on_delete_command(&namespace), &options);
    Ok(Diff {
        cluster: cluster.name_any(),
        pods: compared,
        on_delete: rolling.iter().map(on_delete).collect(),
        rolling_stateful_sets: rolling.into_iter().map(|set| set.name).collect(),
        namespace,
    })
}

/// The owner's wish for a pod.
enum PodGoal {
    /// The pod is about to be removed.
    Leaves(Wanted),
    /// The revision that the pod was made from, and the wanted one.
    Revisions([Revision; 2]),
}

/// Objects read so far, by name, each read once; `None` for an object that does not exist.
struct Objects<'a> {
    session: &'a Session,
    sets: BTreeMap<String, Option<Set>>,
    revisions: BTreeMap<String, Option<Revision>>,
}

impl Objects<'_> {
    async fn of_pod(
        &mut self,
        cluster: &SearchCluster,
        pod: &Pod,
    ) -> Result<Result<PodGoal, NotComparable>, SelectionError> {
        let controllers =
            pod.owner_references().iter().filter(|owner| owner.controller == Some(true));
        let Some(owner) = controllers.into_iter().find(|owner| is_stateful_set(owner)) else {
            return Ok(Err(NotComparable::NoStatefulSet));
        };
        let name = owner.name.clone();
        let Some(set) = self.set(&name).await?.filter(|set| set.uid == owner.uid) else {
            return Ok(Err(NotComparable::OwnerGone(name)));
        };
        if let Some(leaves) = leaves(cluster, &set, &pod.name_any()) {
            return Ok(Ok(PodGoal::Leaves(leaves)));
        }
        let update = match set.wanted() {
            Ok(update) => update.to_owned(),
            Err(reason) => return Ok(Err(reason)),
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
        Ok(Ok(PodGoal::Revisions([actual, wanted])))
    }

    async fn set(&mut self, name: &str) -> Result<Option<Set>, SelectionError> {
        if !self.sets.contains_key(name) {
            let found = Asked::of(self.session).find::<StatefulSet>(STATEFUL_SETS, name).await?;
            self.sets.insert(name.to_owned(), found.as_ref().map(Set::of));
        }
        Ok(self.sets.get(name).cloned().flatten())
    }

    async fn revision(&mut self, name: &str) -> Result<Option<Revision>, SelectionError> {
        if !self.revisions.contains_key(name) {
            let found = Asked::of(self.session).find::<ControllerRevision>(REVISIONS, name).await?;
            self.revisions.insert(name.to_owned(), found.as_ref().map(Revision::of));
        }
        Ok(self.revisions.get(name).cloned().flatten())
    }
}
