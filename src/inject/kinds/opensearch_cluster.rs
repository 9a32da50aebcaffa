//! `OpenSearchCluster` of the OpenSearch operator.
//!
//! Facts from opensearch-operator/pkg/builders/cluster.go in
//! github.com/opensearch-project/opensearch-k8s-operator: `general.command` is one line for
//! `/bin/bash -c`, behind the installation of plugins; `general.additionalVolumes` are mounted into
//! every engine; the liveness probe connects to the engine and only its times can be chosen. The
//! readiness probe asks the engine, too; from 3.0 on, which knows the group `opensearch.org`, its command
//! can be chosen.

use serde_json::{Value, json};
use stayput_pod_spec::{Manager, OPENSEARCH, PROGRAM, Ready};

use super::Plan;
use crate::finding::ObjectIssue;
use crate::options::Options;
use crate::pod::{self, Asked, EngineFacts, Reachability};
use crate::yaml::{Change, Path, Step};

/// Failures of the liveness probe before the kubelet ends the container: months. A stopped engine
/// fails it.
const FAILURES: u32 = 1_000_000;
/// The group of objects that can choose the command of the readiness probe, and whose operator surely knows
/// projected volumes: those of the older group came with version 2.7.
const VERSION_3: &str = "opensearch.org/";

pub(super) fn plan(object: &Value, cluster: &str, options: &Options) -> Plan {
    let mut plan = Plan::default();
    let general = Path::keys(&["spec", "general"]);
    let own = object["spec"]["general"]["command"].as_str().unwrap_or_default();
    if own.contains("stayput") {
        plan.found.push(pod::by_hand("spec.general.command"));
        return plan;
    }
    let Some(entrypoint) = entrypoint(own, options) else {
        plan.found.push(ObjectIssue::error(
            "spec.general.command",
            "it is more than one command, so it is not clear what starts the engine",
            "Write one command with its arguments, or give it: --command WORD --command WORD",
        ));
        return plan;
    };
    let is_version_3 = is_version_3(object);
    // The shell is replaced, so that the manager is the container's first process.
    let command = json!(format!("exec {PROGRAM} run -- {entrypoint}"));
    plan.changes.push(Change::put(&general, Step::key("command"), command));
    let there = &object["spec"]["general"];
    let volumes = additional_volumes(is_version_3, cluster, options);
    let Plan { changes, found, .. } = &mut plan;
    changes.extend(pod::exact_items(&general, "additionalVolumes", there, volumes, found));
    let facts = EngineFacts {
        pod: &there["podSecurityContext"],
        container: &there["securityContext"],
        resources: &Value::Null,
        user: pod::USER,
    };
    found.extend(facts.note("spec.general.securityContext", options));
    let secured = Secured::of(object);
    for pool in object["spec"]["nodePools"].as_array().into_iter().flatten() {
        let name = pool["component"].as_str().unwrap_or_default();
        let at = Path::keys(&["spec", "nodePools"]).then(Step::item("component", name));
        let resources = &pool["resources"];
        let init = pod::init_container(options, EngineFacts { resources, ..facts });
        changes.extend(pod::exact_items(&at, "initContainers", pool, vec![init], found));
        let field = format!("{at}.env");
        let asked = secured.asked(pool, &field, there);
        let ready = pod::ready(asked, options, found);
        let variables = manager(is_version_3, cluster, options, &ready).variables();
        let env = at.then(Step::key("env"));
        found.extend(pod::settings_problems(&env, pool, &variables, None));
        changes.extend(pod::missing_items(&env, "name", &pool["env"], variables));
        changes.extend(probes(&at, is_version_3));
    }
    if !is_version_3 {
        plan.found.push(ObjectIssue::note(
            "apiVersion",
            "the operator's readiness probe asks the engine and not the manager, so a drain takes its full \
             ten seconds, and Services still send requests then",
            "With version 3 of the operator write apiVersion: opensearch.org/v1",
        ));
    }
    plan.found.push(ObjectIssue::note(
        "spec.general.additionalConfig",
        "the operator mounts opensearch.yml by subPath, so each node needs another container for a change of it",
        "With spec.update.mode: inPlace of the SearchCluster it gets one in its pod; else the operator replaces the pod",
    ));
    plan
}

