//! A template as ECK 3.5 builds it from what a person writes into an `Elasticsearch` with a manager
//! (`BuildPodTemplateSpec` in `pkg/controller/elasticsearch/nodespec/podspec.go`).

use serde_json::{Value, json};

use super::{ENGINE, SECURE};

/// Values of an `Elasticsearch` that a person edits.
pub(super) struct Edited {
    /// Name and value of a variable in `podTemplate`.
    pub(super) variable: (&'static str, Value),
    pub(super) memory: &'static str,
    pub(super) image: &'static str,
    pub(super) team: &'static str,
    pub(super) note: &'static str,
    pub(super) config_hash: &'static str,
    pub(super) restart_trigger: Option<&'static str>,
    pub(super) secure_settings: bool,
    pub(super) node_labels: bool,
    pub(super) volume: bool,
    pub(super) http_tls: bool,
    pub(super) master: bool,
}

impl Default for Edited {
    fn default() -> Self {
        Self {
            variable: ("A", json!({"name": "A", "value": "1"})),
            memory: "2Gi",
            image: "elasticsearch:8.19.0",
            team: "search",
            note: "one",
            config_hash: "3646914737",
            restart_trigger: None,
            secure_settings: false,
            node_labels: false,
            volume: false,
            http_tls: true,
            master: true,
        }
    }
}

impl Edited {
    /// The pod template that ECK makes of it.
    pub(super) fn template(&self) -> Value {
        let scheme = if self.http_tls { "https" } else { "http" };
        let annotations = json!({
            "co.elastic.logs/module": "elasticsearch",
            "elasticsearch.k8s.elastic.co/config-hash": self.config_hash,
            "policy.k8s.elastic.co/elasticsearch-config-mounts-hash": "",
            "eck.k8s.elastic.co/restart-trigger": self.restart_trigger,
            "note": self.note,
        });
        let labels = json!({
            "common.k8s.elastic.co/type": "elasticsearch",
            "elasticsearch.k8s.elastic.co/cluster-name": "logs",
            "elasticsearch.k8s.elastic.co/http-scheme": scheme,
            "elasticsearch.k8s.elastic.co/node-master": self.master.to_string(),
            "elasticsearch.k8s.elastic.co/statefulset-name": "logs-es-default",
            "elasticsearch.k8s.elastic.co/version": "8.19.0",
            "team": self.team,
        });
        let resources =
            json!({"limits": {"memory": self.memory}, "requests": {"memory": self.memory}});
        let env = self.env(scheme);
        let engine = json!({
            "name": ENGINE, "image": self.image, "env": env, "resources": resources,
            "command": ["/stayput/bin/stayput", "run", "--", "/bin/tini", "--"],
            "ports": [
                {"name": scheme, "containerPort": 9200, "protocol": "TCP"},
                {"name": "transport", "containerPort": 9300, "protocol": "TCP"},
            ],
            "volumeMounts": self.mounts(),
        });
        json!({
            "metadata": {"labels": labels, "annotations": annotations},
            "spec": {
                "automountServiceAccountToken": false,
                "containers": [engine],
                "initContainers": self.init_containers(&env, &resources),
                "terminationGracePeriodSeconds": 180,
                "volumes": self.volumes(),
            }
        })
    }

