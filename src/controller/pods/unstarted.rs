//! Reads from a pod's status, by the scheduler and the kubelet, why it has not started yet.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{ContainerStatus, Pod, PodStatus};
use stayput_restart::NotStarted;

/// A pod of which Kubernetes has not started all containers yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unstarted {
    /// Containers that have never run, without init containers.
    never_ran: BTreeSet<String>,
    why: NotStarted,
}

impl Unstarted {
    /// The state of a pod that has not started; `None` once every container has run.
    pub(super) fn of(pod: &Pod) -> Option<Self> {
        let status = pod.status.as_ref()?;
        // A pod is `Pending` until all of its containers have run.
        if status.phase.as_deref() != Some("Pending") {
            return None;
        }
        let statuses = status.container_statuses.as_deref().unwrap_or_default();
        let ran: BTreeSet<&str> =
            statuses.iter().filter(|one| has_run(one)).map(|one| one.name.as_str()).collect();
        let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
        let names = containers.map(|container| &container.name);
        let never_ran = names.filter(|name| !ran.contains(name.as_str())).cloned().collect();
        Some(Self { never_ran, why: why(status) })
    }

    /// Reason why this container has never run; `None` if it has.
    pub(crate) fn of_container(&self, name: &str) -> Option<NotStarted> {
        self.never_ran.contains(name).then(|| self.why.clone())
    }
}

fn has_run(container: &ContainerStatus) -> bool {
    let states = [&container.state, &container.last_state].into_iter().flatten();
    container.restart_count > 0
        || states.into_iter().any(|state| state.running.is_some() || state.terminated.is_some())
}

fn why(status: &PodStatus) -> NotStarted {
    let conditions = status.conditions.as_deref().unwrap_or_default();
    let scheduled = conditions.iter().find(|one| one.type_ == "PodScheduled");
    if let Some(refused) = scheduled.filter(|one| one.status == "False") {
        return NotStarted {
            container: None,
            reason: refused.reason.clone().unwrap_or_default(),
            message: refused.message.clone().unwrap_or_default(),
        };
    }
    let init = status.init_container_statuses.as_deref().unwrap_or_default();
    let main = status.container_statuses.as_deref().unwrap_or_default();
    let hindered = init.iter().find_map(hindrance).or_else(|| main.iter().find_map(hindrance));
    hindered.unwrap_or_else(|| NotStarted {
        container: None,
        reason: NotStarted::CREATING.to_owned(),
        message: String::new(),
    })
}

/// Reason why a container waits; `None` if it runs, has done its work, or waits for the init containers.
fn hindrance(container: &ContainerStatus) -> Option<NotStarted> {
    let state = container.state.as_ref()?;
    let (reason, message) = if let Some(waiting) = &state.waiting {
        (waiting.reason.clone(), waiting.message.clone())
    } else {
        let ended = state.terminated.as_ref().filter(|ended| ended.exit_code != 0)?;
        (ended.reason.clone(), Some(format!("ended with code {}", ended.exit_code)))
    };
    let reason = reason.filter(|reason| reason != "PodInitializing")?;
    let message = message.unwrap_or_default();
    Some(NotStarted { container: Some(container.name.clone()), reason, message })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn unstarted(status: Value) -> Option<Unstarted> {
        let pod = json!({
            "spec": {"containers": [{"name": "search"}, {"name": "exporter"}]},
            "status": status,
        });
        Unstarted::of(&serde_json::from_value(pod).expect("a pod"))
    }

    fn container(name: &str, state: Value, last: Value, restarts: u32) -> Value {
        json!({
            "name": name, "image": "i", "imageID": "", "ready": false, "restartCount": restarts,
            "state": state, "lastState": last,
        })
    }

    fn waiting(name: &str, reason: &str, message: &str) -> Value {
        container(name, json!({"waiting": {"reason": reason, "message": message}}), json!({}), 0)
    }

    /// Why the engine's container has never run, in one line.
    fn why(status: Value) -> Option<String> {
        Some(unstarted(status)?.of_container("search")?.to_string())
    }

    #[test] // proves UPDATE-7
    fn each_hindrance_is_told_in_the_words_of_kubernetes() {
        let initializing = waiting("search", "PodInitializing", "");
        let crashing = container(
            "stayput",
            json!({"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s"}}),
            json!({"terminated": {"exitCode": 64}}),
            3,
        );
        let failed = container(
            "stayput",
            json!({"terminated": {"exitCode": 64, "reason": "Error"}}),
            json!({}),
            0,
        );
        for (status, expected) in [
            (
                json!({"conditions": [{"type": "PodScheduled", "status": "False",
                    "reason": "Unschedulable", "message": "0/1 nodes are available"}]}),
                "Unschedulable: 0/1 nodes are available",
            ),
            (
                json!({"containerStatuses": [waiting("search", "ImagePullBackOff", "not found")]}),
                "container search: ImagePullBackOff: not found",
            ),
            (
                json!({"containerStatuses": [waiting("search", "CreateContainerConfigError", "secret \"a\" not found")]}),
                "container search: CreateContainerConfigError: secret \"a\" not found",
            ),
            (
                json!({"initContainerStatuses": [crashing], "containerStatuses": [initializing.clone()]}),
                "container stayput: CrashLoopBackOff: back-off 10s",
            ),
            (
                json!({"initContainerStatuses": [failed], "containerStatuses": [initializing.clone()]}),
                "container stayput: Error: ended with code 64",
            ),
            (json!({"containerStatuses": [initializing]}), "ContainerCreating"),
            (json!({}), "ContainerCreating"),
        ] {
            let mut status = status;
            status["phase"] = json!("Pending");
            assert_eq!(why(status.clone()).as_deref(), Some(expected), "{status:#}");
            status["phase"] = json!("Running");
            assert_eq!(why(status), None);
        }
    }

    #[test] // proves UPDATE-7
    fn a_container_that_has_run_is_not_one_that_never_started() {
        let exporter = waiting("exporter", "ImagePullBackOff", "not found");
        for search in [
            container("search", json!({"running": {}}), json!({}), 0),
            container("search", json!({"terminated": {"exitCode": 1}}), json!({}), 0),
            container(
                "search",
                json!({"waiting": {"reason": "ImagePullBackOff"}}),
                json!({"terminated": {"exitCode": 137}}),
                0,
            ),
            container("search", json!({"waiting": {"reason": "ImagePullBackOff"}}), json!({}), 1),
        ] {
            let status = json!({"phase": "Pending", "containerStatuses": [search, exporter]});
            let unstarted = unstarted(status).expect("the other one has not run");
            assert_eq!(unstarted.of_container("search"), None);
            assert!(unstarted.of_container("exporter").is_some());
        }
    }
}
