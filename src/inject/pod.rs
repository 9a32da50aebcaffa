//! The manager in a pod template: the changes for it.

mod additions;
mod command;
mod config;
mod ready;
mod settings;

use serde_json::{Value, json};
use stayput_pod_spec::{
    EngineConfig, EngineImage, GRACE, JVM_OPTIONS, Manager, Ready, Warming, lacks_variables,
    liveness, readiness, warming,
};

use additions::{claimed, other_engines};
pub(crate) use additions::{
    exact_items, find_container, is_official, missing_items, mounts_and_volumes, port_clash,
    variables_and_port,
};
use command::Command;
pub use command::{Entrypoint, entrypoint};
pub(crate) use command::{by_hand, has_manager, post_start, pre_stop, words};
pub use config::files_by_sub_path;
use config::mounts;
pub use ready::Reachability;
pub(crate) use ready::{
    Asked, chosen_url, has_secrets, problem, reachability, ready, ready_of, sets_authority,
    sets_login,
};
pub use settings::VARIABLES;
pub(crate) use settings::problems as settings_problems;

use crate::finding::ObjectIssue;
use crate::options::Options;
use crate::yaml::{Change, Path, Step};

/// CPU and memory of the init container, for copying a file of 5 MB.
const INIT_SIZES: [(&str, &str); 2] = [("cpu", "100m"), ("memory", "64Mi")];
/// The user id of the official images.
pub(crate) const USER: u32 = 1000;

/// A pod template's `spec`, and its path.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pod<'a> {
    pub(crate) at: &'a Path,
    pub(crate) spec: &'a Value,
    /// The `volumeClaimTemplates` beside the template.
    pub(crate) claims: &'a Value,
    /// Name of the cluster.
    pub(crate) cluster: &'a str,
    pub(crate) options: &'a Options,
}

impl Pod<'_> {
    /// True for a volume that is a claim, which outlives the pod.
    fn is_claim(self, volume: &str) -> bool {
        let named = |list: &Value, name: &Value| {
            list.as_array().into_iter().flatten().any(|one| one["metadata"]["name"] == *name)
        };
        let mut volumes = self.spec["volumes"].as_array().into_iter().flatten();
        named(self.claims, &json!(volume))
            || volumes.any(|one| one["name"] == volume && one["persistentVolumeClaim"].is_object())
    }
}

/// The manager of a pod in the cluster, with an engine whose config is not watched.
pub(crate) fn manager<'a>(cluster: &'a str, options: &Options, ready: &'a Ready) -> Manager<'a> {
    Manager {
        cluster,
        port: stayput_pod_spec::PORT,
        account: "stayput:stayput-reconciler",
        config: None,
        ready: Some(ready),
        grace: None,
        open_metrics: options.open_metrics,
        environment: true,
    }
}

