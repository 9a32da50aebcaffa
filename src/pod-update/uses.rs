//! Secrets and ConfigMaps that a pod reads, found from its template, and how a change of them arrives.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::content::{Source, SourceKind};
use crate::difference::Path;
use crate::mounted_config::components;
use crate::template::{containers, elements, run_once, runs_once};

/// How a changed content gets to the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Arrival {
    /// The kubelet renews the mounted files; the engine reads them when it starts.
    Mounted,
    /// Only a new container gets it: variables, and files mounted by `subPath`.
    NewContainer,
    /// Only a new pod gets it: init containers run once.
    NewPod,
}

/// One use of a Secret or ConfigMap by a pod.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Use {
    /// The object.
    pub source: Source,
    /// The one key that is used; `None` for all keys.
    pub key: Option<String>,
    /// Keys that are left out: the engine's container reads them, too.
    pub except: BTreeSet<String>,
    /// How a change arrives.
    pub arrival: Arrival,
    /// The field of the template that uses it.
    pub field: String,
}

impl Use {
    /// True if this key is used.
    pub(crate) fn covers(&self, key: &str) -> bool {
        self.key.as_deref().is_none_or(|only| only == key) && !self.except.contains(key)
    }
}

/// Directory where admission mounts a pod's credentials for the apiserver. Its clients read them
/// again by themselves.
pub(crate) const SERVICE_ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// All uses that a container depends on, such as the engine's. Objects that only other containers read are
/// not counted. Objects that an init container reads count if the container does not read them, too. A script of
/// such a container counts all the same: its work is not done again.
pub fn uses(template: &Value, container_name: &str) -> BTreeSet<Use> {
    let mut found = BTreeSet::new();
    for list in ["containers", "initContainers"] {
        let mut named = containers(template, list).filter(|one| one["name"] == container_name);
        if let Some(container) = named.next().filter(|_| !runs_once(template, container_name)) {
            of_container(template, list, container, &mut found);
        }
    }
    let (mut before, mut scripts) = (BTreeSet::new(), BTreeSet::new());
    for container in run_once(template) {
        of_container(template, "initContainers", container, &mut before);
        of_command(template, container, &mut scripts);
    }
    let also_read = |each: &Use| {
        found
            .iter()
            .any(|own| own.source == each.source && (own.key.is_none() || own.key == each.key))
    };
    before.retain(|each| !also_read(each));
    scripts.retain(also_read);
    let once = before.into_iter().map(|each| {
        let own = found.iter().filter(|own| own.source == each.source);
        let except = own.filter_map(|own| own.key.clone()).collect();
        Use { arrival: Arrival::NewPod, except, ..each }
    });
    let scripts = scripts.into_iter().map(|each| Use { arrival: Arrival::NewPod, ..each });
    let once: Vec<Use> = once.chain(scripts).collect();
    found.extend(once);
    found
}

/// Mounted files that are words of an init container's command.
fn of_command(template: &Value, init: &Value, found: &mut BTreeSet<Use>) {
    let words = elements(&init["command"]).chain(elements(&init["args"]));
    for word in words.filter_map(Value::as_str).map(components) {
        for mount in elements(&init["volumeMounts"]).filter(|mount| mount["subPath"].is_null()) {
            let at = components(mount["mountPath"].as_str().unwrap_or_default());
            let Some(file @ [_, ..]) = word.strip_prefix(&*at) else { continue };
            let mut mount = mount.clone();
            mount["subPath"] = file.join("/").into();
            let reader = json!({"name": init["name"], "volumeMounts": [mount]});
            of_container(template, "initContainers", &reader, found);
        }
    }
}

