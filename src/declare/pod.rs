//! The pod template: the official image with the manager in front of its entrypoint.

use serde_json::{Value, json};

use stayput_inject::{Warming, warming};

use crate::config::{POD_IP, POD_NAME};
use crate::labels::{CLUSTER, labels};
use crate::merge::{add, merge};
use crate::ready::Ready;
use crate::{Cluster, Distribution, NodeSet, bootstrap, names};

/// The volume with the engine's data; a claim of this name, or a volume of the template.
pub(crate) const DATA: &str = "data";

/// Name of the init container with the manager.
pub const MANAGER: &str = "stayput";

/// The template of a set: that of stayput, with the declaration's merged over it. `manager` is the
/// manager's image.
pub(crate) fn template(cluster: &Cluster, set: &NodeSet, manager: &str) -> Value {
    let mut template = merge(base(cluster, set, manager), &set.pod_template);
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
    let command = distribution.entrypoint().map(str::to_owned);
    let config = format!("{}/config", distribution.home());
    let Warming { init_container, mount, volume } = warming(engine, &command, &config);
    add("volumeMounts", engine, mount);
    add("initContainers", spec, init_container);
    add("volumes", spec, volume);
}

fn base(cluster: &Cluster, set: &NodeSet, manager: &str) -> Value {
    let name = cluster.engine.distribution.name();
    let secret = names::config_secret(&cluster.name, &set.name);
    let ready = Ready::of(cluster, set);
    let mut base = json!({
        "metadata": { "annotations": { "kubectl.kubernetes.io/default-container": name } },
        "spec": {
            "terminationGracePeriodSeconds": 180,
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
            "initContainers": [{
                "name": MANAGER,
                "image": manager,
                "args": ["install", "/shared"],
                "securityContext": locked(),
                "volumeMounts": [{ "name": "stayput", "mountPath": "/shared" }],
            }],
            "containers": [container(cluster, &ready)],
            "volumes": [
                { "name": "stayput", "emptyDir": {} },
                { "name": "stayput-state", "emptyDir": {} },
                { "name": "stayput-config", "secret": { "secretName": secret } },
                { "name": "stayput-tls",
                  "secret": { "secretName": names::manager_tls(&cluster.name) } },
                { "name": "stayput-jwks", "configMap": { "name": names::JWKS } },
            ],
        },
    });
    extend(&mut base["spec"]["volumes"], ready.volumes);
    base
}

fn extend(list: &mut Value, more: Vec<Value>) {
    if let Some(list) = list.as_array_mut() {
        list.extend(more);
    }
}

fn locked() -> Value {
    json!({ "allowPrivilegeEscalation": false, "capabilities": { "drop": ["ALL"] } })
}

fn container(cluster: &Cluster, ready: &Ready) -> Value {
    let distribution = cluster.engine.distribution;
    let [entrypoint, argument] = distribution.entrypoint();
    let probe = |path: &str| json!({ "path": path, "port": "stayput", "scheme": "HTTPS" });
    let mut container = json!({
        "name": distribution.name(),
        "image": cluster.engine.image(),
        "command": ["/stayput/stayput", "run", "--", entrypoint, argument],
        "env": environment(cluster, ready),
        "ports": [
            { "name": "http", "containerPort": cluster.engine.port },
            { "name": "transport", "containerPort": 9300 },
            { "name": "stayput", "containerPort": cluster.manager.port },
        ],
        "livenessProbe": {
            "httpGet": probe("/livez"),
            "periodSeconds": 10,
            "timeoutSeconds": 5,
            "failureThreshold": 6,
        },
        "readinessProbe": {
            "httpGet": probe("/readyz"),
            "periodSeconds": 1,
            "timeoutSeconds": 5,
            "failureThreshold": 1,
        },
        "securityContext": locked(),
        "volumeMounts": [
            { "name": "stayput", "mountPath": "/stayput", "readOnly": true },
            { "name": "stayput-state", "mountPath": "/stayput-state" },
            { "name": "stayput-config", "mountPath": "/stayput-config", "readOnly": true },
            { "name": "stayput-tls", "mountPath": "/stayput-tls", "readOnly": true },
            { "name": "stayput-jwks", "mountPath": "/stayput-jwks", "readOnly": true },
            { "name": DATA, "mountPath": format!("{}/data", distribution.home()) },
        ],
    });
    extend(&mut container["volumeMounts"], ready.mounts.clone());
    container
}

fn environment(cluster: &Cluster, ready: &Ready) -> Vec<Value> {
    let engine = &cluster.engine;
    let field = |name: &str, path: &str| json!({ "name": name, "valueFrom": { "fieldRef": { "fieldPath": path } } });
    let subject = format!("system:serviceaccount:{}=es:read es:control", cluster.manager.account);
    let stage = format!("/stayput-config={}/config", engine.distribution.home());
    let listen = format!(":{}", cluster.manager.port);
    let value = |(name, value): (&str, &str)| json!({ "name": name, "value": value });
    let mut all: Vec<Value> = [
        ("STAYPUT_LISTEN", listen.as_str()),
        ("STAYPUT_SOCKET", "/stayput-state/stayput.sock"),
        ("STAYPUT_STATE_DIR", "/stayput-state"),
        ("STAYPUT_TLS_CERT", "/stayput-tls/tls.crt"),
        ("STAYPUT_TLS_KEY", "/stayput-tls/tls.key"),
        ("STAYPUT_JWKS", "/stayput-jwks/jwks.json"),
        ("STAYPUT_ALLOW_SUBJECT", &subject),
        ("STAYPUT_CONFIG", "/stayput-config"),
        ("STAYPUT_STAGE", &stage),
        ("STAYPUT_KEEP_LAST_GOOD", "true"),
        ("STAYPUT_PIN_CONFIG", "true"),
    ]
    .map(value)
    .into();
    all.extend(ready.variables.iter().cloned());
    all.push(value(("STAYPUT_TERMINATION_GRACE", "170s")));
    let issuer = json!({ "name": names::JWKS, "key": "issuer" });
    all.push(json!({ "name": "STAYPUT_JWT_ISSUER", "valueFrom": { "configMapKeyRef": issuer } }));
    all.extend([
        field("STAYPUT_POD_NAMESPACE", "metadata.namespace"),
        field("STAYPUT_POD_NAME", "metadata.name"),
        field("STAYPUT_POD_UID", "metadata.uid"),
        field(POD_NAME, "metadata.name"),
        field(POD_IP, "status.podIP"),
    ]);
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
