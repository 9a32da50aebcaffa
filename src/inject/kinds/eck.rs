//! `Elasticsearch` of ECK. Its operator makes the pods and merges `podTemplate` into them.
//!
//! The operator brings the config into the engine's directory by links to a Secret that it mounts
//! as a whole: it is watched there, and not copied. The operator sets no liveness probe. Its readiness
//! probe asks the engine, and only in containers that have none (`WithReadinessProbe` in
//! pkg/controller/common/container/defaulter.go in github.com/elastic/cloud-on-k8s): they get one that
//! asks the manager, so that a drain takes the pod out of its Services.
//!
//! From Elasticsearch 8.8 on it gives `runAsNonRoot` to each container without a `securityContext`
//! (`securitycontext.For` in pkg/controller/elasticsearch). The init container has one, so it says the same itself.
//!
//! The manager asks the engine's readiness port, which needs no user and opens when the node has joined its
//! cluster. Where there is none it asks the engine's health, with the Secrets that the operator makes:
//! their names follow from that of the object.

use serde_json::{Value, json};
use stayput_pod_spec::{
    Authority, ELASTICSEARCH, EngineConfig, Login, Manager, Ready, command as manager_command,
    health, readiness,
};

use super::Plan;
use crate::finding::ObjectIssue;
use crate::options::Options;
use crate::pod::{self, Asked, EngineFacts, Pod, Reachability};
use crate::yaml::{Change, Path, Step};

const CONTAINER: &str = "elasticsearch";
/// Where the operator mounts the config.
const CONFIG: &str = "/mnt/elastic-internal/elasticsearch-config";
/// `readiness.port`, which the operator sets from Elasticsearch 8.2 on.
const READY: &str = "tcp://127.0.0.1:8080";
/// The port of HTTP that the operator expects.
const PORT: u16 = 9200;

pub(super) fn plan(object: &Value, cluster: &str, options: &Options) -> Plan {
    let mut plan = Plan::default();
    let secured = Secured::of(object);
    for set in object["spec"]["nodeSets"].as_array().into_iter().flatten() {
        let name = set["name"].as_str().unwrap_or_default();
        let at = Path::keys(&["spec", "nodeSets"]).then(Step::named(name));
        let at = at.join(&Path::keys(&["podTemplate", "spec"]));
        let claims = &set["volumeClaimTemplates"];
        let pod = Pod { at: &at, spec: &set["podTemplate"]["spec"], claims, cluster, options };
        node_set(pod, &secured, &mut plan);
    }
    plan
}

/// Properties of the pods that the operator makes for an object.
#[derive(Debug)]
struct Secured {
    has_readiness_port: bool,
    /// The `securityContext` of a container that has none in the template.
    default_security: Value,
    has_tls: bool,
    /// Login of the user elastic, if the object has one.
    login: Option<Login>,
    /// CA of the operator's certificate. Another certificate may have no CA.
    authority: Option<Authority>,
}

impl Secured {
    fn of(object: &Value) -> Self {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let (spec, tls) = (&object["spec"], &object["spec"]["http"]["tls"]);
        let has_own = has_own_certificate(tls);
        let has_elastic = spec["auth"]["disableElasticUser"] != true;
        let login = || Login::of(&format!("{name}-es-elastic-user"), Some("elastic"));
        let version = spec["version"].as_str().unwrap_or_default();
        Self {
            has_readiness_port: is_since(version, (8, 2)),
            default_security: if is_since(version, (8, 8)) {
                json!({ "runAsNonRoot": true })
            } else {
                Value::Null
            },
            has_tls: has_tls(spec),
            login: has_elastic.then(login),
            authority: (!has_own && has_tls(spec))
                .then(|| Authority::of(&format!("{name}-es-http-certs-public"))),
        }
    }

    /// How the manager asks the engine in a container.
    fn ready(&self, asked: Asked<'_>, options: &Options, found: &mut Vec<ObjectIssue>) -> Ready {
        let container = asked.container;
        let chosen = pod::chosen_url(container, options);
        let asks_engine = !self.has_readiness_port || pod::has_secrets(container, options);
        let url = match chosen {
            Some(url) => url.to_owned(),
            None if asks_engine => health(self.has_tls, PORT),
            None => READY.to_owned(),
        };
        let mut ready = pod::ready_of(url, options);
        if ready.is_http() && ready.is_loopback() && !pod::sets_login(container) {
            ready.login = ready.login.or_else(|| self.login.clone());
        }
        if ready.url.starts_with("https://") && !pod::sets_authority(container) {
            ready.authority = ready.authority.or_else(|| self.authority.clone());
        }
        let has_login = ready.login.is_some() || pod::sets_login(container);
        if chosen.is_none() && asks_engine && !has_login {
            let error = ObjectIssue::error(
                "spec.auth.disableElasticUser",
                "without the user elastic the readiness probe has no credentials",
                "Give another user, for whom the privilege monitor is enough: --ready-auth secret/NAME",
            );
            // It is the same for all node sets.
            if !found.contains(&error) {
                found.push(error);
            }
        }
        found.extend(pod::problem(&ready, asked));
        ready
    }
}

