//! Annotations of a pod, read once for a plan: their texts lie all over the memory, and steps ask for
//! the same ones again and again.

use super::{Cluster, Phase, Pod, annotation};

/// The annotations of one pod that every plan reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Marks<'a> {
    /// The phase, whether we or a person wrote it.
    pub(super) phase: Option<&'a str>,
    /// The restart id and the phase that we last wrote, as one text.
    pub(super) shown: Option<&'a str>,
    /// True if the spec or an annotation requests that the node is kept stopped.
    pub(super) is_to_be_stopped: bool,
}

impl<'a> Marks<'a> {
    pub(super) fn of(cluster: &Cluster, pod: &'a Pod) -> Self {
        let mut marks = Self { is_to_be_stopped: cluster.keeps_stopped(pod), ..Self::default() };
        // The texts of keys with different lengths need not be compared.
        for (key, value) in &pod.annotations {
            match key.as_str() {
                annotation::PHASE => marks.phase = Some(value),
                annotation::SHOWN => marks.shown = Some(value),
                _ => {}
            }
        }
        marks
    }

    /// The phase that we last wrote on the pod.
    pub(super) fn shown_phase(&self) -> Option<&'a str> {
        self.shown_pair().map(|(_, phase)| phase)
    }

    /// The restart id and the phase that we last wrote on the pod.
    pub(super) fn shown_pair(&self) -> Option<(&'a str, &'a str)> {
        self.shown?.split_once(' ')
    }

    /// The phase of this restart that the pod shows, unless it shows one of another restart.
    pub(super) fn shown_of(&self, id: &str) -> Option<Phase> {
        let (_, phase) = self.shown_pair().filter(|(of, _)| *of == id)?;
        Phase::parse(phase).ok()
    }
}
