//! A cluster that the operator has made, with its SearchCluster.

use std::time::Instant;

use serde_json::{Map, Value, json};
use tempfile::TempDir;

use super::super::running::{account, groups};
use super::operator;
use crate::pods::door::Door;
use crate::pods::fixture::{Fixture, HOME};
use crate::pods::nodes::{ask, until_ready};
use crate::pods::official::{IMAGE, USER, load_with, machine, variables};
use crate::pods::opensearch::Parts;
use crate::pods::operator_program::OperatorProgram;
use crate::pods::stateful_set::volumes_for;
use crate::support::engine::Kind;
use crate::support::skip;
use crate::support::wait::eventually;

pub(super) const NODES: [&str; 3] = ["logs-nodes-0", "logs-nodes-1", "logs-nodes-2"];
const BOOTSTRAP: &str = "logs-bootstrap-0";
const CLUSTER: &str = "opensearchclusters.opensearch.org";
/// The official one makes options of all variables with a dot in their names. There is no DNS here, so those with names
/// of Services and pods are left out; and the security plugin is not there, nor its settings.
const ENTRYPOINT: &str = r#"#!/bin/bash
umask 0002
mkdir -p /tmp/config
cp -r config/. /tmp/config
sed /^plugins.security/d config/opensearch.yml > /tmp/config/opensearch.yml
export OPENSEARCH_PATH_CONF=/tmp/config
options=()
while IFS='=' read -r name value; do
    case $name in
        cluster.name | cluster.initial_master_nodes | node.roles | http.port) options+=("-E$name=$value") ;;
    esac
done < <(env)
exec bin/opensearch "${options[@]}"
"#;

/// Everything; the engines end with the fixture.
pub(super) struct Stage {
    pub(super) operator: OperatorProgram,
    pub(super) fixture: Fixture,
    _parts: Parts,
    _directories: [TempDir; 3],
}

impl Stage {
    /// Three nodes that are one cluster, the operator, and the reconciler, which carries templates out. None if
    /// something is missing here; then the test is skipped.
    pub(super) fn set_up(test: &str) -> Option<Self> {
        let laid = Parts::of(Kind::OpenSearch).and_then(|parts| {
            let fixture = Fixture::lay("privileged")?;
            let account = tempfile::tempdir().expect("a temp dir");
            let operator = operator::start(&fixture, &account)?;
            Ok((parts, fixture, operator, account))
        });
        let (parts, fixture, operator, account) = laid.map_err(|why| skip(test, &why)).ok()?;
        let began = Instant::now();
        let options = std::fs::read_to_string(parts.home.join("config/jvm.options"));
        load_with(&fixture, &parts, IMAGE, ENTRYPOINT, &options.expect("the engine's own file"));
        let _directories = [
            volumes_for(&fixture, "data", &NODES),
            volumes_for(&fixture, "logs", &["bootstrap-data"]),
            account,
        ];
        fixture.admin().apply(&cluster(&fixture, &parts));
        until_ready(&fixture, &NODES);
        let stage = Self { fixture, operator, _parts: parts, _directories };
        stage.until_formed();
        stage.until_operator_is_content();
        println!("three nodes without stayput: {} ms", began.elapsed().as_millis());
        stage.attach();
        println!("with it: {} ms", began.elapsed().as_millis());
        Some(stage)
    }

    /// As docs/operators.md says.
    fn attach(&self) {
        self.fixture.people.run(
            "kubectl apply -k deploy/
             kubectl --namespace stayput rollout status deployment stayput-reconciler --timeout=5m
             kubectl stayput --namespace search init logs
             kubectl -n search get opensearchclusters.opensearch.org logs --output yaml \\
               | kubectl stayput inject --ready http://127.0.0.1:9200/_cluster/health \\
               | kubectl replace --filename -
             kubectl --namespace search wait searchcluster logs --for=condition=Ready --timeout=15m
             kubectl -n search patch searchcluster logs --type merge \\
               --patch '{\"spec\": {\"update\": {\"mode\": \"inPlace\"}}}'",
        );
        self.until_operator_is_content();
        until_ready(&self.fixture, &NODES);
    }

