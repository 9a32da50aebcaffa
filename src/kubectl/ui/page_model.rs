//! State of a cluster at one moment, and the next one that follows from it. Pure.

use std::collections::{BTreeMap, VecDeque};

use k8s_openapi::api::core::v1::Pod;

use super::location::{Location, Zones, location};
use crate::cluster_view::ClusterView;
use crate::leader::Reconciler;
use crate::progress::{Line, Reported, State, observe};
use stayput_kube_access::cluster::SearchCluster;
use stayput_restart::Time;

/// Maximum number of lines that are kept.
const MAX_LINES: usize = 50;

/// Freshness of the page.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) enum Source {
    #[default]
    Live,
    /// The apiserver stopped delivering the state, for this reason.
    Lost(String),
    Deleted,
}

/// A cluster at one moment.
#[derive(Debug, Clone, Default)]
pub(super) struct PageModel {
    pub(super) view: ClusterView,
    /// Place of each node in the picture, by name of the pod.
    pub(super) locations: BTreeMap<String, Location>,
    /// Observed changes, the latest last.
    pub(super) lines: VecDeque<Line>,
    pub(super) source: Source,
    /// Time at which this state was current.
    pub(super) fresh: Time,
    /// Parts of the restart that are in the lines.
    reported: Reported,
}

impl PageModel {
    /// The next model, after a read.
    #[must_use]
    pub(super) fn read<'a>(
        self,
        cluster: &SearchCluster,
        pods: impl Iterator<Item = &'a Pod> + Clone,
        zones: &Zones,
        now: Time,
    ) -> Self {
        let reconciler = self.view.reconciler;
        let view = ClusterView { reconciler, ..ClusterView::from_objects(cluster, pods.clone()) };
        let name = |pod: &Pod| pod.metadata.name.clone().unwrap_or_default();
        let locations = pods.map(|pod| (name(pod), location(cluster, pod, zones))).collect();
        let observation = observe(self.reported, &view, now);
        let reported = match observation.state {
            State::Open => observation.reported,
            State::Ended(_) | State::Lost(_) => Reported::new(None),
        };
        let mut lines = self.lines;
        lines.extend(observation.lines);
        lines.drain(..lines.len().saturating_sub(MAX_LINES));
        Self { view, locations, lines, source: Source::Live, fresh: now, reported }
    }

    /// This model with the new state of the reconciler.
    #[must_use]
    pub(super) fn with_reconciler(self, reconciler: Reconciler) -> Self {
        Self { view: ClusterView { reconciler, ..self.view }, ..self }
    }

    /// The next model, after a failed read.
    #[must_use]
    pub(super) fn lost(self, why: String) -> Self {
        Self { source: Source::Lost(why), ..self }
    }

    /// The next model, after the SearchCluster was deleted.
    #[must_use]
    pub(super) fn deleted(self, now: Time) -> Self {
        Self { source: Source::Deleted, fresh: now, ..self }
    }
}
