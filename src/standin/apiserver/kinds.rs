//! What the real server does with objects by their kind: defaults, which fields a write may change,
//! which values are invalid.

use k8s_openapi::api::{core, events};
use serde_json::{Map, Value, json};

use super::catalog::{Nature, Resource};
use super::failure::Cause;
use super::object::{
    finalizers, is_deleting, is_label_value, is_name, is_qualified, keep, meta, meta_mut, through,
    timestamp,
};
use super::schema;

/// Which part of the object a write is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Main,
    Status,
    /// CPU and memory of a pod.
    Resize,
}

/// Fields of the metadata that only the server writes.
const SERVER_SIDE: [&str; 6] = [
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generation",
    "namespace",
    "uid",
];

/// Makes a new object complete.
pub(super) fn prepare_create(resource: &Resource, object: &mut Value) {
    if resource.has_generation() {
        object["metadata"]["generation"] = json!(1);
    }
    if resource.status && resource.storage != "nodes" {
        object.as_object_mut().map(|object| object.remove("status"));
    }
    match resource.storage.as_str() {
        "pods" => complete_pod(object),
        "secrets" => complete_secret(object),
        "namespaces" => {
            object["spec"] = json!({"finalizers": ["kubernetes"]});
            object["status"] = json!({"phase": "Active"});
            let name = meta(object, "name").to_owned();
            object["metadata"]["labels"]["kubernetes.io/metadata.name"] = json!(name);
        }
        "statefulsets" => object["status"] = json!({"availableReplicas": 0, "replicas": 0}),
        "customresourcedefinitions" => complete_definition(object),
        _ => {}
    }
    fill_in(resource, object);
}

/// Keeps of `new` only what a write of `part` may change.
pub(super) fn prepare_update(resource: &Resource, old: &Value, new: &mut Value, part: Part) {
    let custom = matches!(resource.nature, Nature::Custom(_));
    match part {
        Part::Main if resource.status => keep(new, old, "status"),
        Part::Main => {}
        // A write of the status of a custom resource changes only the status; a write of the status
        // of another kind changes everything except the spec.
        Part::Status if custom => {
            let status = new.get("status").cloned();
            let version = new["metadata"]["resourceVersion"].clone();
            *new = old.clone();
            new["metadata"]["resourceVersion"] = version;
            match (status, new.as_object_mut()) {
                (Some(status), _) => new["status"] = status,
                (None, Some(new)) => drop(new.remove("status")),
                (None, None) => {}
            }
        }
        Part::Status => keep(new, old, "spec"),
        Part::Resize => *new = resized_pod(old, new),
    }
    meta_mut(new);
    for field in SERVER_SIDE {
        let old = &old["metadata"];
        keep(&mut new["metadata"], old, field);
    }
    if resource.storage == "secrets" {
        complete_secret(new);
    }
    fill_in(resource, new);
    if resource.has_generation()
        && part != Part::Status
        && wanted(resource, old) != wanted(resource, new)
    {
        let generation = old["metadata"]["generation"].as_i64().unwrap_or(0) + 1;
        new["metadata"]["generation"] = json!(generation);
    }
}

/// What is wrong with an object that is about to be stored.
pub(super) fn validate(resource: &Resource, old: Option<&Value>, new: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let name = meta(new, "name");
    if name.is_empty() {
        causes.push(Cause::required("metadata.name", "name or generateName is required"));
    } else if !is_name(name) {
        let note = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric \
                    characters, '-' or '.', and must start and end with an alphanumeric character";
        causes.push(Cause::invalid("metadata.name", &json!(name), note));
    }
    validate_keys(new, &mut causes);
    if let Some(old) = old.filter(|old| is_deleting(old)) {
        let before = finalizers(old);
        let added: Vec<&str> =
            finalizers(new).into_iter().filter(|name| !before.contains(name)).collect();
        if !added.is_empty() {
            let note = format!(
                "no new finalizers can be added if the object is being deleted, found new \
                 finalizers []string{added:?}"
            );
            causes.push(Cause::forbidden("metadata.finalizers", &note));
        }
    }
    match resource.storage.as_str() {
        "pods" => validate_pod(old, new, &mut causes),
        "events" => validate_event(resource, new, &mut causes),
        "customresourcedefinitions" => validate_definition(new, &mut causes),
        "configmaps" | "secrets" => validate_immutable(old, new, &mut causes),
        _ => {}
    }
    if let Some(schema) = resource.schema() {
        schema::validate(schema, new, &mut causes);
    }
    causes
}