/// The changes of a node pool's probes.
fn probes(pool: &Path, is_version_3: bool) -> Vec<Change> {
    let probe = |name: &str| pool.join(&Path::keys(&["probes", name]));
    let failures = |name| Change::put(&probe(name), Step::key("failureThreshold"), json!(FAILURES));
    let mut all = vec![failures("liveness"), failures("startup")];
    if is_version_3 {
        let at = probe("readiness");
        all.extend(readiness().map(|(field, value)| Change::put(&at, Step::key(field), value)));
    }
    all
}

/// True if the command that starts the engine is the operator's own or a single one.
pub(super) fn has_known_command(object: &Value) -> bool {
    let own = object["spec"]["general"]["command"].as_str().unwrap_or_default();
    entrypoint(own, &Options::default()).is_some()
}

/// Security of the pods that the operator makes for an object, according to `docs/operators.md`.
#[derive(Debug)]
struct Secured {
    has_tls: Option<bool>,
    /// The Secret of the user admin.
    login: String,
    /// The Secret with the CA, if the certificate is the operator's.
    authority: Option<String>,
}

/// True if the engine has TLS for its clients, false if it has none. Before version 3 the operator leaves that to the
/// image unless the object has a certificate.
pub(super) fn has_tls(object: &Value) -> Option<bool> {
    let http = &object["spec"]["security"]["tls"]["http"];
    let is_on = http.is_object() && http["enabled"] != false;
    (is_on || is_version_3(object)).then_some(is_on)
}

fn is_version_3(object: &Value) -> bool {
    object["apiVersion"].as_str().is_some_and(|version| version.starts_with(VERSION_3))
}

impl Secured {
    fn of(object: &Value) -> Self {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let security = &object["spec"]["security"];
        let http = &security["tls"]["http"];
        let chosen = security["config"]["adminCredentialsSecret"]["name"].as_str();
        let chosen = chosen.filter(|name| !name.is_empty());
        let has_tls = has_tls(object);
        Self {
            has_tls,
            login: chosen.map_or_else(|| format!("{name}-admin-password"), str::to_owned),
            authority: (has_tls == Some(true) && http["generate"] == true)
                .then(|| format!("{name}-ca")),
        }
    }

    /// How the manager asks the engines of a node pool. `general` is the `spec.general` of the object.
    fn asked<'a>(&'a self, pool: &'a Value, field: &'a str, general: &Value) -> Asked<'a> {
        let port = general["httpPort"].as_u64().and_then(|port| port.try_into().ok());
        let has_tls = pod::reachability(pool).has_tls.or(self.has_tls);
        Asked {
            container: pool,
            field,
            reached: Reachability { port: port.unwrap_or(9200), has_tls },
            host_network: general["hostNetwork"] == true,
            login: Some(&self.login),
            authority: self.authority.as_deref(),
        }
    }
}

/// A readiness probe that asks the manager. The kubelet starts a program in the container each time, so
/// not every second.
fn readiness() -> [(&'static str, Value); 4] {
    [
        ("command", json!([PROGRAM, "wait", "--for=ready", "--timeout=0s"])),
        ("periodSeconds", json!(2)),
        ("timeoutSeconds", json!(5)),
        ("failureThreshold", json!(1)),
    ]
}

/// One command as one line, if it is a single command.
fn entrypoint(own: &str, options: &Options) -> Option<String> {
    if !options.command.is_empty() {
        return Some(options.command.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" "));
    }
    if own.is_empty() {
        return Some(OPENSEARCH.entrypoint.to_owned());
    }
    let own = own.strip_prefix("exec ").unwrap_or(own);
    (!own.contains(['&', '|', ';', '\n', '<', '>', '(', '`'])).then(|| own.to_owned())
}

fn quoted(word: &str) -> String {
    let is_plain = |one: char| one.is_ascii_alphanumeric() || "/._-=:,".contains(one);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

fn manager<'a>(
    is_version_3: bool,
    cluster: &'a str,
    options: &Options,
    ready: &'a Ready,
) -> Manager<'a> {
    Manager { environment: is_version_3, ..pod::manager(cluster, options, ready) }
}

fn additional_volumes(is_version_3: bool, cluster: &str, options: &Options) -> Vec<Value> {
    let ready = pod::ready_of(String::new(), options);
    let mut volumes = manager(is_version_3, cluster, options, &ready).volumes();
    for volume in &mut volumes {
        let path = format!("/{}", volume["name"].as_str().unwrap_or_default());
        volume["path"] = json!(path);
    }
    volumes
}
