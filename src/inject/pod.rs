//! The manager in a pod template.

mod additions;
mod command;
mod config;
mod container;
mod copied_config;
mod environment;
mod hook;
mod init;
mod inspect;
mod reachability;
mod ready;
mod script;
mod settings;
mod shell;
mod variables;
mod warm;

use serde_json::{Value, json};

pub(crate) use additions::{claimed, exact_items, missing_items, port_clash};
use command::Command;
pub(crate) use command::{PROGRAM, by_hand, has_manager};
pub(crate) use config::Config;
pub(crate) use container::{find as find_container, is_official, others as other_engines};
pub(crate) use environment::{Environment, environment};
pub(crate) use hook::{post_start, pre_stop};
pub(crate) use init::{EngineFacts, USER, init_container};
pub use inspect::{Entrypoint, entrypoint, files_by_sub_path};
pub use reachability::Reachability;
pub(crate) use reachability::reachability;
pub(crate) use ready::{
    Asked, Ready, chosen_url, has_secrets, health, ready, sets_authority, sets_login,
};
pub use settings::VARIABLES;
pub(crate) use settings::problems as settings_problems;
pub use warm::{Warming, warming};

use crate::edit::{Change, Path, Step};
use crate::engine::Engine;
use crate::finding::ObjectIssue;
use crate::options::Options;

/// Minimum grace period for the engine's end, in seconds.
const GRACE: i64 = 180;

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

/// The changes that put the manager into the pods of a StatefulSet, and the findings.
pub(crate) fn changes(pod: Pod<'_>, container: &Value) -> (Vec<Change>, Vec<ObjectIssue>) {
    let mut found = Vec::new();
    let name = container["name"].as_str().unwrap_or_default();
    let at = pod.at.then(Step::key("containers")).then(Step::named(name));
    let image = container["image"].as_str().unwrap_or_default();
    let engine = Engine::of_image(image).or_else(|| Engine::named(name));

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
    let field = format!("{at}.readinessProbe");
    let asked = Asked {
        container,
        field: &field,
        reached: reachability(container),
        host_network: pod.spec["hostNetwork"] == true,
        login: reachability::known_login(container),
        authority: None,
    };
    let ready = ready(asked, pod.options, &mut found);
    // The kubelet's time includes the hook.
    let own = pod.spec["terminationGracePeriodSeconds"].as_i64().unwrap_or(0);
    let grace = own.max(GRACE + hook.seconds);
    let variables = environment(&Environment {
        config: config.as_ref().map(|_| "/stayput-config"),
        stage: config.as_ref().map(|config| config.stage.as_str()),
        ready: &ready,
        grace: Some(grace - hook.seconds),
        open_metrics: pod.options.open_metrics,
    });

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
    let env = at.then(Step::key("env"));
    found.extend(settings_problems(&env, container, &variables, Some(&container["volumeMounts"])));
    all.extend(missing_items(&env, "name", &container["env"], variables));
    all.extend(exact_items(&at, "ports", container, ports(), &mut found));
    found.extend(port_clash(&at, container));
    all.extend([
        Change::put(&at, Step::key("livenessProbe"), probe("/livez", 10, 6)),
        Change::put(&at, Step::key("readinessProbe"), readiness()),
    ]);
    let mounts = at.then(Step::key("volumeMounts"));
    let wanted = volume_mounts(config.is_some(), &ready);
    all.extend(exact_items(&at, "volumeMounts", container, wanted, &mut found));
    let wanted = volumes(pod.cluster, config.as_ref(), &ready);
    found.extend(claimed(pod.claims, &wanted));
    all.extend(exact_items(pod.at, "volumes", pod.spec, wanted, &mut found));
    // A single file, mounted by subPath, never changes in a running pod.
    for path in config.iter().flat_map(|config| &config.replaced) {
        all.push(Change::remove(&mounts, Step::item("mountPath", path)));
    }
    if pod.options.warm {
        match warm::changes(pod, &at, container, &command, &mut found) {
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

/// The manager's port, under the name by which probes and PodMonitors find it.
pub(crate) fn ports() -> Vec<Value> {
    vec![json!({ "name": "stayput", "containerPort": additions::PORT })]
}

/// Readiness probe of the manager. A stop waits until it has failed and no Service sends requests here
/// any more.
pub(crate) fn readiness() -> Value {
    probe("/readyz", 1, 1)
}

/// Startup probe for a script before the manager: until the script has ended, nobody answers, and the
/// kubelet would kill the container for that.
fn startup(own: &Value) -> Value {
    let mut probe = probe("/livez", 10, 30);
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

/// A probe that asks the manager, never the engine: when the engine is stopped on purpose, the
/// container stays.
fn probe(path: &str, period: u32, failures: u32) -> Value {
    json!({
        "httpGet": { "path": path, "port": "stayput", "scheme": "HTTPS" },
        "periodSeconds": period,
        "timeoutSeconds": 5,
        "failureThreshold": failures,
    })
}

pub(crate) fn volume_mounts(with_config: bool, ready: &Ready) -> Vec<Value> {
    let mount =
        |name: &str| json!({ "name": name, "mountPath": format!("/{name}"), "readOnly": true });
    let mut all: Vec<Value> = with_config.then(|| mount("stayput-config")).into_iter().collect();
    all.push(mount("stayput"));
    all.push(json!({ "name": "stayput-state", "mountPath": "/stayput-state" }));
    all.extend([mount("stayput-tls"), mount("stayput-jwks")]);
    all.extend(ready.mounts().into_iter().map(mount));
    all
}

/// Volumes of the manager. Its state belongs to the pod: it is never in a volume that is kept longer.
pub(crate) fn volumes(cluster: &str, config: Option<&Config>, ready: &Ready) -> Vec<Value> {
    let config = config.map(|config| {
        let mut volume = config.volume.clone();
        volume["name"] = json!("stayput-config");
        volume
    });
    let tls = format!("{cluster}-manager-tls");
    config
        .into_iter()
        .chain([
            json!({ "name": "stayput", "emptyDir": {} }),
            json!({ "name": "stayput-state", "emptyDir": {} }),
            json!({ "name": "stayput-tls", "secret": { "secretName": tls } }),
            json!({ "name": "stayput-jwks", "configMap": { "name": "cluster-jwks" } }),
        ])
        .chain(ready.volumes())
        .collect()
}
