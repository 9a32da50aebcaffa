//! The pod template: the official image with the manager in front of its entrypoint, and a person's template merged
//! over it.

use serde_json::{Value, json};
use stayput_pod_spec::{
    Authority, EngineConfig, GRACE, Login, Manager, Ready, URL, Warming, command, health,
    init_container, liveness, readiness, warming,
};

use crate::config::{POD_IP, POD_NAME};
use crate::object::{CLUSTER, config_secret, labels};
use crate::{Cluster, Distribution, NodeSet, bootstrap};

/// The volume with the engine's data; a claim of this name, or a volume of the template.
pub(crate) const DATA: &str = "data";

/// The template of a set: that of stayput, with the declaration's merged over it. `image` is the
/// manager's image.
pub(crate) fn template(cluster: &Cluster, set: &NodeSet, image: &str) -> Value {
    let ready = ready(cluster, set);
    let secret = config_secret(&cluster.name, &set.name);
    let manager = Manager {
        cluster: &cluster.name,
        port: cluster.manager.port,
        account: &cluster.manager.account,
        config: Some(EngineConfig::Copied {
            volume: &json!({ "secret": { "secretName": secret } }),
            to: cluster.engine.distribution.image().config,
        }),
        ready: ready.as_ref(),
        grace: Some(GRACE),
        open_metrics: false,
        // Another volume would change the template of pods that are there.
        environment: false,
    };
    let mut template = merge(base(cluster, &manager, image), &set.pod_template);
    if cluster.engine.warm {
        make_archive(cluster.engine.distribution, &mut template);
    }
    for (name, value) in labels(cluster, Some(&set.name)) {
        template["metadata"]["labels"][name] = value;
    }
    template
}

/// Adds the containers and volumes that create an archive of the engine's classes, with the image, size
/// and rights that the declaration gives the engine's container.
fn make_archive(distribution: Distribution, template: &mut Value) {
    let spec = &mut template["spec"];
    let containers = spec["containers"].as_array_mut().into_iter().flatten();
    let Some(engine) = containers.into_iter().find(|one| one["name"] == distribution.name()) else {
        return;
    };
    let command = distribution.entrypoint();
    let Warming { init_container, mount, volume } =
        warming(engine, &command, distribution.image().config);
    add("volumeMounts", engine, mount);
    add("initContainers", spec, init_container);
    add("volumes", spec, volume);
}

fn base(cluster: &Cluster, manager: &Manager<'_>, image: &str) -> Value {
    json!({
        "metadata": { "annotations": { "kubectl.kubernetes.io/default-container": cluster.engine.distribution.name() } },
        "spec": {
            "terminationGracePeriodSeconds": GRACE,
            "automountServiceAccountToken": false,
            "securityContext": {
                "runAsNonRoot": true,
                "runAsUser": 1000,
                "runAsGroup": 1000,
                "fsGroup": 1000,
                "seccompProfile": { "type": "RuntimeDefault" },
            },
            "affinity": { "podAntiAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [{
                    "weight": 100,
                    "podAffinityTerm": {
                        "topologyKey": "kubernetes.io/hostname",
                        "labelSelector": { "matchLabels": { CLUSTER: cluster.name } },
                    },
                }],
            } },
            "initContainers": [init_container(image, locked())],
            "containers": [container(cluster, manager)],
            "volumes": manager.volumes(),
        },
    })
}

fn locked() -> Value {
    json!({ "allowPrivilegeEscalation": false, "capabilities": { "drop": ["ALL"] } })
}

fn container(cluster: &Cluster, manager: &Manager<'_>) -> Value {
    let distribution = cluster.engine.distribution;
    let mut mounts = manager.mounts();
    mounts.push(json!({ "name": DATA, "mountPath": distribution.image().data() }));
    json!({
        "name": distribution.name(),
        "image": cluster.engine.image(),
        "command": command(distribution.entrypoint()),
        "env": environment(cluster, manager),
        "ports": [
            { "name": "http", "containerPort": cluster.engine.port },
            { "name": "transport", "containerPort": 9300 },
            manager.container_port(),
        ],
        "livenessProbe": liveness(6),
        "readinessProbe": readiness(),
        "securityContext": locked(),
        "volumeMounts": mounts,
    })
}