fn validate_keys(object: &Value, causes: &mut Vec<Cause>) {
    for field in ["labels", "annotations"] {
        let path = format!("metadata.{field}");
        for (key, value) in object["metadata"][field].as_object().into_iter().flatten() {
            // Keys of annotations may have capitals in their domain.
            let checked = if field == "labels" { key.clone() } else { key.to_lowercase() };
            if !is_qualified(&checked) {
                let note = "name part must consist of alphanumeric characters, '-', '_' or '.', \
                            and must start and end with an alphanumeric character";
                causes.push(Cause::invalid(&path, &json!(key), note));
            }
            if field == "labels" && !is_label_value(value.as_str().unwrap_or_default()) {
                let note = "a valid label must be an empty string or consist of alphanumeric \
                            characters, '-', '_' or '.', and must start and end with an \
                            alphanumeric character";
                causes.push(Cause::invalid(&path, value, note));
            }
        }
    }
}

/// Drops fields that are empty and that the real server does not store.
fn tidy(resource: &Resource, object: &mut Value) {
    let is_empty = |value: &Value| match value {
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        value => value.is_null(),
    };
    meta_mut(object).retain(|_, value| !is_empty(value));
    if let (None, Some(object)) = (resource.schema(), object.as_object_mut()) {
        let data = ["data", "binaryData"];
        object.retain(|field, value| !data.contains(&field.as_str()) || !is_empty(value));
    }
}

/// Drops fields that are not in the schema, and fills in defaults.
fn fill_in(resource: &Resource, object: &mut Value) {
    tidy(resource, object);
    if let Some(schema) = resource.schema() {
        schema::prune(schema, object);
        schema::fill_in(schema, object);
    }
}

/// The part whose changes `generation` counts.
fn wanted(resource: &Resource, object: &Value) -> Value {
    let mut wanted = object.clone();
    if let Some(wanted) = wanted.as_object_mut() {
        wanted.remove("metadata");
        if resource.status {
            wanted.remove("status");
        }
    }
    wanted
}

/// `stringData` is only a way to write `data`, and is never returned.
fn complete_secret(object: &mut Value) {
    let Some(secret) = object.as_object_mut() else { return };
    if let Some(Value::Object(texts)) = secret.remove("stringData") {
        for (name, text) in texts {
            let bytes = text.as_str().unwrap_or_default().as_bytes().to_vec();
            secret.entry("data").or_insert_with(|| json!({}))[name] =
                json!(k8s_openapi::ByteString(bytes));
        }
    }
    secret.entry("type").or_insert_with(|| json!("Opaque"));
}

fn validate_immutable(old: Option<&Value>, new: &Value, causes: &mut Vec<Cause>) {
    let Some(old) = old.filter(|old| old["immutable"] == json!(true)) else { return };
    for field in ["data", "binaryData", "immutable"] {
        if old.get(field) != new.get(field) {
            causes.push(Cause::forbidden(field, "field is immutable when `immutable` is set"));
        }
    }
}

// CustomResourceDefinitions: accepted at once, where the real server takes a moment.

/// Fills in names, and sets the conditions that the kind is served.
fn complete_definition(definition: &mut Value) {
    let spec = &mut definition["spec"];
    let kind = spec["names"]["kind"].as_str().unwrap_or_default().to_owned();
    if spec["names"]["singular"].is_null() {
        spec["names"]["singular"] = json!(kind.to_lowercase());
    }
    if spec["names"]["listKind"].is_null() {
        spec["names"]["listKind"] = json!(format!("{kind}List"));
    }
    if spec["conversion"].is_null() {
        spec["conversion"] = json!({"strategy": "None"});
    }
    let stored: Vec<Value> = versions(spec)
        .iter()
        .filter(|version| version["storage"] == json!(true))
        .map(|version| version["name"].clone())
        .collect();
    let names = spec["names"].clone();
    let now = timestamp(std::time::Duration::ZERO);
    let condition = |kind: &str, reason: &str, message: &str| {
        json!({
            "type": kind, "status": "True", "reason": reason, "message": message,
            "lastTransitionTime": now,
        })
    };
    definition["status"] = json!({
        "acceptedNames": names,
        "storedVersions": stored,
        "conditions": [
            condition("NamesAccepted", "NoConflicts", "no conflicts found"),
            condition("Established", "InitialNamesAccepted", "the initial names have been accepted"),
        ],
    });
}

