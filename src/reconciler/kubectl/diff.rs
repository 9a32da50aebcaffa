//! `diff`: what each pod was made from against what its owner wants now, and the least step between
//! them. Reads StatefulSets and their revisions; changes nothing.

mod read;

use stayput_reuse::Update;

use crate::workload::{NotComparable, Set};

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
    pub(super) rolling: Vec<Set>,
}
