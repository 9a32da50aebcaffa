//! The bounds of a Kubernetes node, and what its kubelet and the apiserver refuse.

use std::collections::BTreeSet;

/// What a Kubernetes node can do.
#[derive(Debug, Clone, Default)]
pub(crate) struct Limits {
    /// Images that cannot be pulled.
    pub(crate) bad_images: BTreeSet<String>,
    /// Images in which the manager itself ends at once.
    pub(crate) ending_images: BTreeSet<String>,
    /// Images of which earlier containers have ended: the kubelet waits before it makes another one.
    pub(crate) delayed_images: BTreeSet<String>,
    /// Images in which the engine ends soon after its start.
    pub(crate) broken_images: BTreeSet<String>,
    /// Values of a ConfigMap with which the engine ends soon after its start, in a container that has read them.
    pub(crate) broken_values: BTreeSet<String>,
    /// Values of the variable with which the engine ends soon after its start.
    pub(crate) broken_variables: BTreeSet<String>,
    /// Images in which a container beside the manager's is never ready.
    pub(crate) unready_images: BTreeSet<String>,
    /// Sizes that it can never give.
    pub(crate) infeasible: BTreeSet<String>,
    /// Sizes that only a new container gets: the one that runs uses more.
    pub(crate) low: BTreeSet<String>,
    /// Sizes for which there is no room now, as is known before.
    pub(crate) no_room: BTreeSet<String>,
    /// Sizes for which there is no room now, which only the kubelet knows.
    pub(crate) deferred: BTreeSet<String>,
    /// Sizes that the apiserver gives to no pod.
    pub(crate) refused: BTreeSet<String>,
    /// A Secret that a new container of the manager needs is absent.
    pub(crate) lacks_secret: bool,
    /// No Kubernetes node takes a new pod.
    pub(crate) is_full: bool,
    /// Its volume is on its Kubernetes node, which does not take it again.
    pub(crate) would_not_fit: bool,
    /// Somebody deletes its volume claim while it is made anew.
    pub(crate) loses_claim: bool,
    /// The apiserver lets nobody delete it.
    pub(crate) is_kept: bool,
    /// The apiserver lets nobody change images and sizes of it.
    pub(crate) is_fixed: bool,
    /// Admission makes another image of each that a pod is changed to.
    pub(crate) mirrors: bool,
    /// The same, and no dry run has told it.
    pub(crate) mirrors_unseen: bool,
    /// Its data is on no volume claim.
    pub(crate) has_no_claim: bool,
}

impl Limits {
    /// The engine ends soon after its start in a container of this image that has read this value.
    pub(crate) fn break_engine(&self, image: &str, value: &str) -> bool {
        self.broken_images.contains(image) || self.broken_values.contains(value)
    }
}
