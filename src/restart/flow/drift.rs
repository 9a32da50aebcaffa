//! Restarts we ask for ourselves: nodes that run on another config than their sources'.

use crate::planner::Planner;
use crate::view::View;
use crate::{Code, OnConfigChange, Pod, Request, Sources, Strategy, Target};
use stayput_api::State;

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
                return;
            }
        };
        if self.snapshot.cluster.paused {
            return;
        }
        let id = self.change_id();
        if self.has_tried(&id) {
            let entry = self.ledger.history.iter().rev().find(|entry| entry.id == id);
            let ended = entry.map_or("ended", |entry| entry.outcome.as_str());
            let message =
                format!("its change was rolled out as {id}, which {ended}: ask for a restart");
            for pod in drifting {
                self.wait(&pod.uid, Code::PendingRestart, message.clone());
            }
            return;
        }
        let mut nodes: Vec<String> = drifting.iter().map(|pod| pod.node.clone()).collect();
        nodes.sort();
        let request = Request {
            id,
            strategy,
            target: Target { nodes, ..Target::default() },
            by: Some("spec.restart.onConfigChange".into()),
            ..Request::default()
        };
        self.remember(&request.id);
        self.open(request);
    }

    /// Whether the run's config is not what the sources say. An absent source is unknown, and an
    /// engine that does not run drifts from nothing.
    pub(crate) fn is_pending(&self, pod: &Pod) -> bool {
        drifts(pod) && View::manager_of(pod).is_ok()
    }

    /// A name for what the sources have now, of all pods: asked for once, also when it did not come
    /// up and was rolled back.
    fn change_id(&self) -> String {
        let mut wanted: Vec<(&str, &[u8])> = self
            .view
            .pods()
            .filter_map(|pod| match &pod.sources {
                Sources::Checksum(wanted) => Some((pod.node.as_str(), wanted.as_bytes())),
                Sources::Undeclared | Sources::Absent(_) => None,
            })
            .collect();
        wanted.sort_unstable();
        let checksum = stayput_api::checksum::Checksum::of_contents(wanted).to_string();
        let short: String = checksum.trim_start_matches("sha256:").chars().take(16).collect();
        format!("config-{short}")
    }

    /// Whether this is the change we asked for last; one that comes back later is a new wish.
    fn has_tried(&self, id: &str) -> bool {
        let mut ours = self.ledger.handled.iter().rev().filter(|id| id.starts_with("config-"));
        ours.next().is_some_and(|last| last == id)
    }
}

/// The same of a pod by itself.
pub(crate) fn drifts(pod: &Pod) -> bool {
    let (Sources::Checksum(wanted), Ok(manager)) = (&pod.sources, &pod.manager) else {
        return false;
    };
    let running = manager.run.as_ref().and_then(|run| run.checksum.as_ref());
    manager.state == State::Running && running.is_some_and(|checksum| checksum != wanted)
}