    /// Variables of the engine's container, which ECK copies to each init container.
    fn env(&self, scheme: &str) -> Vec<Value> {
        vec![
            self.variable.1.clone(),
            json!({"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}),
            json!({"name": "HEADLESS_SERVICE_NAME", "value": "logs-es-default"}),
            json!({"name": "READINESS_PROBE_PROTOCOL", "value": scheme}),
        ]
    }

    fn init_containers(&self, env: &[Value], resources: &Value) -> Vec<Value> {
        let own = |memory: &str, cpu: &str| {
            let amounts = json!({"memory": memory, "cpu": cpu});
            json!({"limits": amounts, "requests": amounts})
        };
        let script =
            |name: &str| json!(["bash", "-c", format!("/mnt/elastic-internal/scripts/{name}")]);
        let init = |name: &str, image: &str, command: Value, resources: Value, own: Vec<Value>| {
            let mut mounts = own;
            // Its own mount of a volume, or at a path, goes before that of the engine.
            let is_free = |mount: &Value| {
                !mounts.iter().any(|own| {
                    own["name"] == mount["name"] || own["mountPath"] == mount["mountPath"]
                })
            };
            let inherited: Vec<Value> = self.mounts().into_iter().filter(is_free).collect();
            mounts.extend(inherited);
            json!({
                "name": name, "image": image, "command": command, "env": env,
                "resources": resources, "volumeMounts": mounts,
            })
        };
        let mut all = vec![init(
            "elastic-internal-init-filesystem",
            self.image,
            script("prepare-fs.sh"),
            own("50Mi", "100m"),
            vec![
                json!({"name": "elastic-internal-elasticsearch-config-local", "mountPath": "/mnt/elastic-internal/elasticsearch-config-local"}),
                json!({"name": "elastic-internal-transport-certificates", "mountPath": "/mnt/elastic-internal/transport-certificates"}),
            ],
        )];
        if self.secure_settings {
            all.push(init(
                "elastic-internal-init-keystore",
                self.image,
                json!(["/usr/bin/env", "bash", "-c", "elasticsearch-keystore create"]),
                own("196Mi", "500m"),
                vec![json!({"name": "elastic-internal-secure-settings", "mountPath": "/mnt/elastic-internal/secure-settings"})],
            ));
        }
        let suspend = script("suspend.sh");
        all.push(init("elastic-internal-suspend", self.image, suspend, resources.clone(), vec![]));
        let install = json!(["/stayput", "install", "/stayput/bin"]);
        all.push(init("stayput", "stayput:1", install, resources.clone(), vec![]));
        all
    }

    fn mounts(&self) -> Vec<Value> {
        let mut all = vec![
            json!({"name": "downward-api", "mountPath": "/mnt/elastic-internal/downward-api"}),
            json!({"name": "elastic-internal-elasticsearch-config", "mountPath": "/mnt/elastic-internal/elasticsearch-config"}),
            json!({"name": "elastic-internal-elasticsearch-config-local", "mountPath": "/usr/share/elasticsearch/config"}),
            json!({"name": "elastic-internal-scripts", "mountPath": "/mnt/elastic-internal/scripts"}),
            json!({"name": "elastic-internal-transport-certificates", "mountPath": "/usr/share/elasticsearch/config/transport-certs"}),
        ];
        if self.volume {
            all.push(json!({"name": "mine", "mountPath": "/mine"}));
        }
        all
    }

    fn volumes(&self) -> Vec<Value> {
        let file = |kind: &str| json!({"path": kind, "fieldRef": {"fieldPath": format!("metadata.{kind}")}});
        let mut shown = vec![file("labels")];
        if self.node_labels {
            shown.push(file("annotations"));
        }
        let mut all = vec![
            json!({"name": "downward-api", "downwardAPI": {"items": shown}}),
            json!({"name": "elastic-internal-elasticsearch-config", "secret": {"secretName": "logs-es-default-es-config"}}),
            json!({"name": "elastic-internal-elasticsearch-config-local", "emptyDir": {}}),
            json!({"name": "elastic-internal-scripts", "configMap": {"name": "logs-es-scripts"}}),
            json!({"name": "elastic-internal-transport-certificates", "secret": {"secretName": "logs-es-default-es-transport-certs"}}),
        ];
        if self.secure_settings {
            all.push(json!({"name": "elastic-internal-secure-settings", "secret": {"secretName": SECURE}}));
        }
        if self.volume {
            all.push(json!({"name": "mine", "emptyDir": {}}));
        }
        all
    }
}
