//! Secrets and ConfigMaps that a pod reads, found from its template, and how a change of them arrives.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::mounted_config::components;
use crate::path::Path;
use crate::run_once::runs_once;
use crate::source::{Source, SourceKind};
use crate::template::{containers, is_sidecar};
use crate::volumes::{Part, parts, volume};

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
/// not counted. Objects that an init container reads count if the container does not read them, too.
pub fn uses(template: &Value, container_name: &str) -> BTreeSet<Use> {
    let mut found = BTreeSet::new();
    for list in ["containers", "initContainers"] {
        let mut named = containers(template, list).filter(|one| one["name"] == container_name);
        if let Some(container) = named.next().filter(|_| !runs_once(template, container_name)) {
            of_container(template, list, container, &mut found);
        }
    }
    let mut before = BTreeSet::new();
    for container in containers(template, "initContainers") {
        if !is_sidecar(container["name"].as_str(), template) {
            of_container(template, "initContainers", container, &mut before);
        }
    }
    let also_read = |each: &Use| {
        found
            .iter()
            .any(|own| own.source == each.source && (own.key.is_none() || own.key == each.key))
    };
    before.retain(|each| !also_read(each));
    let once = before.into_iter().map(|each| {
        let own = found.iter().filter(|own| own.source == each.source);
        let except = own.filter_map(|own| own.key.clone()).collect();
        Use { arrival: Arrival::NewPod, except, ..each }
    });
    let once: Vec<Use> = once.collect();
    found.extend(once);
    found
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
    for variable in container["env"].as_array().into_iter().flatten() {
        let field = at.field("env").element(variable["name"].as_str().unwrap_or_default());
        for (reference, kind) in
            [("secretKeyRef", SourceKind::Secret), ("configMapKeyRef", SourceKind::ConfigMap)]
        {
            let from = &variable["valueFrom"][reference];
            let key = from["key"].as_str();
            add(source(kind, &from["name"]), key, Arrival::NewContainer, &field);
        }
    }
    for from in container["envFrom"].as_array().into_iter().flatten() {
        let field = at.field("envFrom");
        let secret = source(SourceKind::Secret, &from["secretRef"]["name"]);
        let config_map = source(SourceKind::ConfigMap, &from["configMapRef"]["name"]);
        add(secret.or(config_map), None, Arrival::NewContainer, &field);
    }
    let mounts = container["volumeMounts"].as_array().into_iter().flatten();
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
