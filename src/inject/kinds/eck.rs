//! `Elasticsearch` of ECK. Its operator makes the pods; what is in `podTemplate` is merged into them.
//!
//! The operator brings the config into the engine's directory by links to a Secret that it mounts
//! as a whole: it is watched there, and not copied. The operator sets no liveness probe. Its readiness
//! probe asks the engine, and only in containers that have none (`WithReadinessProbe` in
//! pkg/controller/common/container/defaulter.go in github.com/elastic/cloud-on-k8s): they get one that
//! asks the manager, so that a drain takes the pod out of its Services.

use serde_json::{Value, json};

use super::Plan;
use crate::edit::{Change, Path, Step};
use crate::finding::Found;
use crate::options::Options;
use crate::pod::{self, Environment, PROGRAM};

const CONTAINER: &str = "elasticsearch";
/// Where the operator mounts the config.
const CONFIG: &str = "/mnt/elastic-internal/elasticsearch-config";
/// `readiness.port`, which the operator sets from Elasticsearch 8.2 on.
const READY: &str = "tcp://127.0.0.1:8080";

pub(super) fn plan(object: &Value, cluster: &str, options: &Options) -> Plan {
    let mut plan = Plan::default();
    for set in object["spec"]["nodeSets"].as_array().into_iter().flatten() {
        let name = set["name"].as_str().unwrap_or_default();
        let at = Path::keys(&["spec", "nodeSets"]).then(Step::named(name));
        let at = at.join(&Path::keys(&["podTemplate", "spec"]));
        node_set(&at, &set["podTemplate"]["spec"], cluster, options, &mut plan);
    }
    let version = object["spec"]["version"].as_str().unwrap_or_default();
    if options.ready.is_none() && !has_readiness_port(version) {
        plan.found.push(Found::error(
            "spec.version",
            format!("Elasticsearch {version} has no readiness port"),
            "Say what answers when a node is ready: --ready tcp://127.0.0.1:9200",
        ));
    }
    plan
}

fn node_set(at: &Path, spec: &Value, cluster: &str, options: &Options, plan: &mut Plan) {
    let missing = json!({ "name": CONTAINER });
    let found = pod::find_container(spec, Some(CONTAINER));
    let container = found.unwrap_or(&missing);
    let place = at.then(Step::key("containers")).then(Step::named(CONTAINER));
    if pod::has_manager(container) {
        plan.found.push(Found::error(
            place,
            "the manager is there already, and not from inject",
            "Take out what was added by hand, or leave it as it is",
        ));
        return;
    }
    let put = |at: &Path, child: Step, value: Value| Change::Put { at: at.clone(), child, value };
    let init = pod::init_container(&options.image(), &Value::Null);
    let changes = &mut plan.changes;
    changes.push(put(&at.then(Step::key("initContainers")), Step::named("stayput"), init));
    if found.is_none() {
        changes.push(put(
            &at.then(Step::key("containers")),
            Step::named(CONTAINER),
            missing.clone(),
        ));
    }
    changes.push(put(&place, Step::key("command"), command(container, options)));
    changes.push(put(&place, Step::key("readinessProbe"), pod::readiness()));
    let variables = pod::environment(&Environment {
        config: Some(CONFIG),
        stage: None,
        ready: Some(options.ready.as_deref().unwrap_or(READY)),
        grace: None,
        open_metrics: options.open_metrics,
    });
    let add = |at: &Path, list: &str, field: &str, there: &Value, wanted: Vec<Value>| {
        pod::added(&at.then(Step::key(list)), field, &there[list], wanted)
    };
    changes.extend(add(&place, "env", "name", container, variables));
    changes.extend(add(&place, "ports", "name", container, pod::ports()));
    let mounts = pod::volume_mounts(false);
    changes.extend(add(&place, "volumeMounts", "mountPath", container, mounts));
    changes.extend(add(at, "volumes", "name", spec, pod::volumes(cluster, None)));
    if !container["args"].is_null() {
        changes.push(Change::Remove { at: place, child: Step::key("args") });
    }
}

/// The entrypoint is that of the official image, unless the template has one.
fn command(container: &Value, options: &Options) -> Value {
    let own = |field: &str| container[field].as_array().cloned().unwrap_or_default();
    let chosen: Vec<Value> = options.command.iter().map(|word| json!(word)).collect();
    let entrypoint = match (chosen.is_empty(), own("command").is_empty()) {
        (false, _) => chosen,
        (true, false) => [own("command"), own("args")].concat(),
        (true, true) => vec![json!("/usr/local/bin/docker-entrypoint.sh"), json!("eswrapper")],
    };
    let manager = [json!(PROGRAM), json!("run"), json!("--")];
    manager.into_iter().chain(entrypoint).collect()
}

fn has_readiness_port(version: &str) -> bool {
    let mut parts = version.split('.').map(|part| part.parse::<u32>().ok());
    match (parts.next().flatten(), parts.next().flatten()) {
        (Some(major), Some(minor)) => (major, minor) >= (8, 2),
        _ => true,
    }
}