    /// Waits until the pod that helped the cluster to form is gone, and there are documents on all nodes.
    fn until_formed(&self) {
        self.fixture.run(&["wait", "--for=delete", "--timeout=5m", &format!("pod/{BOOTSTRAP}")]);
        let put = |target: &str, body: &Value| {
            eventually("it is written", || {
                let address = self.addresses().pop()?;
                Door::plain()
                    .ask(&address, ("PUT", target), Some(body))
                    .filter(|answer| matches!(answer.status, 200 | 201))
                    .map(drop)
            });
        };
        put(
            "/load?wait_for_active_shards=all",
            &json!({ "settings": { "number_of_shards": 2, "number_of_replicas": 1 } }),
        );
        for id in 0..300 {
            put(&format!("/load/_doc/{id}"), &json!({ "number": id }));
        }
        let target = "/_cluster/health?wait_for_nodes=3&wait_for_status=green&timeout=5s";
        eventually("three nodes, green", || {
            (ask(&self.addresses().pop()?, target)?["timed_out"] == false).then_some(())
        });
    }

    /// Of all nodes.
    fn addresses(&self) -> Vec<String> {
        let pods = self.fixture.pods();
        pods.iter().filter_map(|pod| pod["status"]["podIP"].as_str().map(str::to_owned)).collect()
    }

    /// The policy that keeps all these pods.
    pub(super) fn keep_pods(&self) {
        self.fixture.people.run(
            "kubectl apply -k deploy/keep-pods
             kubectl -n search label pods --selector app=logs stayput.dev/keep-pod=true",
        );
        eventually("the policy counts", || {
            let account = account();
            let delete = [
                "delete",
                "pod",
                NODES[0],
                "--dry-run=server",
                "--namespace=search",
                "--as",
                &account,
            ];
            let groups = groups().map(|group| format!("--as-group={group}"));
            let groups: Vec<&str> = groups.iter().map(String::as_str).collect();
            self.fixture
                .admin()
                .attempt(&[&delete[..], &groups].concat(), "")
                .is_err()
                .then_some(())
        });
    }

    /// A person edits the `OpenSearchCluster`.
    pub(super) fn edit(&self, spec: &Value) {
        let patch = json!({ "spec": spec }).to_string();
        self.fixture.run(&["patch", CLUSTER, "logs", "--type=merge", "--patch", &patch]);
    }

    /// The node pool as it is declared now.
    fn pool(&self) -> Value {
        let made = self.fixture.admin().json(&["get", CLUSTER, "logs", "--namespace", "search"]);
        made["spec"]["nodePools"][0].clone()
    }

    /// The edit that gives the nodes one more variable.
    pub(super) fn with_variable(&self, name: &str, value: &str) -> Value {
        let mut pool = self.pool();
        let env = pool["env"].as_array_mut().expect("a list");
        env.push(json!({ "name": name, "value": value }));
        json!({ "nodePools": [pool] })
    }

    /// The edit that gives the pods one more label.
    pub(super) fn with_label(&self, name: &str, value: &str) -> Value {
        let mut pool = self.pool();
        pool["labels"][name] = json!(value);
        json!({ "nodePools": [pool] })
    }

    /// The edit that gives the nodes this much memory.
    pub(super) fn with_memory(&self, memory: &str) -> Value {
        let mut pool = self.pool();
        pool["resources"] = resources(memory);
        json!({ "nodePools": [pool] })
    }

    /// Waits until all nodes have what was edited, and the operator counts them as updated.
    pub(super) fn until_carried_out(&self) {
        self.fixture.people.run("kubectl stayput --namespace search watch logs --timeout 15m");
        self.until_at_rest();
    }

    /// Waits until all are ready, and nobody has anything to do.
    pub(super) fn until_at_rest(&self) {
        until_ready(&self.fixture, &NODES);
        self.fixture.until_idle();
        self.until_operator_is_content();
        let counts = &self.fixture.logs()["status"]["counts"];
        assert!(counts["pendingUpdate"].as_u64().unwrap_or(0) == 0, "{counts:#}");
        for pod in self.fixture.pods() {
            let annotations = &pod["metadata"]["annotations"];
            assert_eq!(annotations["stayput.dev/actual-revision"], Value::Null, "{annotations:#}");
        }
    }

