//! Additions to the lists of a pod, and the container that gets them.

use serde_json::Value;
use stayput_pod_spec::{EngineImage, Manager, PORT};

use super::Pod;
use super::settings::problems;
use crate::finding::ObjectIssue;
use crate::options::plain;
use crate::yaml::{Change, Path, Step};

/// The container of this name; without a name the one with an official image, or with the engine's name.
pub(crate) fn find_container<'a>(spec: &'a Value, name: Option<&str>) -> Option<&'a Value> {
    let all = || spec["containers"].as_array().into_iter().flatten();
    if let Some(name) = name {
        return all().find(|container| container["name"] == name);
    }
    all().find(|one| is_official(one)).or_else(|| all().find(|one| EngineImage::of(one).is_some()))
}

/// True if the image of a container is known.
pub(crate) fn is_official(container: &Value) -> bool {
    container["image"].as_str().is_some_and(|image| EngineImage::of_image(image).is_some())
}

/// Notes about containers of the pod that look like an engine, beside the one that gets the manager.
pub(crate) fn other_engines(at: &Path, spec: &Value, engine: &Value) -> Vec<ObjectIssue> {
    let all = spec["containers"].as_array().into_iter().flatten();
    let others = all.filter(|one| one["name"] != engine["name"] && is_official(one));
    others
        .map(|other| {
            let name = other["name"].as_str().unwrap_or_default();
            let engine = engine["name"].as_str().unwrap_or_default();
            ObjectIssue::note(
                at.then(Step::named(name)),
                format!("it has the image of an engine, too, and gets no manager: only {engine} is restarted"),
                format!("Run one engine in a pod. If {name} is the engine: --container {name}"),
            )
        })
        .collect()
}

/// Adds the manager's variables and its port to the engine's container at `at`.
pub(crate) fn variables_and_port(
    at: &Path,
    container: &Value,
    manager: &Manager<'_>,
    found: &mut Vec<ObjectIssue>,
) -> Vec<Change> {
    let (env, variables) = (at.then(Step::key("env")), manager.variables());
    found.extend(problems(&env, container, &variables, Some(&container["volumeMounts"])));
    let mut all = missing_items(&env, "name", &container["env"], variables);
    all.extend(exact_items(at, "ports", container, vec![manager.container_port()], found));
    all
}

/// Adds the manager's volumes to a pod, and their mounts to its engine's container at `at`.
pub(crate) fn mounts_and_volumes(
    pod: Pod<'_>,
    at: &Path,
    container: &Value,
    manager: &Manager<'_>,
    found: &mut Vec<ObjectIssue>,
) -> Vec<Change> {
    let mut all = exact_items(at, "volumeMounts", container, manager.mounts(), found);
    let volumes = manager.volumes();
    found.extend(claimed(pod.claims, &volumes));
    all.extend(exact_items(pod.at, "volumes", pod.spec, volumes, found));
    all
}

/// Additions to a list. An item with the same `field` stays as it is.
pub(crate) fn missing_items(
    at: &Path,
    field: &str,
    there: &Value,
    wanted: Vec<Value>,
) -> Vec<Change> {
    let new = wanted.into_iter().filter(|item| element(there, field, &item[field]).is_none());
    new.map(|item| {
        let name = item[field].as_str().unwrap_or_default();
        Change::Put { at: at.clone(), child: Step::item(field, name), value: item }
    })
    .collect()
}

/// Additions to a list of items that are needed exactly as given: another item in their place is
/// an error.
pub(crate) fn exact_items(
    at: &Path,
    list: &str,
    around: &Value,
    wanted: Vec<Value>,
    found: &mut Vec<ObjectIssue>,
) -> Vec<Change> {
    let field = if list == "volumeMounts" { "mountPath" } else { "name" };
    let (at, there) = (at.then(Step::key(list)), &around[list]);
    for item in &wanted {
        let name = item[field].as_str().unwrap_or_default();
        if element(there, field, &item[field]).is_some_and(|other| !has_fields(other, item)) {
            found.push(ObjectIssue::error(
                at.then(Step::item(field, name)),
                "it is there already, and is not what the manager needs",
                "Give it another name, or take it out",
            ));
        }
    }
    missing_items(&at, field, there, wanted)
}

/// Errors for claims with the name of a volume that the manager needs: the claim would take its place.
pub(crate) fn claimed(claims: &Value, wanted: &[Value]) -> Vec<ObjectIssue> {
    let claims = claims.as_array().into_iter().flatten();
    let names = claims.map(|claim| &claim["metadata"]["name"]);
    let taken = names.filter(|name| wanted.iter().any(|volume| volume["name"] == **name));
    taken
        .map(|name| {
            let name = name.as_str().unwrap_or_default();
            ObjectIssue::error(
                format!("spec.volumeClaimTemplates[name={name}]"),
                "the claim would take the place of a volume that the manager needs, and its state belongs to one pod",
                "Give the claim another name, or leave it out",
            )
        })
        .collect()
}

/// The error for another port of the container that has the manager's number.
pub(crate) fn port_clash(at: &Path, container: &Value) -> Option<ObjectIssue> {
    let mut ports = container["ports"].as_array()?.iter();
    let is_other = |port: &&Value| port["containerPort"] == PORT && port["name"] != "stayput";
    ports.find(is_other).map(|_| {
        ObjectIssue::error(
            at.then(Step::key("ports")),
            format!(
                "the manager listens on port {PORT}, and another port of the container is that"
            ),
            "Let the engine listen on another port",
        )
    })
}

fn element<'a>(list: &'a Value, field: &str, name: &Value) -> Option<&'a Value> {
    list.as_array()?.iter().find(|item| field_says(field, &item[field], name))
}

/// True if a field has at least the wanted value. A path can be written in several ways.
fn field_says(field: &str, there: &Value, wanted: &Value) -> bool {
    match (field, there.as_str(), wanted.as_str()) {
        ("mountPath", Some(there), Some(wanted)) => plain(there) == plain(wanted),
        _ => has_fields(there, wanted),
    }
}

/// True if a value has all wanted fields. Fields that Kubernetes has added by itself do no harm.
fn has_fields(there: &Value, wanted: &Value) -> bool {
    match (there, wanted) {
        (Value::Object(there), Value::Object(wanted)) => wanted.iter().all(|(key, wanted)| {
            there.get(key).is_some_and(|there| field_says(key, there, wanted))
        }),
        (Value::Array(there), Value::Array(wanted)) => {
            there.len() == wanted.len()
                && there.iter().zip(wanted).all(|(there, wanted)| has_fields(there, wanted))
        }
        _ => there == wanted,
    }
}
