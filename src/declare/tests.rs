//! Fixtures: three masters and two data nodes, and what is there once a plan was applied.

mod claims;
mod laws;
mod merging;
mod objects;
mod order;
mod refusals;
mod templates;
mod unneeded;
mod upgrade;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use crate::{
    Bootstrap, Cluster, DECLARED, Distribution, Engine, Kind, Manager, NodeSet, Object, Observed,
    ObservedSet, Plan, Version,
};

fn set(name: &str, count: u32, roles: &[&str]) -> NodeSet {
    let claim = json!({
        "metadata": { "name": "data" },
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": { "requests": { "storage": "10Gi" } },
        },
    });
    NodeSet {
        name: name.to_owned(),
        count,
        config: Map::from_iter([("node.roles".to_owned(), json!(roles))]),
        volume_claim_templates: vec![claim],
        ..NodeSet::default()
    }
}

fn cluster(node_sets: Vec<NodeSet>) -> Cluster {
    Cluster {
        name: "logs".to_owned(),
        namespace: "search".to_owned(),
        uid: "u-1".to_owned(),
        engine: Engine {
            distribution: Distribution::OpenSearch,
            version: Version(2, 19, 3),
            image: None,
            port: 9200,
            tls: false,
            ca_secret: None,
            credentials_secret: None,
            warm: false,
        },
        manager: Manager {
            image: None,
            image_of_new_sets: "stayput/manager:0.1.0".to_owned(),
            port: 9199,
            account: "stayput:stayput-reconciler".to_owned(),
        },
        node_sets,
    }
}

fn usual() -> Cluster {
    cluster(vec![set("masters", 3, &["cluster_manager"]), set("data", 2, &["data"])])
}

fn planned(cluster: &Cluster, observed: &Observed) -> Plan {
    crate::plan(cluster, observed).unwrap_or_else(|refusals| panic!("{refusals:#?}"))
}

/// What is there after the first objects of a plan were applied; every pod is ready.
fn applied(mut observed: Observed, objects: &[Object]) -> Observed {
    for object in objects {
        match object.kind {
            Kind::ConfigMap => observed.bootstrap = Some(Bootstrap::of(&object.body)),
            Kind::StatefulSet => {
                let replicas = object.body["spec"]["replicas"].as_u64().unwrap();
                let replicas = u32::try_from(replicas).unwrap();
                let declared = object.body["metadata"]["annotations"][DECLARED].as_str().unwrap();
                let declared = serde_json::from_str(declared).unwrap();
                let name = &object.body["metadata"]["labels"][crate::NODE_SET];
                let init = &object.body["spec"]["template"]["spec"]["initContainers"][0];
                let manager_image = init["image"].as_str().map(str::to_owned);
                let there = ObservedSet { replicas, ready: replicas, manager_image, declared };
                observed.sets.insert(name.as_str().unwrap().to_owned(), there);
            }
            Kind::Secret | Kind::Service => {}
        }
    }
    observed
}

/// The names of the first masters in the ConfigMap.
fn bootstrap(object: &Object) -> Vec<String> {
    match Bootstrap::of(&object.body) {
        Bootstrap::Masters(names) => names,
        Bootstrap::Claims(_) | Bootstrap::Formed => vec![],
    }
}

/// The cluster as it is once it has been made and has formed.
fn made(cluster: &Cluster) -> Observed {
    let observed = applied(Observed::default(), &planned(cluster, &Observed::default()).objects);
    Observed { formed: true, ..observed }
}

fn object<'a>(plan: &'a Plan, kind: Kind, name: &str) -> &'a Value {
    let found = plan.objects.iter().find(|object| object.kind == kind && object.name == name);
    &found.unwrap_or_else(|| panic!("no {kind} {name}")).body
}

/// The config of a set.
fn config(plan: &Plan, set: &str) -> String {
    let secret = object(plan, Kind::Secret, &crate::object::config_secret("logs", set));
    let mut files = secret["data"].as_object().unwrap().values();
    let text = STANDARD.decode(files.next().unwrap().as_str().unwrap()).unwrap();
    String::from_utf8(text).unwrap()
}

/// Kind and name of each, and how many replicas.
fn outline(plan: &Plan) -> Vec<String> {
    let line = |object: &Object| match object.kind {
        Kind::StatefulSet => {
            format!("{} {} {}", object.kind, object.name, object.body["spec"]["replicas"])
        }
        Kind::Secret | Kind::ConfigMap | Kind::Service => {
            format!("{} {}", object.kind, object.name)
        }
    };
    plan.objects.iter().map(line).collect()
}