/// True unless TLS is switched off.
pub(super) fn has_tls(spec: &Value) -> bool {
    let tls = &spec["http"]["tls"];
    has_own_certificate(tls) || tls["selfSignedCertificate"]["disabled"] != true
}

fn has_own_certificate(tls: &Value) -> bool {
    tls["certificate"]["secretName"].as_str().is_some_and(|name| !name.is_empty())
}

fn node_set(pod: Pod<'_>, secured: &Secured, plan: &mut Plan) {
    let Pod { at, spec, cluster, options, .. } = pod;
    let missing = json!({ "name": CONTAINER });
    let found = pod::find_container(spec, Some(CONTAINER));
    let container = found.unwrap_or(&missing);
    let place = at.then(Step::key("containers")).then(Step::named(CONTAINER));
    if pod::has_manager(container) {
        plan.found.push(pod::by_hand(place));
        return;
    }
    let own = &container["securityContext"];
    let facts = EngineFacts {
        pod: &spec["securityContext"],
        container: if own.is_null() { &secured.default_security } else { own },
        // The operator gives an init container those of the engine.
        resources: &Value::Null,
        user: pod::USER,
    };
    let note = facts.note(&format!("{place}.securityContext"), options);
    // It is the same for all node sets.
    let is_known =
        |note: &ObjectIssue| plan.found.iter().any(|known| known.message == note.message);
    plan.found.extend(note.filter(|note| !is_known(note)));
    let init = pod::init_container(options, facts);
    let init = pod::exact_items(at, "initContainers", spec, vec![init], &mut plan.found);
    plan.found.extend(pod::port_clash(&place, container));
    plan.found.extend(pod::post_start(&place, container));
    plan.found.extend(pod::pre_stop(&place, container).note);
    let changes = &mut plan.changes;
    changes.extend(init);
    if found.is_none() {
        changes.push(Change::put(
            &at.then(Step::key("containers")),
            Step::named(CONTAINER),
            missing.clone(),
        ));
    }
    changes.push(Change::put(&place, Step::key("command"), command(container, options)));
    changes.push(Change::put(&place, Step::key("readinessProbe"), readiness()));
    let field = format!("{place}.readinessProbe");
    let asked = Asked {
        container,
        field: &field,
        reached: Reachability { port: PORT, has_tls: Some(secured.has_tls) },
        host_network: spec["hostNetwork"] == true,
        login: None,
        authority: None,
    };
    let ready = secured.ready(asked, options, &mut plan.found);
    let manager = Manager {
        config: Some(EngineConfig::In(CONFIG)),
        ..pod::manager(cluster, options, &ready)
    };
    let found = &mut plan.found;
    changes.extend(pod::variables_and_port(&place, container, &manager, found));
    changes.extend(pod::mounts_and_volumes(pod, &place, container, &manager, found));
    if !container["args"].is_null() {
        changes.push(Change::remove(&place, Step::key("args")));
    }
}

/// The command of the engine's container: the entrypoint of the official image, unless the template
/// has one.
fn command(container: &Value, options: &Options) -> Value {
    let own = |field: &str| pod::words(&container[field]);
    let entrypoint = match (options.command.is_empty(), own("command").is_empty()) {
        (false, _) => options.command.clone(),
        (true, false) => [own("command"), own("args")].concat(),
        (true, true) => {
            [ELASTICSEARCH.entrypoint, ELASTICSEARCH.arguments].map(str::to_owned).into()
        }
    };
    json!(manager_command(entrypoint))
}

/// True if the version is at least `since`. One that cannot be parsed counts as new.
fn is_since(version: &str, since: (u32, u32)) -> bool {
    let mut parts = version.split('.').map(|part| part.parse::<u32>().ok());
    match (parts.next().flatten(), parts.next().flatten()) {
        (Some(major), Some(minor)) => (major, minor) >= since,
        _ => true,
    }
}