    /// Waits until its StatefulSet counts all pods as updated. When two pods are not ready, it makes that anew.
    pub(super) fn until_operator_is_content(&self) {
        eventually("the operator is content", || {
            let sets = self.fixture.read("statefulsets");
            let set = sets["items"].get(0)?;
            let seen = set["status"]["observedGeneration"] == set["metadata"]["generation"];
            (seen && set["status"]["updatedReplicas"] == NODES.len()).then_some(())
        });
    }

    /// Waits until the operator says that the cluster has this version.
    pub(super) fn until_upgraded(&self, version: &str) {
        eventually("the operator has seen the other version", || {
            let made =
                self.fixture.admin().json(&["get", CLUSTER, "logs", "--namespace", "search"]);
            (made["status"]["version"] == version).then_some(())
        });
    }

    /// The variable of each engine's process.
    pub(super) fn environment(&self, name: &str) -> Vec<String> {
        let script = format!(
            "for p in /proc/[0-9]*; do grep -qs org.opensearch.bootstrap.OpenSearch $p/cmdline && \
             tr '\\0' '\\n' < $p/environ | sed -n 's/^{name}=//p'; done; true"
        );
        let value = |pod| {
            let printed = self.fixture.run(&[
                "exec",
                pod,
                "--container=opensearch",
                "--",
                "sh",
                "-c",
                &script,
            ]);
            printed.trim().to_owned()
        };
        NODES.into_iter().map(value).collect()
    }
}

fn resources(memory: &str) -> Value {
    json!({ "requests": { "cpu": "100m", "memory": memory }, "limits": { "memory": memory } })
}

/// Three nodes, as users have them before stayput comes, with what this machine needs.
fn cluster(fixture: &Fixture, parts: &Parts) -> Value {
    let (mounts, volumes) = machine(parts);
    let from_machine = mounts.iter().zip(&volumes).map(|(mount, volume)| {
        json!({ "name": volume["name"], "path": mount["mountPath"], "hostPath": volume["hostPath"] })
    });
    let mut volumes: Vec<Value> = from_machine.collect();
    volumes.push(json!({ "name": "tmp", "path": "/tmp", "emptyDir": {} }));
    let settings = [
        ("node.name", "${HOSTNAME}".to_owned()),
        ("network.host", "0.0.0.0".to_owned()),
        ("discovery.seed_hosts", format!("[{}]", fixture.seeds())),
        ("discovery.find_peers_interval", "200ms".to_owned()),
        ("path.data", format!("{HOME}/data")),
        ("path.logs", format!("{HOME}/logs")),
        ("node.store.allow_mmap", "false".to_owned()),
        ("cluster.routing.allocation.disk.threshold_enabled", "false".to_owned()),
        ("node.attr.round", "first".to_owned()),
    ];
    let settings: Map<String, Value> =
        settings.into_iter().map(|(name, value)| (name.to_owned(), json!(value))).collect();
    let jvm = "-Xms256m -Xmx256m -XX:TieredStopAtLevel=1";
    let quick = json!({ "initialDelaySeconds": 1, "periodSeconds": 2 });
    let probes = json!({ "startup": quick, "readiness": quick });
    json!({
        "apiVersion": "opensearch.org/v1",
        "kind": "OpenSearchCluster",
        "metadata": { "name": "logs", "namespace": "search" },
        "spec": {
            "general": {
                "version": "2.19.3",
                "serviceName": "logs",
                "image": IMAGE,
                "imagePullPolicy": "Never",
                "setVMMaxMapCount": false,
                "podSecurityContext": { "runAsUser": USER, "fsGroup": USER },
                "additionalConfig": settings,
                "additionalVolumes": volumes,
            },
            "bootstrap": {
                "diskSize": "1Gi",
                "storageClass": "",
                "jvm": jvm,
                "env": variables(parts),
            },
            "nodePools": [{
                "component": "nodes",
                "replicas": NODES.len(),
                "diskSize": "1Gi",
                "persistence": { "pvc": { "storageClass": "", "accessModes": ["ReadWriteOnce"] } },
                "roles": ["cluster_manager", "data"],
                "labels": { "app": "logs" },
                "jvm": jvm,
                "resources": resources("1Gi"),
                "env": variables(parts),
                "probes": probes,
            }],
        },
    })
}
