//! Restarts we ask for ourselves: nodes that run on another config than their sources'.

use crate::api::State;
use crate::restart::planner::Planner;
use crate::restart::{Code, OnConfigChange, Pod, Request, Sources, Strategy, Target};

impl Planner<'_> {
    /// Asks for a restart of the drifting nodes, where the policy says so; names them otherwise.
    pub(super) fn notice_drift(&mut self) {
        if self.ledger.restart.is_some() || !self.snapshot.cluster.has_status {
            return;
        }
        let drifting: Vec<&Pod> = self
            .view
            .pods()
            .filter(|pod| self.is_pending(pod) && !self.is_to_be_stopped(pod))
            .collect();
        if drifting.is_empty() {
            return;
        }
        let strategy = match self.policy.on_config_change {
            OnConfigChange::Rolling => Strategy::Rolling,
            OnConfigChange::Coordinated => Strategy::Coordinated,
            OnConfigChange::None => {
                for pod in drifting {
                    let uid = pod.uid.clone();
                    self.wait(
                        &uid,
                        Code::PendingRestart,
                        "its config has changed since it was started; ask for a restart",
                    );
                }
                self.again_within(crate::restart::planner::AT_REST);
                return;
            }
        };
        if self.snapshot.cluster.paused || self.has_tried(&drifting) {
            return;
        }
        let mut nodes: Vec<String> = drifting.iter().map(|pod| pod.node.clone()).collect();
        nodes.sort();
        let request = Request {
            id: self.change_id(&drifting),
            strategy,
            target: Target { nodes, ..Target::default() },
            by: Some("spec.restart.onConfigChange".into()),
            ..Request::default()
        };
        self.ledger.remember(&request.id);
        self.open(request);
    }

    /// Whether the run's config is not what the sources say. An absent source is unknown, and an
    /// engine that does not run drifts from nothing.
    pub(in crate::restart) fn is_pending(&self, pod: &Pod) -> bool {
        self.view.manager(&pod.uid).is_ok() && drifts(pod)
    }

    /// A name for this very change: asked for once, also when it did not come up and was rolled
    /// back.
    fn change_id(&self, drifting: &[&Pod]) -> String {
        let mut lines: Vec<(String, Vec<u8>)> = drifting
            .iter()
            .filter_map(|pod| match &pod.sources {
                Sources::Checksum(wanted) => Some((pod.node.clone(), wanted.clone().into_bytes())),
                Sources::Undeclared | Sources::Absent(_) => None,
            })
            .collect();
        lines.sort();
        let files = lines.iter().map(|(node, wanted)| (node.as_str(), wanted.as_slice()));
        let checksum = crate::checksum::Checksum::of_contents(files).to_string();
        let short: String = checksum.trim_start_matches("sha256:").chars().take(16).collect();
        format!("config-{short}")
    }

    fn has_tried(&self, drifting: &[&Pod]) -> bool {
        self.ledger.has_handled(&self.change_id(drifting))
    }
}

/// The same of a pod by itself.
pub(in crate::restart) fn drifts(pod: &Pod) -> bool {
    let (Sources::Checksum(wanted), Ok(manager)) = (&pod.sources, &pod.manager) else {
        return false;
    };
    let running = manager.run.as_ref().and_then(|run| run.checksum.as_ref());
    manager.state == State::Running && running.is_some_and(|checksum| checksum != wanted)
}