fn environment(cluster: &Cluster, manager: &Manager<'_>) -> Vec<Value> {
    let engine = &cluster.engine;
    let field = |name: &str, path: &str| json!({ "name": name, "valueFrom": { "fieldRef": { "fieldPath": path } } });
    let mut all = manager.variables();
    all.extend([field(POD_NAME, "metadata.name"), field(POD_IP, "status.podIP")]);
    if !engine.has_minimum_master_nodes() {
        all.push(bootstrap::variable(cluster));
    }
    if engine.distribution == Distribution::OpenSearch {
        all.push(json!({ "name": "DISABLE_INSTALL_DEMO_CONFIG", "value": "true" }));
        if !engine.tls {
            all.push(json!({ "name": "DISABLE_SECURITY_PLUGIN", "value": "true" }));
        }
    }
    all
}

/// How the manager asks its engine if it is ready: with the CA and the login with which the reconciler asks it. `None`
/// if the set's own template says how to ask.
fn ready(cluster: &Cluster, set: &NodeSet) -> Option<Ready> {
    let engine = &cluster.engine;
    let items = |list: &Value| list.as_array().cloned().unwrap_or_default();
    let containers = items(&set.pod_template["spec"]["containers"]);
    let mut own = containers.iter().filter(|one| one["name"] == engine.distribution.name());
    if own.any(|one| items(&one["env"]).iter().any(|variable| variable["name"] == URL)) {
        return None;
    }
    let authority = engine.ca_secret.as_ref().filter(|_| engine.tls);
    Some(Ready {
        url: health(engine.tls, engine.port),
        login: engine.credentials_secret.as_ref().map(|secret| Login::of(secret, None)),
        authority: authority.map(|secret| Authority::of(secret)),
    })
}

/// Lists whose elements are found by this field, as Kubernetes itself merges them. All others are
/// taken as they are written.
const KEYS: [(&str, &str); 7] = [
    ("containers", "name"),
    ("initContainers", "name"),
    ("volumes", "name"),
    ("env", "name"),
    ("volumeMounts", "mountPath"),
    ("ports", "containerPort"),
    ("imagePullSecrets", "name"),
];

/// Merges `over` into `base`; `over` wins. Null removes a field, `$patch: delete` an element of a list,
/// as in `kubectl patch`.
pub(crate) fn merge(base: Value, over: &Value) -> Value {
    if over.is_null() { base } else { merge_at("", base, over) }
}

/// Adds an element to a list of `of`; fields that a person has written in that element win.
fn add(list: &str, of: &mut Value, element: Value) {
    let Some((_, key)) = KEYS.iter().find(|(name, _)| *name == list) else { return };
    let Some(elements) = of[list].as_array_mut() else { return };
    match elements.iter_mut().find(|one| one[key] == element[key]) {
        Some(written) => *written = merge_at(list, element, &written.take()),
        None => elements.push(element),
    }
}

fn merge_at(field: &str, base: Value, over: &Value) -> Value {
    match (base, over) {
        (Value::Object(mut base), Value::Object(over)) => {
            // A source of a volume or of a variable is one of several: ours does not stay beside it.
            if field == "volumes" || field == "env" {
                base.retain(|name, _| name == "name");
            }
            for (name, value) in over {
                match (base.remove(name), value) {
                    (_, Value::Null) => {}
                    (Some(before), value) => {
                        base.insert(name.clone(), merge_at(name, before, value));
                    }
                    (None, value) => {
                        base.insert(name.clone(), value.clone());
                    }
                }
            }
            Value::Object(base)
        }
        (Value::Array(base), Value::Array(over)) => {
            match KEYS.iter().find(|(list, _)| *list == field) {
                Some((_, key)) => Value::Array(by_key(field, key, base, over)),
                None => Value::Array(over.clone()),
            }
        }
        (_, over) => over.clone(),
    }
}

fn by_key(field: &str, key: &str, mut base: Vec<Value>, over: &[Value]) -> Vec<Value> {
    for element in over {
        if element["$patch"] == "delete" {
            base.retain(|one| one[key] != element[key]);
            continue;
        }
        match base.iter_mut().find(|one| one[key] == element[key]) {
            Some(one) => *one = merge_at(field, one.take(), element),
            None => base.push(element.clone()),
        }
    }
    base
}
