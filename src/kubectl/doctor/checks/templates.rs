//! Checks the pod templates: the manager in front of the engine, the directory of its state, and
//! settings that would kill it.

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use serde_json::{Value, json};
use stayput_inject::{Entrypoint, OperatedBy, entrypoint, files_by_sub_path};
use stayput_kube_access::workload::{
    ContainerFacts, DEFAULT_CONTAINER, deadly_probe, engine_container, is_stateful_set,
    probe_targets,
};
use stayput_pod_update::manager_option;

use crate::doctor::facts::Facts;
use crate::doctor::finding::Finding;

pub(crate) fn check(facts: &Facts) -> Vec<Finding> {
    facts.known_pods().iter().flat_map(|pod| of_pod(facts, pod)).collect()
}

fn of_pod(facts: &Facts, pod: &Pod) -> Vec<Finding> {
    let spec = facts.cluster.completed_spec();
    let name = pod.name_any();
    let object = format!("Pod/{name}");
    let containers = ContainerFacts::of(pod);
    let default = pod.annotations().get(DEFAULT_CONTAINER).map(String::as_str);
    let container_name = engine_container(&containers, spec.manager.port, default);
    let written = json!(pod.spec);
    let mut containers = written["containers"].as_array().into_iter().flatten();
    let Some(container) = containers.find(|one| one["name"] == container_name) else {
        return Vec::new();
    };
    let remedy = inject(facts, pod);
    let entry = match entrypoint(container) {
        Entrypoint::Engine => Some(Finding::error(
            "no_manager",
            &object,
            format!("container {container_name} starts the engine without the manager"),
            &remedy,
        )),
        Entrypoint::Behind(program) => Some(
            Finding::error(
                "manager_behind_shell",
                &object,
                format!(
                    "{program} stays in front of the manager in container {container_name}: the \
                     manager is not the first process, and gets no signal of the kubelet"
                ),
                &remedy,
            )
            .into_warning(),
        ),
        Entrypoint::Manager => state_directory(&object, &written, container, &remedy),
    };
    let targets = pod.spec.as_ref().map(probe_targets).unwrap_or_default();
    let probe = deadly_probe(&targets, "the pod", spec.engine.port)
        .map(|why| Finding::error("liveness_would_kill", &object, why, &remedy));
    let stages = manager_option(container, "stage").is_ok_and(|stage| !stage.is_empty());
    let files = files_by_sub_path(&written, container);
    let by_sub_path = (!files.is_empty()).then(|| {
        let how = if stages { "beside what the manager stages" } else { "without --stage" };
        let message = format!(
            "{} mounted by subPath {how}: a change does not arrive in a living pod, so a restart in \
             place runs on the old content",
            files.join(", ")
        );
        Finding::error("sub_path", &object, message, &remedy).into_warning()
    });
    let policy = not_made_anew(&object, container_name, container, facts, pod);
    entry.into_iter().chain(probe).chain(by_sub_path).chain(policy).collect()
}

/// A finding for a container that stays down when its process has ended with code 0, as the manager's
/// does for another one.
fn not_made_anew(
    object: &str,
    name: &str,
    container: &Value,
    facts: &Facts,
    pod: &Pod,
) -> Option<Finding> {
    let policy = container["restartPolicy"].as_str().filter(|policy| *policy != "Always")?;
    let owner = pod.owner_references().iter().find(|owner| is_stateful_set(owner));
    let remedy = owner.map_or_else(
        || format!("kubectl -n {} get pod {} -o yaml", facts.namespace(), pod.name_any()),
        |owner| format!("kubectl -n {} edit statefulset {}", facts.namespace(), owner.name),
    );
    let message = format!(
        "container {name} has restartPolicy: {policy}: the kubelet makes no other container in the same \
         pod, so that what needs one needs another pod (replace)"
    );
    Some(Finding::error("restart_policy", object, message, remedy).into_warning())
}

/// The command that shows the manager's changes of the pods of this owner: in the object that a person
/// may edit.
fn inject(facts: &Facts, pod: &Pod) -> String {
    let namespace = facts.namespace();
    let Some(owner) = pod.owner_references().iter().find(|owner| is_stateful_set(owner)) else {
        return format!("kubectl -n {namespace} get pod {} -o yaml", pod.name_any());
    };
    let set = facts.sets.get(&owner.name).and_then(|set| set.as_ref().ok()?.as_ref());
    let operated = set.and_then(|set| OperatedBy::of(&json!(set.metadata)));
    let (resource, name) = operated
        .as_ref()
        .map_or(("statefulset", &owner.name), |operated| (operated.resource, &operated.name));
    format!("kubectl -n {namespace} get {resource} {name} -o yaml | kubectl stayput inject --check")
}

/// A finding for a journal that does not outlive the container: a node that must stay stopped would be
/// started with the container.
fn state_directory(object: &str, pod: &Value, container: &Value, remedy: &str) -> Option<Finding> {
    let error = |message: String| Finding::error("state_directory", object, message, remedy);
    let directory = match manager_option(container, "state-dir") {
        Err(unknown) => {
            let message = format!("{} has no value in the spec of the pod", unknown.option);
            return Some(error(message).into_unknown());
        }
        Ok(values) => values.into_iter().next_back(),
    };
    let Some(directory) = directory else {
        return Some(error("the manager has no --state-dir, so it keeps no journal".into()));
    };
    let mounts = container["volumeMounts"].as_array().into_iter().flatten();
    let path = |mount: &Value| mount["mountPath"].as_str().unwrap_or_default().to_owned();
    let is_below = |path: &str| {
        let path = path.trim_end_matches('/');
        !path.is_empty() && (directory == path || directory.starts_with(&format!("{path}/")))
    };
    let volume =
        mounts.filter(|mount| is_below(&path(mount))).max_by_key(|mount| path(mount).len());
    let Some(mount) = volume else {
        return Some(error(format!(
            "--state-dir {directory} is on no volume: the journal is lost with every restart of the \
             container"
        )));
    };
    let mut volumes = pod["volumes"].as_array().into_iter().flatten();
    let claim = volumes.find(|volume| volume["name"] == mount["name"])?;
    claim["persistentVolumeClaim"].is_object().then(|| {
        error(format!(
            "--state-dir {directory} is on a volume that outlives the pod: a new pod would take over \
             the journal of another one; an emptyDir is right"
        ))
        .into_warning()
    })
}