fn validate_definition(definition: &Value, causes: &mut Vec<Cause>) {
    let spec = &definition["spec"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let expected = format!("{}.{}", text(&spec["names"]["plural"]), text(&spec["group"]));
    let name = meta(definition, "name");
    if name != expected {
        let note = "must be spec.names.plural+\".\"+spec.group";
        causes.push(Cause::invalid("metadata.name", &json!(name), note));
    }
    let versions = versions(spec);
    if versions.iter().filter(|version| version["storage"] == json!(true)).count() != 1 {
        let note = "must have exactly one version marked as storage version";
        causes.push(Cause::invalid("spec.versions", &json!(versions), note));
    }
    for (index, version) in versions.iter().enumerate() {
        if !version["schema"]["openAPIV3Schema"].is_object() {
            let field = format!("spec.versions[{index}].schema.openAPIV3Schema");
            causes.push(Cause::required(field, "schemas are required"));
        }
    }
}

fn versions(spec: &Value) -> Vec<Value> {
    spec["versions"].as_array().cloned().unwrap_or_default()
}

// Events: one store, two APIs. Stored as `v1`, also shown and accepted as `events.k8s.io/v1`.

/// The newer API requires what the older one leaves open.
fn validate_event(resource: &Resource, event: &Value, causes: &mut Vec<Cause>) {
    let about = event["involvedObject"]["namespace"].as_str().unwrap_or_default();
    let own = meta(event, "namespace");
    let fits = match about {
        // Events about objects without a namespace are stored in these.
        "" => ["default", "kube-system"].contains(&own),
        about => !resource.group.is_empty() || about == own,
    };
    if !fits {
        let note = "does not match event.namespace";
        causes.push(Cause::invalid("involvedObject.namespace", &json!(about), note));
    }
    if resource.group.is_empty() {
        return;
    }
    for field in ["eventTime", "reportingComponent", "reportingInstance", "action", "reason"] {
        if event[field].as_str().unwrap_or_default().is_empty() {
            let shown = if field == "reportingComponent" { "reportingController" } else { field };
            causes.push(Cause::required(shown, ""));
        }
    }
    let kind = event["type"].as_str().unwrap_or_default();
    if !["Normal", "Warning"].contains(&kind) {
        causes.push(Cause::invalid("type", &json!(kind), "has invalid value: "));
    }
}

/// What a field is called in `events.k8s.io/v1`, and in `v1`.
const NAMES: [(&str, &str); 7] = [
    ("regarding", "involvedObject"),
    ("note", "message"),
    ("reportingController", "reportingComponent"),
    ("deprecatedSource", "source"),
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedCount", "count"),
];

/// From `events.k8s.io/v1` to what is stored.
pub(crate) fn to_core(event: Value) -> Result<Value, String> {
    let mut event = through::<events::v1::Event>(event)?;
    rename(&mut event, |(new, core)| (new, core));
    event["apiVersion"] = json!("v1");
    if event["involvedObject"].is_null() {
        event["involvedObject"] = json!({});
    }
    through::<core::v1::Event>(event)
}

/// From what is stored to `events.k8s.io/v1`.
pub(crate) fn from_core(event: &Value) -> Value {
    let mut event = event.clone();
    rename(&mut event, |(new, core)| (core, new));
    event["apiVersion"] = json!("events.k8s.io/v1");
    event
}

fn rename(
    event: &mut Value,
    direction: impl Fn((&'static str, &'static str)) -> (&'static str, &'static str),
) {
    let Some(fields) = event.as_object_mut() else { return };
    let old: Map<String, Value> = std::mem::take(fields);
    for (field, value) in old {
        let renamed = NAMES.into_iter().map(&direction).find(|(from, _)| *from == field);
        fields.insert(renamed.map_or(field, |(_, to)| to.to_owned()), value);
    }
}

// Pods: the defaults that clients see, and which few fields may be changed.

/// Fills in defaults as the real server does, and makes a new pod wait for the scheduler.
fn complete_pod(pod: &mut Value) {
    for (field, value) in [
        ("dnsPolicy", json!("ClusterFirst")),
        ("enableServiceLinks", json!(true)),
        ("preemptionPolicy", json!("PreemptLowerPriority")),
        ("priority", json!(0)),
        ("restartPolicy", json!("Always")),
        ("schedulerName", json!("default-scheduler")),
        ("securityContext", json!({})),
        ("terminationGracePeriodSeconds", json!(30)),
    ] {
        default(&mut pod["spec"], field, value);
    }
    for list in ["containers", "initContainers"] {
        for container in pod["spec"][list].as_array_mut().into_iter().flatten() {
            let latest = container["image"].as_str().is_some_and(|image| {
                !image.rsplit('/').next().is_some_and(|name| name.contains([':', '@']))
                    || image.ends_with(":latest")
            });
            let pull = if latest { "Always" } else { "IfNotPresent" };
            default(container, "imagePullPolicy", json!(pull));
            default(container, "resources", json!({}));
            default(container, "terminationMessagePath", json!("/dev/termination-log"));
            default(container, "terminationMessagePolicy", json!("File"));
        }
    }
    if pod["spec"]["initContainers"].is_null() {
        pod["spec"].as_object_mut().map(|spec| spec.remove("initContainers"));
    }
    if let Some(account) = pod["spec"]["serviceAccountName"].as_str().map(str::to_owned) {
        pod["spec"]["serviceAccount"] = json!(account);
    }
    pod["status"] = json!({"phase": "Pending", "qosClass": "BestEffort"});
}

fn default(object: &mut Value, field: &str, value: Value) {
    if object[field].is_null() {
        object[field] = value;
    }
}

/// The old pod with the sizes of the new one: a write of `pods/resize` changes nothing else.
fn resized_pod(old: &Value, new: &Value) -> Value {
    let mut resized = old.clone();
    resized["metadata"]["resourceVersion"] = new["metadata"]["resourceVersion"].clone();
    for list in ["containers", "initContainers"] {
        for container in resized["spec"][list].as_array_mut().into_iter().flatten() {
            let sizes = new["spec"][list].as_array().into_iter().flatten();
            if let Some(new) = sizes.into_iter().find(|new| new["name"] == container["name"]) {
                container["resources"] = new["resources"].clone();
            }
        }
    }
    resized
}

fn validate_pod(old: Option<&Value>, new: &Value, causes: &mut Vec<Cause>) {
    let containers = new["spec"]["containers"].as_array().map(Vec::as_slice).unwrap_or_default();
    if containers.is_empty() {
        causes.push(Cause::required("spec.containers", ""));
    }
    for (index, container) in containers.iter().enumerate() {
        for field in ["name", "image"] {
            if container[field].as_str().unwrap_or_default().is_empty() {
                causes.push(Cause::required(format!("spec.containers[{index}].{field}"), ""));
            }
        }
    }
    if old.is_some_and(|old| fixed(old) != fixed(new)) {
        let note = "pod updates may not change fields other than `spec.containers[*].image`,\
                    `spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,\
                    `spec.tolerations` (only additions to existing tolerations),\
                    `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was \
                    previously negative)";
        causes.push(Cause::forbidden("spec", note));
    }
}

/// The spec without the fields that may change.
fn fixed(pod: &Value) -> Value {
    let mut spec = pod["spec"].clone();
    let free = json!({});
    for field in ["activeDeadlineSeconds", "tolerations"] {
        keep(&mut spec, &free, field);
    }
    for list in ["containers", "initContainers"] {
        if let Some(containers) = spec.get_mut(list).and_then(Value::as_array_mut) {
            containers.iter_mut().for_each(|container| keep(container, &free, "image"));
        }
    }
    spec
}
