//! Checks the pods: their owners, templates, unwatched mounts, and labels that came while they ran.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use serde_json::{Value, json};
use stayput_inject::{Entrypoint, OperatedBy, entrypoint, files_by_sub_path};
use stayput_kube_access::cluster::UpdateMode;
use stayput_kube_access::pod::{
    Containers, Owner, REVISION_LABEL, controller, deadly_probe, probe_targets, unwatched,
};
use stayput_kube_access::stateful_set::{Set, replaces};
use stayput_pod_update::{Ignore, Source, SourceKind, Unwatched, manager_option};
use stayput_restart::{annotation, shell_word};

use crate::doctor::{Facts, Finding};
use crate::leader::NAME;

pub(crate) fn check_owners(facts: &Facts) -> Vec<Finding> {
    let mut found: Vec<Finding> = facts.sets.keys().flat_map(|name| of_set(facts, name)).collect();
    for pod in facts.known_pods() {
        let (namespace, name) = (facts.namespace(), pod.name_any());
        match controller(pod) {
            None => found.push(Finding::note(
                "no_owner",
                format!("Pod/{name}"),
                "nothing owns it: nobody makes it again if its node is lost",
                format!("kubectl -n {namespace} get pods -o yaml"),
            )),
            Some(owner) if Owner::of(pod).is_none() => found.push(Finding::error(
                "other_owner",
                format!("Pod/{name}"),
                format!(
                    "{} {} owns it, which may replace it at any time under another name",
                    owner.kind, owner.name
                ),
                format!(
                    "kubectl -n {namespace} get {} {}",
                    shell_word(&owner.kind.to_lowercase()),
                    shell_word(&owner.name)
                ),
            )),
            Some(_) => {}
        }
    }
    found
}

fn of_set(facts: &Facts, name: &str) -> Vec<Finding> {
    let namespace = facts.namespace();
    let object = format!("StatefulSet/{name}");
    let get = format!("kubectl -n {namespace} get statefulset {} -o yaml", shell_word(name));
    let set = match &facts.sets[name] {
        Err(unknown) => {
            return vec![Finding::unknown("owner", object, &unknown.message, get)];
        }
        Ok(None) => {
            let message = "it is not there, although pods say that it owns them";
            return vec![Finding::error("owner", object, message, get)];
        }
        Ok(Some(set)) => Set::of(set),
    };
    let pods = facts.known_pods().iter();
    let mut found: Vec<Finding> = pods
        .filter_map(|pod| {
            let owner = Owner::of(pod).filter(|owner| owner.name == name)?;
            let name = pod.name_any();
            let why = replaces(&set, namespace, &name, &owner.label)?;
            let remedy = set.keep_pods(namespace);
            Some(Finding::error("owner_will_replace", format!("Pod/{name}"), why, remedy))
        })
        .collect();
    // Of an operator's StatefulSet the operator decides.
    if set.replaced_from.is_some() && set.operator.is_none() {
        let message = "its update strategy is RollingUpdate: with every edit of its template it \
                       replaces its pods by itself, without the rules";
        let remedy = set.on_delete_command(namespace);
        // In place no edit can be carried out then.
        found.push(if facts.cluster.spec.update.mode == UpdateMode::InPlace {
            Finding::error("replaces_pods", object, message, remedy)
        } else {
            Finding::warning("replaces_pods", object, message, remedy)
        });
    }
    found
}

pub(crate) fn check_templates(facts: &Facts) -> Vec<Finding> {
    facts.known_pods().iter().flat_map(|pod| of_pod(facts, pod)).collect()
}