/// The changes that put the manager into the pods of a StatefulSet, and the findings.
pub(crate) fn changes(pod: Pod<'_>, container: &Value) -> (Vec<Change>, Vec<ObjectIssue>) {
    let mut found = Vec::new();
    let name = container["name"].as_str().unwrap_or_default();
    let at = pod.at.then(Step::key("containers")).then(Step::named(name));
    let engine = EngineImage::of(container);

    let command = command::command(&at, container, &pod.options.command).unwrap_or_else(|error| {
        found.push(error);
        Command::default()
    });
    found.extend(command::shell(&at, &command.engine));
    found.extend(post_start(&at, container));
    let hook = pre_stop(&at, container);
    found.extend(hook.note);
    found.extend(other_engines(&pod.at.then(Step::key("containers")), pod.spec, container));
    let config = config::find(pod, &at, container, engine, &mut found);
    let ready = ready_of_container(pod, &at, container, &mut found);
    // The kubelet's time includes the hook.
    let own = pod.spec["terminationGracePeriodSeconds"].as_i64().unwrap_or(0);
    let grace = own.max(GRACE + hook.seconds);
    let copied = config.as_ref();
    let copied = copied.map(|one| EngineConfig::Copied { volume: &one.volume, to: &one.stage });
    let manager = Manager {
        config: copied,
        grace: Some(grace - hook.seconds),
        ..manager(pod.cluster, pod.options, &ready)
    };

    let facts = EngineFacts {
        pod: &pod.spec["securityContext"],
        container: &container["securityContext"],
        resources: &container["resources"],
        user: engine.map_or(USER, |engine| engine.user),
    };
    found.extend(facts.note(&format!("{at}.securityContext"), pod.options));
    let mut all =
        vec![Change::put(pod.at, Step::key("terminationGracePeriodSeconds"), json!(grace))];
    let init = vec![init_container(pod.options, facts)];
    all.extend(exact_items(pod.at, "initContainers", pod.spec, init, &mut found));
    all.push(Change::put(&at, Step::key("command"), json!(command.words)));
    all.extend(variables_and_port(&at, container, &manager, &mut found));
    found.extend(port_clash(&at, container));
    all.extend([
        Change::put(&at, Step::key("livenessProbe"), liveness(6)),
        Change::put(&at, Step::key("readinessProbe"), readiness()),
    ]);
    all.extend(mounts_and_volumes(pod, &at, container, &manager, &mut found));
    // A single file, mounted by subPath, never changes in a running pod.
    let mounts = at.then(Step::key("volumeMounts"));
    for path in config.iter().flat_map(|config| &config.replaced) {
        all.push(Change::remove(&mounts, Step::item("mountPath", path)));
    }
    if pod.options.warm {
        match archive(pod, &at, container, &command, &mut found) {
            Ok(changes) => all.extend(changes),
            Err(error) => found.push(error),
        }
    }
    // Otherwise the arguments of the pod are added to the command.
    all.push(Change::remove(&at, Step::key("args")));
    all.push(if command.has_script_before() {
        Change::put(&at, Step::key("startupProbe"), startup(&container["startupProbe"]))
    } else {
        // None is needed: the manager answers at once.
        Change::remove(&at, Step::key("startupProbe"))
    });
    (all, found)
}

/// How the manager asks the engine in a container of a StatefulSet.
fn ready_of_container(
    pod: Pod<'_>,
    at: &Path,
    container: &Value,
    found: &mut Vec<ObjectIssue>,
) -> Ready {
    let asked = Asked {
        container,
        field: &format!("{at}.readinessProbe"),
        reached: reachability(container),
        host_network: pod.spec["hostNetwork"] == true,
        login: ready::known_login(container),
        authority: None,
    };
    ready(asked, pod.options, found)
}

/// Startup probe for a script before the manager: until the script has ended, nobody answers, and the
/// kubelet would kill the container for that.
fn startup(own: &Value) -> Value {
    let mut probe = liveness(30);
    for field in [
        "initialDelaySeconds",
        "periodSeconds",
        "timeoutSeconds",
        "failureThreshold",
        "terminationGracePeriodSeconds",
    ] {
        if !own[field].is_null() {
            probe[field] = own[field].clone();
        }
    }
    probe
}

/// User, rights and resources of the engine.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EngineFacts<'a> {
    /// The `securityContext` of the pod.
    pub(crate) pod: &'a Value,
    /// The `securityContext` of the engine's container.
    pub(crate) container: &'a Value,
    /// The `resources` of the engine's container.
    pub(crate) resources: &'a Value,
    /// The user id of the engine's image.
    pub(crate) user: u32,
}

