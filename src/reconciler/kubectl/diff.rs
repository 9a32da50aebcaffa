//! `diff`: what each pod was made from against what its owner wants now, and the least step between
//! them. Reads StatefulSets and their revisions; changes nothing.

mod owner;
mod read;

use stayput_reuse::{Abilities, Content, Declaration, Update, compare};

pub(super) use owner::{Owner, Revision};
pub(super) use read::read;

/// One pod, and how it gets to what is wanted.
#[derive(Debug)]
pub(super) struct PodDiff {
    pub(super) pod: String,
    pub(super) node: String,
    pub(super) update: Result<Update, NotComparable>,
}

/// All pods of a SearchCluster, sorted by name.
#[derive(Debug)]
pub(super) struct Diff {
    pub(super) cluster: String,
    pub(super) namespace: String,
    pub(super) pods: Vec<PodDiff>,
    /// StatefulSets that replace their pods by themselves, so that no step but `replace` is left.
    pub(super) rolling: Vec<String>,
}

/// Why a pod cannot be compared.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum NotComparable {
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

/// How the pod gets from the revision that it was made from to the one that its owner wants.
pub(super) fn of_pod(
    owner: &Owner,
    actual: &Revision,
    ordinal: Option<i64>,
    engine_container: &str,
    abilities: Abilities,
) -> Update {
    // What Secrets and ConfigMaps contain is the reconciler's to compare.
    let content = Content::default();
    let declaration = |revision| Declaration { template: revision, content: &content };
    let wanted = owner.wants(ordinal).then(|| declaration(&owner.update.template));
    compare(wanted, declaration(&actual.template), engine_container, abilities)
}
