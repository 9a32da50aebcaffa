//! Compares the revision that a pod was made from with that of its StatefulSet.

use k8s_openapi::api::apps::v1::ControllerRevision;
use serde_json::Value;
use stayput_pod_update::{Abilities, Content, Declaration, Update, UpdateStep, compare};

use super::{ContainerFacts, container_with};

/// Annotation with the container that `kubectl exec` uses.
pub const DEFAULT_CONTAINER: &str = "kubectl.kubernetes.io/default-container";

/// Reason why a pod cannot be compared.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotComparable {
    #[error("no StatefulSet owns it")]
    NoStatefulSet,
    #[error("its StatefulSet {0} is not there")]
    OwnerGone(String),
    #[error("it has no label controller-revision-hash")]
    NoRevision,
    #[error("the revision {0} that it was made from is no longer kept; see revisionHistoryLimit")]
    RevisionGone(String),
    #[error("StatefulSet {0} was changed, and the StatefulSet controller has not seen it yet")]
    NotObserved(String),
}

/// A pod template as a ControllerRevision keeps it: with fields that we do not know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revision {
    name: String,
    pub template: Value,
}

impl Revision {
    pub fn of(revision: &ControllerRevision) -> Self {
        let data = revision.data.as_ref().map_or(&Value::Null, |data| &data.0);
        let mut template = data["spec"]["template"].clone();
        // `$patch` says how the revision is to be applied, and is no field of a template.
        template.as_object_mut().map(|template| template.remove("$patch"));
        Self { name: revision.metadata.name.clone().unwrap_or_default(), template }
    }
}

/// The update of a pod from its actual revision to the wanted one. Two templates that mean the same need the
/// label of the revision all the same, and tolerations that are added need another pod: nothing adds them to
/// this one.
pub fn update(
    [actual, wanted]: [&Revision; 2],
    engine_container: &str,
    abilities: Abilities,
) -> Update {
    // The contents of Secrets and ConfigMaps are compared by their checksum.
    let content = Content::default();
    let of = |template| Declaration { template, content: &content };
    let (from, to) = (of(&actual.template), of(&wanted.template));
    let Update { mut because, .. } = compare(to, from, engine_container, abilities);
    for difference in &mut because {
        if difference.field.starts_with("spec.tolerations") {
            difference.step = UpdateStep::Replace;
        }
    }
    because.sort_by(|one, other| other.step.cmp(&one.step).then(one.field.cmp(&other.field)));
    let least = if actual.name == wanted.name { UpdateStep::None } else { UpdateStep::Relabel };
    let step = because.first().map_or(least, |first| first.step);
    Update { step, because }
}

/// The container in which the manager runs: the one that names its port, or else the one that `kubectl exec`
/// uses, or the first.
pub fn engine_container<'a>(
    containers: &'a [ContainerFacts],
    manager_port: u16,
    default_container: Option<&'a str>,
) -> &'a str {
    let first = || containers.first().map(|container| container.name.as_str());
    container_with(containers, manager_port)
        .or(default_container)
        .or_else(first)
        .unwrap_or_default()
}
