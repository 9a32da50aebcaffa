//! The manager in the engine's container and in its pod.

use serde_json::{Value, json};

use crate::Ready;

/// Name of the manager's init container, of the volume with its program, and of its port, by which probes and
/// PodMonitors find it.
pub const NAME: &str = "stayput";
/// Path of the manager in the engine's container.
pub const PROGRAM: &str = "/stayput/stayput";
/// Port of the manager, unless another one is chosen.
pub const PORT: u16 = 9199;
/// Directory of the manager's state.
pub const STATE: &str = "/stayput-state";
/// Minimum grace period for the engine's end, in seconds.
pub const GRACE: i64 = 180;

/// Annotation of the pod with the variables of its engine that differ from those of its container, which the downward
/// API shows to the manager: a JSON object with the value of each; null removes one.
pub const ENVIRONMENT: &str = "stayput.dev/environment";
/// Name of the volume with the file of that annotation.
const ENVIRONMENT_VOLUME: &str = "stayput-environment";

/// Mount path of the volume with the engine's config.
const CONFIG: &str = "/stayput-config";
/// The ConfigMap with the apiserver's public keys, one for all clusters of a namespace.
pub const KEY_SET: &str = "cluster-jwks";

/// The Secret with the certificate and the key of a cluster's managers.
pub fn certificate_secret(cluster: &str) -> String {
    format!("{cluster}-manager-tls")
}

/// The config that the manager watches.
#[derive(Debug, Clone, Copy)]
pub enum EngineConfig<'a> {
    /// Somebody else brings it into this directory.
    In(&'a str),
    /// The manager copies it to the engine's config directory.
    Copied {
        /// Volume with the config, without a name.
        volume: &'a Value,
        /// The engine's config directory.
        to: &'a str,
    },
}

/// The manager of one pod: what differs from pod to pod.
#[derive(Debug, Clone, Copy)]
pub struct Manager<'a> {
    /// Name of the cluster.
    pub cluster: &'a str,
    /// Port of the manager's API.
    pub port: u16,
    /// The service account that may stop and start the engine: `namespace:name`.
    pub account: &'a str,
    /// The engine's config, if it is watched.
    pub config: Option<EngineConfig<'a>>,
    /// How the manager asks the engine if it is ready, unless the pod says so already.
    pub ready: Option<&'a Ready>,
    /// Grace period of the kubelet in seconds, without hooks, if it is known.
    pub grace: Option<i64>,
    /// True if the manager serves its metrics without credentials.
    pub open_metrics: bool,
    /// True if an annotation of the pod may change variables of the engine.
    pub environment: bool,
}