fn of_pod(facts: &Facts, pod: &Pod) -> Vec<Finding> {
    let spec = facts.cluster.completed_spec();
    let name = pod.name_any();
    let object = format!("Pod/{name}");
    let containers = Containers::of(pod);
    let container_name = containers.engine(spec.manager.port);
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
        Entrypoint::Behind(program) => Some(Finding::warning(
            "manager_behind_shell",
            &object,
            format!(
                "{program} stays in front of the manager in container {container_name}: the \
                     manager is not the first process, and gets no signal of the kubelet"
            ),
            &remedy,
        )),
        Entrypoint::Manager => state_directory(&object, &written, container, &remedy),
    };
    let targets = pod.spec.as_ref().map(probe_targets).unwrap_or_default();
    let probe = deadly_probe(&targets, "the pod", spec.engine.port)
        .map(|why| Finding::error("liveness_would_kill", &object, why, &remedy));
    let stages = manager_option(container, "stage").is_ok_and(|stage| !stage.is_empty());
    let files = files_by_sub_path(&written, container);
    // Otherwise a change is another container.
    let is_old = !files.is_empty() && facts.cluster.spec.update.mode != UpdateMode::InPlace;
    let by_sub_path = is_old.then(|| {
        let how = if stages { "beside what the manager stages" } else { "without --stage" };
        let message = format!(
            "{} mounted by subPath {how}: a change does not arrive in a living pod, so a restart in \
             place runs on the old content",
            files.join(", ")
        );
        Finding::warning("sub_path", &object, message, &remedy)
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
    let remedy = Editable::of(facts, pod).map_or_else(
        || format!("kubectl -n {} get pod {} -o yaml", facts.namespace(), pod.name_any()),
        |Editable { resource, name }| {
            format!("kubectl -n {} edit {resource} {name}", facts.namespace())
        },
    );
    let message = format!(
        "container {name} has restartPolicy: {policy}: the kubelet makes no other container in the same \
         pod, so that what needs one needs another pod (replace)"
    );
    Some(Finding::warning("restart_policy", object, message, remedy))
}

/// The command that shows the manager's changes of the pods of this owner: in the object that a person
/// may edit.
fn inject(facts: &Facts, pod: &Pod) -> String {
    let namespace = facts.namespace();
    match Editable::of(facts, pod) {
        None => format!("kubectl -n {namespace} get pod {} -o yaml", pod.name_any()),
        Some(Editable { resource, name }) => format!(
            "kubectl -n {namespace} get {resource} {name} -o yaml | kubectl stayput inject --check"
        ),
    }
}

/// The object in which a person changes the template of a pod: of an operator's pod the operator's object,
/// otherwise the StatefulSet.
pub(crate) struct Editable {
    /// Resource name of its kind for kubectl.
    pub(crate) resource: &'static str,
    pub(crate) name: String,
}

impl Editable {
    /// The object for a pod that a StatefulSet owns.
    pub(crate) fn of(facts: &Facts, pod: &Pod) -> Option<Self> {
        let owner = Owner::of(pod)?;
        let set = facts.sets.get(&owner.name).and_then(|set| set.as_ref().ok()?.as_ref());
        let operated = set.and_then(|set| OperatedBy::of(&json!(set.metadata)));
        Some(match operated {
            Some(operated) => Self { resource: operated.resource, name: operated.name },
            None => Self { resource: "statefulset", name: owner.name },
        })
    }
}

/// A finding for a journal that does not outlive the container: a node that must stay stopped would be
/// started with the container.
fn state_directory(object: &str, pod: &Value, container: &Value, remedy: &str) -> Option<Finding> {
    let error = |message: String| Finding::error("state_directory", object, message, remedy);
    let directory = match manager_option(container, "state-dir") {
        Err(unknown) => {
            let message = format!("{} has no value in the spec of the pod", unknown.option);
            return Some(Finding::unknown("state_directory", object, message, remedy));
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
        let message = format!(
            "--state-dir {directory} is on a volume that outlives the pod: a new pod would take over \
             the journal of another one; an emptyDir is right"
        );
        Finding::warning("state_directory", object, message, remedy)
    })
}

pub(crate) fn check_unwatched(facts: &Facts) -> Vec<Finding> {
    let named = facts.cluster.check().ok().map(|checked| checked.sources);
    let is_named = |pod: &Pod, source: &Source| {
        named.as_ref().is_some_and(|named| named.objects(&pod.name_any()).contains(source))
    };
    let port = facts.cluster.completed_spec().manager.port;
    let mut found: BTreeMap<Unwatched, Vec<String>> = BTreeMap::new();
    for pod in facts.known_pods().iter().filter(|pod| !is_operated(facts, pod)) {
        let counts = |one: &Unwatched| {
            facts.ignored.get(&one.source) != Some(&Ignore::Everything)
                && !is_named(pod, &one.source)
        };
        for one in unwatched(pod, port).into_iter().filter(counts) {
            found.entry(one).or_default().push(format!("Pod/{}", pod.name_any()));
        }
    }
    found.iter().map(|(one, pods)| finding(facts, pods, one)).collect()
}

fn finding(facts: &Facts, pods: &[String], one: &Unwatched) -> Finding {
    let Unwatched { source, path } = one;
    let kind = match source.kind {
        SourceKind::Secret => "secret",
        SourceKind::ConfigMap => "configmap",
    };
    let (name, namespace) = (&source.name, facts.namespace());
    Finding::note(
        "not_watched",
        pods.join(", "),
        format!(
            "{source}, mounted at {path}, is read by the engine's container and not watched: a change \
             restarts nothing. To have it restart nodes, add --config NAME={path} to the manager. If \
             the engine reads it by itself, there is nothing to do. The annotation stayput.dev/ignore=true on \
             it ends this note; then no cluster of this namespace counts a change of it"
        ),
        format!("kubectl -n {namespace} describe {kind} {name}"),
    )
}

/// True if an operator decides about the pod's mounts, and restarts it for them.
fn is_operated(facts: &Facts, pod: &Pod) -> bool {
    let set = Owner::of(pod).and_then(|owner| facts.sets.get(&owner.name)?.as_ref().ok()?.as_ref());
    set.is_some_and(|set| Set::of(set).operator.is_some())
}

pub(crate) fn check_relabelled(facts: &Facts) -> Vec<Finding> {
    facts.known_pods().iter().filter_map(relabelled_pod).collect()
}

fn relabelled_pod(pod: &Pod) -> Option<Finding> {
    let written = written(pod);
    let remedy = "if a program reads one of them only when a pod is made, delete the pod, one at a time and while the \
                  cluster is green; otherwise there is nothing to do";
    (!written.is_empty()).then(|| {
        let message =
            format!("it was changed to its edited template while it ran: {}", written.join(", "));
        Finding::note("relabelled", format!("Pod/{}", pod.name_any()), message, remedy)
    })
}

/// Names of the labels and annotations that the reconciler has written, without those of its own.
fn written(pod: &Pod) -> Vec<String> {
    let ours = pod.managed_fields().iter().filter(|entry| entry.manager.as_deref() == Some(NAME));
    let mut names = Vec::new();
    for fields in ours.filter_map(|entry| entry.fields_v1.as_ref()) {
        for (kind, group) in [("label", "f:labels"), ("annotation", "f:annotations")] {
            let keys = fields.0["f:metadata"][group].as_object().into_iter().flatten();
            let keys = keys.filter_map(|(key, _)| key.strip_prefix("f:"));
            let theirs =
                keys.filter(|key| *key != REVISION_LABEL && !annotation::ALL.contains(key));
            names.extend(theirs.map(|key| format!("{kind} {key}")));
        }
    }
    names.sort();
    names.dedup();
    names
}