fn of_container(template: &Value, list: &str, container: &Value, found: &mut BTreeSet<Use>) {
    let name = container["name"].as_str().unwrap_or_default();
    let at = Path::default().field("spec").field(list).element(name);
    let mut add = |source: Option<Source>, key: Option<&str>, arrival, field: &Path| {
        found.extend(source.map(|source| Use {
            source,
            key: key.map(str::to_owned),
            except: BTreeSet::new(),
            arrival,
            field: field.to_string(),
        }));
    };
    for variable in elements(&container["env"]) {
        let field = at.field("env").element(variable["name"].as_str().unwrap_or_default());
        for (reference, kind) in
            [("secretKeyRef", SourceKind::Secret), ("configMapKeyRef", SourceKind::ConfigMap)]
        {
            let from = &variable["valueFrom"][reference];
            let key = from["key"].as_str();
            add(source(kind, &from["name"]), key, Arrival::NewContainer, &field);
        }
    }
    for from in elements(&container["envFrom"]) {
        let field = at.field("envFrom");
        let secret = source(SourceKind::Secret, &from["secretRef"]["name"]);
        let config_map = source(SourceKind::ConfigMap, &from["configMapRef"]["name"]);
        add(secret.or(config_map), None, Arrival::NewContainer, &field);
    }
    let mounts = elements(&container["volumeMounts"]);
    for mount in mounts.filter(|mount| mount["mountPath"] != SERVICE_ACCOUNT) {
        let field =
            at.field("volumeMounts").element(mount["mountPath"].as_str().unwrap_or_default());
        let part = mount["subPath"].as_str().filter(|part| !part.is_empty());
        let fixed = part.is_some() || mount["subPathExpr"].is_string();
        // `./a` and `a/` are `a`, and `.` is the whole volume.
        let part = part.map(|part| components(part).join("/")).filter(|part| !part.is_empty());
        let part = part.as_deref();
        let arrival = if fixed { Arrival::NewContainer } else { Arrival::Mounted };
        let parts = volume(template, &mount["name"]).map(parts).unwrap_or_default();
        for Part { source, items, .. } in parts {
            match (items, part) {
                // The file's name is the key.
                (None, Some(part)) => add(Some(source), Some(part), arrival, &field),
                (None, None) => add(Some(source), None, arrival, &field),
                (Some(items), part) => {
                    // A file of it, or a directory in it.
                    let is_in = |path: &str| {
                        part.is_none_or(|part| components(path).starts_with(&components(part)))
                    };
                    let mounted = items.iter().filter(|(_, path)| is_in(path));
                    for (key, _) in mounted {
                        add(Some(source.clone()), Some(key), arrival, &field);
                    }
                }
            }
        }
    }
}

fn source(kind: SourceKind, name: &Value) -> Option<Source> {
    Some(Source { kind, name: name.as_str()?.to_owned() })
}

/// Keys and the paths at which they are mounted; `None` for all keys by their own names.
type Items = Option<Vec<(String, String)>>;

/// A Secret or ConfigMap in a volume.
pub(crate) struct Part {
    pub(crate) source: Source,
    pub(crate) items: Items,
    /// True if absent objects and keys are left out, and keep no pod from being started.
    pub(crate) optional: bool,
}

/// Secrets and ConfigMaps of a volume; in a projected volume a later one covers an earlier.
pub(crate) fn parts(volume: &Value) -> Vec<Part> {
    let mut found = Vec::new();
    found.extend(part(&volume["secret"], "secretName", SourceKind::Secret));
    found.extend(part(&volume["configMap"], "name", SourceKind::ConfigMap));
    for source in elements(&volume["projected"]["sources"]) {
        found.extend(part(&source["secret"], "name", SourceKind::Secret));
        found.extend(part(&source["configMap"], "name", SourceKind::ConfigMap));
    }
    found
}

/// The volumes with a file of the pod's own labels, annotations and the like (`downwardAPI`) for which this is true.
pub(crate) fn files_of_the_pod(
    template: &Value,
    has: impl Fn(&Value) -> bool,
) -> impl Iterator<Item = &Value> {
    let volumes = elements(&template["spec"]["volumes"]);
    volumes.filter(move |volume| {
        let projected = elements(&volume["projected"]["sources"]);
        let of_sources = projected.flat_map(|source| elements(&source["downwardAPI"]["items"]));
        elements(&volume["downwardAPI"]["items"]).chain(of_sources).any(&has)
    })
}

/// Kind of a volume, such as `emptyDir`.
pub(crate) fn kind(volume: &Value) -> &str {
    let fields = volume.as_object().into_iter().flatten();
    let mut kinds = fields.filter(|(field, value)| *field != "name" && !value.is_null());
    kinds.next().map_or("emptyDir", |(field, _)| field)
}

/// The volume with this name.
pub(crate) fn volume<'a>(template: &'a Value, name: &Value) -> Option<&'a Value> {
    let mut volumes = elements(&template["spec"]["volumes"]);
    volumes.find(|volume| &volume["name"] == name)
}

fn part(object: &Value, name: &str, kind: SourceKind) -> Option<Part> {
    let source = Source { kind, name: object[name].as_str()?.to_owned() };
    let optional = object["optional"].as_bool().unwrap_or(false);
    Some(Part { source, items: items(object), optional })
}

fn items(object: &Value) -> Items {
    let list = object["items"].as_array().filter(|list| !list.is_empty())?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    Some(list.iter().map(|item| (text(&item["key"]), text(&item["path"]))).collect())
}