impl Manager<'_> {
    /// The variables of `stayput run`.
    pub fn variables(&self) -> Vec<Value> {
        let issuer = json!({ "configMapKeyRef": { "name": KEY_SET, "key": "issuer" } });
        let subject = format!("system:serviceaccount:{}=es:read es:control", self.account);
        let mut all = vec![
            variable("STAYPUT_LISTEN", &format!(":{}", self.port)),
            variable("STAYPUT_SOCKET", &format!("{STATE}/stayput.sock")),
            variable("STAYPUT_STATE_DIR", STATE),
            variable("STAYPUT_TLS_CERT", "/stayput-tls/tls.crt"),
            variable("STAYPUT_TLS_KEY", "/stayput-tls/tls.key"),
            variable("STAYPUT_JWKS", "/stayput-jwks/jwks.json"),
            json!({ "name": "STAYPUT_JWT_ISSUER", "valueFrom": issuer }),
            variable("STAYPUT_ALLOW_SUBJECT", &subject),
        ];
        if self.environment {
            all.push(variable(
                "STAYPUT_ENVIRONMENT",
                &format!("/{ENVIRONMENT_VOLUME}/environment"),
            ));
        }
        match self.config {
            None => {}
            Some(EngineConfig::In(directory)) => all.push(variable("STAYPUT_CONFIG", directory)),
            Some(EngineConfig::Copied { to, .. }) => all.extend([
                variable("STAYPUT_CONFIG", CONFIG),
                variable("STAYPUT_STAGE", &format!("{CONFIG}={to}")),
                // A config that was up for a minute is kept; with it the engine comes back if the next one is
                // wrong.
                variable("STAYPUT_KEEP_LAST_GOOD", "true"),
                // After a crash the engine runs on what it ran on before, not on a config that nobody has
                // asked for yet.
                variable("STAYPUT_PIN_CONFIG", "true"),
            ]),
        }
        all.extend(self.ready.into_iter().flat_map(Ready::variables));
        // Shorter than the kubelet's, so that the thread dump comes before its KILL.
        let grace = self.grace.map(|grace| format!("{}s", grace - 10));
        all.extend(grace.map(|grace| variable("STAYPUT_TERMINATION_GRACE", &grace)));
        all.extend(self.open_metrics.then(|| variable("STAYPUT_OPEN_METRICS", "true")));
        let field = |name: &str, path: &str| json!({ "name": name, "valueFrom": { "fieldRef": { "fieldPath": path } } });
        all.extend([
            field("STAYPUT_POD_NAMESPACE", "metadata.namespace"),
            field("STAYPUT_POD_NAME", "metadata.name"),
            field("STAYPUT_POD_UID", "metadata.uid"),
        ]);
        all
    }

    /// Port of the engine's container.
    pub fn container_port(&self) -> Value {
        json!({ "name": NAME, "containerPort": self.port })
    }

    /// Volume mounts of the engine's container. Each volume is mounted at its name.
    pub fn mounts(&self) -> Vec<Value> {
        let mount =
            |name: &str| json!({ "name": name, "mountPath": format!("/{name}"), "readOnly": true });
        let is_copied = matches!(self.config, Some(EngineConfig::Copied { .. }));
        let mut all: Vec<Value> = is_copied.then(|| mount("stayput-config")).into_iter().collect();
        all.push(mount(NAME));
        all.push(json!({ "name": "stayput-state", "mountPath": STATE }));
        all.extend([mount("stayput-tls"), mount("stayput-jwks")]);
        all.extend(self.environment.then(|| mount(ENVIRONMENT_VOLUME)));
        all.extend(self.ready.into_iter().flat_map(Ready::mounted).map(mount));
        all
    }

    /// Volumes of the pod. The manager's state belongs to the pod: it is never in a volume that is kept longer.
    pub fn volumes(&self) -> Vec<Value> {
        let mut all = Vec::new();
        if let Some(EngineConfig::Copied { volume, .. }) = self.config {
            let mut volume = volume.clone();
            volume["name"] = json!("stayput-config");
            all.push(volume);
        }
        let tls = certificate_secret(self.cluster);
        all.extend([
            json!({ "name": NAME, "emptyDir": {} }),
            json!({ "name": "stayput-state", "emptyDir": {} }),
            json!({ "name": "stayput-tls", "secret": { "secretName": tls } }),
            json!({ "name": "stayput-jwks", "configMap": { "name": KEY_SET } }),
        ]);
        all.extend(self.environment.then(environment_volume));
        all.extend(self.ready.into_iter().flat_map(Ready::volumes));
        all
    }
}

/// The volume with the annotation as a file. Projected: `additionalVolumes` of an `OpenSearchCluster` know no
/// other way to the downward API.
fn environment_volume() -> Value {
    let field = json!({ "fieldPath": format!("metadata.annotations['{ENVIRONMENT}']") });
    let items = json!([{ "path": "environment", "fieldRef": field }]);
    json!({
        "name": ENVIRONMENT_VOLUME,
        "projected": { "sources": [{ "downwardAPI": { "items": items } }] },
    })
}

pub(crate) fn variable(name: &str, value: &str) -> Value {
    json!({ "name": name, "value": value })
}

/// The command that starts the manager in front of the engine's command.
pub fn command(engine: impl IntoIterator<Item = String>) -> Vec<String> {
    [PROGRAM, "run", "--"].map(str::to_owned).into_iter().chain(engine).collect()
}

/// The init container that puts the manager's program into a volume of the pod. `security` is its
/// `securityContext`.
pub fn init_container(image: &str, security: Value) -> Value {
    json!({
        "name": NAME,
        "image": image,
        "args": ["install", "/shared"],
        "securityContext": security,
        "volumeMounts": [{ "name": NAME, "mountPath": "/shared" }],
    })
}

/// Liveness probe of the manager, which fails after `failures` periods of ten seconds.
pub fn liveness(failures: u32) -> Value {
    probe("/livez", 10, failures)
}

/// Readiness probe of the manager. A stop waits until it has failed and no Service sends requests here any more.
pub fn readiness() -> Value {
    probe("/readyz", 1, 1)
}

/// A probe that asks the manager, never the engine: when the engine is stopped on purpose, the container stays.
fn probe(path: &str, period: u32, failures: u32) -> Value {
    json!({
        "httpGet": { "path": path, "port": NAME, "scheme": "HTTPS" },
        "periodSeconds": period,
        "timeoutSeconds": 5,
        "failureThreshold": failures,
    })
}