impl<'a> EngineFacts<'a> {
    fn field(self, name: &str) -> &'a Value {
        let own = &self.container[name];
        if own.is_null() { &self.pod[name] } else { own }
    }

    /// True if the pod must not run as root and no user is given. The user of the manager's image is
    /// root, with whom the kubelet starts no such container.
    fn needs_user(self) -> bool {
        self.field("runAsNonRoot") == true && self.field("runAsUser").is_null()
    }

    /// A note for clusters that give each pod its user by themselves.
    pub(crate) fn note(self, field: &str, options: &Options) -> Option<ObjectIssue> {
        (self.needs_user() && !options.assigned_user).then(|| {
            ObjectIssue::note(
                field,
                format!(
                    "no user is given, so the init container gets that of the image, {}; OpenShift refuses it",
                    self.user
                ),
                "Where the cluster gives each pod its user: --assigned-user",
            )
        })
    }
}

/// The init container that puts the manager's program into a volume of the pod.
pub(crate) fn init_container(options: &Options, engine: EngineFacts<'_>) -> Value {
    let mut security = json!({
        "allowPrivilegeEscalation": false,
        "readOnlyRootFilesystem": true,
        "capabilities": { "drop": ["ALL"] },
    });
    // What PodSecurity asks of every container, if it is not said for the whole pod; and the label by which
    // the engine may read the program.
    for field in ["runAsNonRoot", "runAsUser", "runAsGroup", "seccompProfile", "seLinuxOptions"] {
        if !engine.container[field].is_null() {
            security[field] = engine.container[field].clone();
        }
    }
    if engine.needs_user() && !options.assigned_user {
        security["runAsUser"] = json!(engine.user);
    }
    let mut init = stayput_pod_spec::init_container(&options.image(), security);
    for field in ["limits", "requests"] {
        if !engine.resources[field].is_null() {
            init["resources"][field] = sizes(&engine.resources[field]);
        }
    }
    init
}

/// Resources of the init container. A quota refuses a pod with a container that has none, and without
/// limits the pod would no longer be `Guaranteed`. CPU and memory do not follow the engine's: the pod
/// would take the room of its first size for as long as it lives.
fn sizes(engines: &Value) -> Value {
    let mut sizes = engines.clone();
    for (resource, amount) in INIT_SIZES {
        if !sizes[resource].is_null() {
            sizes[resource] = json!(amount);
        }
    }
    sizes
}

/// The changes for `--warm`.
fn archive(
    pod: Pod<'_>,
    at: &Path,
    container: &Value,
    command: &Command,
    found: &mut Vec<ObjectIssue>,
) -> Result<Vec<Change>, ObjectIssue> {
    let Some(engine) = EngineImage::of(container).filter(EngineImage::keeps_classes) else {
        return Err(ObjectIssue::error(
            format!("{at}.image"),
            "an archive of classes can be made for OpenSearch only, and not in Bitnami's image",
            "Leave out --warm",
        ));
    };
    if command.has_script() {
        return Err(ObjectIssue::error(
            format!("{at}.command"),
            "what a shell starts does not get the arguments with which the archive is made",
            "Start the engine without a shell, or leave out --warm",
        ));
    }
    // The server JVM reads its options from here, and only it.
    let directory = format!("{}/jvm.options.d", engine.config);
    if mounts(container).iter().any(|mount| mount.path == directory) {
        return Err(ObjectIssue::error(
            format!("{at}.volumeMounts[mountPath={directory}]"),
            "the volume of the archive is to be mounted there",
            "Mount its files one by one (subPath), or leave out --warm",
        ));
    }
    if lacks_variables(container, &command.engine) {
        found.push(ObjectIssue::note(
            format!("{at}.envFrom"),
            "the init container that makes the archive gets no variables by envFrom",
            format!(
                "If one of them is {JVM_OPTIONS}, or is referred to by it or the command, write it into env"
            ),
        ));
    }
    let Warming { init_container, mount, volume } =
        warming(container, &command.engine, engine.config);
    found.extend(claimed(pod.claims, std::slice::from_ref(&volume)));
    let mut all = exact_items(pod.at, "initContainers", pod.spec, vec![init_container], found);
    all.extend(exact_items(at, "volumeMounts", container, vec![mount], found));
    all.extend(exact_items(pod.at, "volumes", pod.spec, vec![volume], found));
    Ok(all)
}
